//! Grouping sets without declared properties of their rows and of their groups.
//!
//! A column is null in the sets that leave it out. DataFusion's aggregation (55.2,
//! `aggregates/mod.rs`, `compute_properties`) nevertheless declares of its groups what its input declares of
//! the column: that rows come in its order, that it is constant or equals another, that it decides the
//! partition. The final aggregation then ends groups that go on, or finds parts of one group in two
//! partitions, and a sort above is left out. In one step (`AggregateMode::Single`) groups are ended too
//! early as well (apache/datafusion#24421): the order that is tracked is that of the set that comes last in a
//! batch.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;

use super::untold::untold;
use atoll_sql_common::operator::OperatorRule;

/// Puts `UntoldExec`s below and above grouping sets; see the module.
#[derive(Debug)]
pub(crate) struct GroupingSets;

impl OperatorRule for GroupingSets {
    const NAME: &'static str = "GroupingSets";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(input) = plan.downcast_ref::<AggregateExec>().and_then(grouping_sets_input) else {
            return Ok(None);
        };
        let below = untold(input);
        let sets = replace_children_if_necessary(Arc::clone(plan), vec![below])?;
        Ok(Some(untold(&sets)))
    }
}

/// The input of an aggregation that makes rows of several sets out of each of its input's.
fn grouping_sets_input(aggregate: &AggregateExec) -> Option<&Arc<dyn ExecutionPlan>> {
    let sets = aggregate.group_expr().has_grouping_set();
    sets.then(|| aggregate.input())
}
