//! The rule that replaces DataFusion's aggregations.

use std::sync::Arc;

use atoll_primitives::Context as PrimitiveContext;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use super::exec::GroupExec;
use super::query::GroupQuery;
use atoll_sql_common::settings::{AggregateMethod, AtollOptions};

/// Replaces aggregations that the primitives support with a [`GroupExec`].
///
/// It runs before DataFusion plans exchanges: what a GroupExec collects needs none below, and its
/// outputs are not partitioned by DataFusion's hash, so operators above that want such partitions get
/// another exchange.
#[derive(Debug)]
pub(crate) struct GroupByPrimitive {
    primitives: PrimitiveContext,
}

impl GroupByPrimitive {
    /// Creates the rule for these workers, this memory and tuning.
    pub(crate) fn new(primitives: PrimitiveContext) -> Self {
        Self { primitives }
    }

    fn replace(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        method: AggregateMethod,
        outputs: usize,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let Some(whole) = plan.downcast_ref::<AggregateExec>().and_then(whole) else {
            return Ok(Transformed::no(plan));
        };
        let whole = whole?;
        let Some(query) = GroupQuery::from_aggregate(&whole) else {
            return Ok(Transformed::no(plan));
        };
        let group = GroupExec::new(whole, query, self.primitives.clone(), method, outputs)?;
        match group {
            Some(group) => Ok(Transformed::yes(Arc::new(group) as _)),
            None => Ok(Transformed::no(plan)),
        }
    }
}

/// The aggregation in one step: partial and final together, as DataFusion's own rule
/// `CombinePartialFinalAggregate` makes it where no exchange is needed.
fn whole(last: &AggregateExec) -> Option<Result<AggregateExec>> {
    let (first, limit) = match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => (last, last.limit_options()),
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let first = last.input().downcast_ref::<AggregateExec>()?;
            (*first.mode() == AggregateMode::Partial).then_some(())?;
            (first, last.limit_options())
        }
        _ => return None,
    };
    let whole = AggregateExec::try_new(
        AggregateMode::SinglePartitioned,
        first.group_expr().clone(),
        first.aggr_expr().to_vec(),
        first.filter_expr().to_vec(),
        Arc::clone(first.input()),
        first.input_schema(),
    );
    let fits = |whole: &AggregateExec| whole.schema() == last.schema();
    match whole {
        Ok(whole) if !fits(&whole) => None,
        whole => Some(whole.map(|whole| whole.with_limit_options(limit))),
    }
}

impl PhysicalOptimizerRule for GroupByPrimitive {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let method = config.extensions.get::<AtollOptions>().map(|options| options.aggregate);
        let method = method.unwrap_or_default();
        if method == AggregateMethod::Off {
            return Ok(plan);
        }
        let outputs = config.execution.target_partitions;
        plan.transform_down(|plan| self.replace(plan, method, outputs)).data()
    }

    fn name(&self) -> &str {
        "GroupByPrimitive"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether no key is in two partitions of the input, so that no exchange is needed.
pub(super) fn is_partitioned(whole: &AggregateExec) -> bool {
    let input = whole.input();
    if input.output_partitioning().partition_count() == 1 {
        return true;
    }
    let requirements = whole.input_distribution_requirements();
    let Some(wanted) = requirements.per_child_distributions().next().cloned() else { return false };
    let properties = input.equivalence_properties();
    input.output_partitioning().satisfaction(&wanted, properties, false).is_satisfied()
}

/// Whether rows come grouped by the key.
pub(super) fn is_grouped(whole: &AggregateExec) -> bool {
    *whole.input_order_mode() == InputOrderMode::Sorted
}
