//! The smaller side of a join with groups is built. DataFusion chooses sides before it is known how many groups
//! leave a GROUP BY: it takes a key for as many values as its range has, and strings and expressions for as many
//! as there are rows. A [`GroupExec`] uses a sample.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::group::GroupExec;
use atoll_sql_common::operator::OperatorRule;

/// Swaps sides; see the module.
#[derive(Debug)]
pub(crate) struct GroupedSides;

impl OperatorRule for GroupedSides {
    const NAME: &'static str = "GroupedSides";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        let planned = *join.partition_mode();
        let may_swap = config.optimizer.join_reordering
            && planned != PartitionMode::Auto
            && join.join_type().supports_swap()
            && !join.null_aware;
        let (left, right) = (join.left(), join.right());
        if !may_swap || !(is_grouped(left) || is_grouped(right)) {
            return Ok(None);
        }
        let (Some(left), Some(right)) = (bytes(left)?, bytes(right)?) else { return Ok(None) };
        // Small sides are built once for all partitions, and the other side is not exchanged.
        let mode = match left.min(right) < config.optimizer.hash_join_single_partition_threshold {
            true => PartitionMode::CollectLeft,
            false => PartitionMode::Partitioned,
        };
        match (right < left, mode) {
            (true, mode) => join.swap_inputs(mode).map(Some),
            (false, PartitionMode::CollectLeft) if planned == PartitionMode::Partitioned => {
                Ok(Some(Arc::new(join.builder().with_partition_mode(mode).build()?)))
            }
            (false, _) => Ok(None),
        }
    }
}

/// Whether its rows are groups, or some of their columns and rows.
fn is_grouped(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.is::<GroupExec>() {
        return true;
    }
    let passes = plan.is::<ProjectionExec>() || plan.is::<FilterExec>();
    passes && plan.children().into_iter().all(is_grouped)
}

fn bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.total_byte_size.get_value().copied())
}
