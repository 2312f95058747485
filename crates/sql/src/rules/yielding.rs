//! Joins that let others run, so that a query can be cancelled while they multiply rows.
//!
//! A pipeline is cancelled where it yields, and DataFusion has scans yield after every few batches.
//! A join that makes millions of rows of one batch does not come back to its scan for minutes: what
//! it hands on is counted against the same budget here.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};

use crate::join::{MergeJoinExec, UnspilledLoopExec};

/// Has joins yield; see the module.
#[derive(Debug)]
pub(crate) struct YieldingJoins;

impl PhysicalOptimizerRule for YieldingJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match multiplies(&plan) {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "YieldingJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether one batch that comes in can become any number of batches that go out.
fn multiplies(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CrossJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<UnspilledLoopExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<MergeJoinExec>()
}
