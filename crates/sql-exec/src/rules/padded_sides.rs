//! Hides the constants of outer join sides that are padded with NULLs.
//!
//! A column that is constant in such a side is either that or NULL after the join. DataFusion 55.2
//! (`EquivalenceGroup::join`) declares it constant: a sort by it is left out above, and groups and ranks
//! come apart.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinType, Result};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::untold::untold;
use atoll_sql_common::operator::OperatorRule;

/// Puts `UntoldExec`s over these sides where they have constants; see the module.
#[derive(Debug)]
pub(crate) struct PaddedSides;

impl OperatorRule for PaddedSides {
    const NAME: &'static str = "PaddedSides";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let padded = match join_type(plan) {
            Some(JoinType::Left) => [false, true],
            Some(JoinType::Right) => [true, false],
            Some(JoinType::Full) => [true, true],
            _ => return Ok(None),
        };
        let sides = plan.children().into_iter().zip(padded);
        let is_told = |(side, is_padded): &(&Arc<dyn ExecutionPlan>, bool)| {
            *is_padded && !side.equivalence_properties().constants().is_empty()
        };
        if !sides.clone().any(|side| is_told(&side)) {
            return Ok(None);
        }
        let sides =
            sides.map(|side| if is_told(&side) { untold(side.0) } else { Arc::clone(side.0) });
        replace_children_if_necessary(Arc::clone(plan), sides.collect()).map(Some)
    }
}

fn join_type(plan: &Arc<dyn ExecutionPlan>) -> Option<JoinType> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        Some(join.join_type())
    } else {
        plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type())
    }
}
