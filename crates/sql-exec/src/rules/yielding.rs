//! Makes joins yield, so that a query can be cancelled while they multiply rows.
//!
//! A pipeline is cancelled where it yields, and DataFusion has scans yield after every few batches.
//! A join that makes millions of rows of one batch does not come back to its scan for minutes: what
//! it hands on is counted against the same budget here, and so are the pairs that a nested-loop join compares:
//! perhaps none of them passes.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};

use crate::join::{MergeJoinExec, PacedLoop, PacedLoopExec, UnspilledLoopExec, with_paced_filter};
use atoll_sql_common::operator::OperatorRule;

/// Makes joins yield; see the module.
#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl OperatorRule for YieldingJoins {
    const NAME: &'static str = "YieldingJoins";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if !multiplies(plan) {
            return Ok(None);
        }
        let join = match paced(plan)? {
            Some(join) => PacedLoopExec::plan(&join, PacedLoop),
            None => Arc::clone(plan),
        };
        Ok(Some(Arc::new(CooperativeExec::new(join))))
    }
}

/// A nested-loop join whose filter yields; `None` for other joins.
fn paced(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(unspilled) = plan.downcast_ref::<UnspilledLoopExec>() {
        let join = paced(unspilled.join())?;
        return Ok(join.map(|join| Arc::new(UnspilledLoopExec::new(join)) as _));
    }
    plan.downcast_ref::<NestedLoopJoinExec>().map_or(Ok(None), with_paced_filter)
}

/// Whether one input batch can become any number of output batches.
fn multiplies(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CrossJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<UnspilledLoopExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<MergeJoinExec>()
}
