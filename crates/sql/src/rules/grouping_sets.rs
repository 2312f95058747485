//! Grouping sets over rows of which nothing is told, and of whose groups nothing is told either.
//!
//! A column is null in the sets that leave it out. DataFusion's aggregation (55.2,
//! `aggregates/mod.rs`, `compute_properties`) nevertheless tells of its groups what its input tells of
//! the column: that rows come in its order, that it is constant or equals another, that it decides the
//! partition. The final aggregation then ends groups that go on, or finds parts of one group in two
//! partitions, and a sort above is left out. In one step (`AggregateMode::Single`) groups are ended too
//! early as well: the order that is tracked is that of the set that comes last in a batch.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, replace_children_if_necessary};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::{
    ChildStats, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, StatisticsArgs,
};

/// Puts [`UntoldExec`]s below and above grouping sets; see the module.
#[derive(Debug)]
pub(crate) struct GroupingSets;

impl PhysicalOptimizerRule for GroupingSets {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(input) = plan.downcast_ref::<AggregateExec>().and_then(grouping_sets_input)
            else {
                return Ok(Transformed::no(plan));
            };
            let below = UntoldExec::of(Arc::clone(input));
            let sets = replace_children_if_necessary(plan, vec![below])?;
            Ok(Transformed::yes(UntoldExec::of(sets)))
        })
        .data()
    }

    fn name(&self) -> &str {
        "GroupingSets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The input of an aggregation that makes rows of several sets out of each of its input's.
fn grouping_sets_input(aggregate: &AggregateExec) -> Option<&Arc<dyn ExecutionPlan>> {
    let sets = aggregate.group_expr().has_grouping_set();
    sets.then(|| aggregate.input())
}

/// Passes rows on and tells nothing of them.
#[derive(Debug)]
struct UntoldExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UntoldExec {
    fn of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let partitions = input.output_partitioning().partition_count();
        let properties = PlanProperties::clone(input.properties())
            .with_eq_properties(EquivalenceProperties::new(input.schema()))
            .with_partitioning(Partitioning::UnknownPartitioning(partitions));
        Arc::new(Self { input, properties: Arc::new(properties) })
    }
}

impl DisplayAs for UntoldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UntoldExec")
    }
}

impl ExecutionPlan for UntoldExec {
    fn name(&self) -> &'static str {
        "UntoldExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Self::of(input)),
            _ => internal_err!("UntoldExec has one child"),
        }
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match input_stats {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("UntoldExec has one child"),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }
}
