//! Keeps joins from waiting for siblings that are not polled.
//!
//! All partitions of a broadcast join report before its dynamic filter is made, and wait for each
//! other (DataFusion 55.2, `joins/hash_join/shared_bounds.rs`; apache/datafusion#21625). A partitioned
//! join above it whose partition has an empty build side ends without ever polling its probe side; with the
//! broadcast join right there, without an exchange between the two, the sibling partitions would wait for
//! ever. An exchange polls all its inputs regardless of its readers, so such a join gets one.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use atoll_sql_common::operator::OperatorRule;

/// Puts exchanges where a join would wait; see the module.
#[derive(Debug)]
pub(crate) struct PolledProbes;

impl OperatorRule for PolledProbes {
    const NAME: &'static str = "PolledProbes";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let join = plan.downcast_ref::<HashJoinExec>().filter(|join| may_stall(join));
        let Some(join) = join else { return Ok(None) };
        let keys = join.on().iter().map(|(_, key)| Arc::clone(key)).collect();
        let partitions = join.right().output_partitioning().partition_count();
        let exchange = RepartitionExec::try_new(
            Arc::clone(join.right()),
            Partitioning::Hash(keys, partitions),
        )?;
        let children = vec![Arc::clone(join.left()), Arc::new(exchange) as _];
        replace_children_if_necessary(Arc::clone(plan), children).map(Some)
    }
}

/// Whether a partition of the join may end while siblings below it wait. Joins of sides cut by key
/// are never planned over such siblings (`common_cuts.rs`), so both sides are partitioned by hash.
fn may_stall(join: &HashJoinExec) -> bool {
    *join.partition_mode() == PartitionMode::Partitioned
        && join.right().output_partitioning().partition_count() > 1
        && matches!(join.left().output_partitioning(), Partitioning::Hash(_, _))
        && waits_for_siblings(join.right())
}

/// Whether a partition of the plan waits until its sibling partitions are polled.
pub(super) fn waits_for_siblings(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() {
        return false;
    }
    match plan.downcast_ref::<HashJoinExec>() {
        Some(join) if *join.partition_mode() != PartitionMode::Partitioned => true,
        // The build side is always read to its end.
        Some(join) => waits_for_siblings(join.right()),
        None => plan.children().into_iter().any(waits_for_siblings),
    }
}
