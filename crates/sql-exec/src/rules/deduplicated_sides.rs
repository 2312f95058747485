//! Semi-, anti- and mark joins get the rows of their filtering side without repeats.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::HashJoinExec;

use crate::join::{Deduplicate, DeduplicateExec};
use atoll_sql_common::operator::OperatorRule;

/// Puts a [`DeduplicateExec`] below hash joins that return rows of one side only.
#[derive(Debug)]
pub(crate) struct DeduplicatedSides;

impl OperatorRule for DeduplicatedSides {
    const NAME: &'static str = "DeduplicatedSides";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        let Some(side) = filtering_side(*join.join_type()) else { return Ok(None) };
        let mut sides: Vec<_> = plan.children().into_iter().cloned().collect();
        let side = &mut sides[usize::from(side == JoinSide::Right)];
        if !Deduplicate::supports(&side.schema()) {
            return Ok(None);
        }
        *side = deduplicated(side)?;
        replace_children_if_necessary(Arc::clone(plan), sides).map(Some)
    }
}

/// The side whose rows only decide about those of the other.
fn filtering_side(join: JoinType) -> Option<JoinSide> {
    match join {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => Some(JoinSide::Right),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => Some(JoinSide::Left),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => None,
    }
}

/// The rows without repeats, looked for before partitions are gathered, by all workers.
fn deduplicated(side: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match side.downcast_ref::<CoalescePartitionsExec>() {
        Some(gather) => {
            let input = DeduplicateExec::plan(gather.input(), Deduplicate);
            replace_children_if_necessary(Arc::clone(side), vec![input])
        }
        None => Ok(DeduplicateExec::plan(side, Deduplicate)),
    }
}
