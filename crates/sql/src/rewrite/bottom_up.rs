//! A rule that rewrites each node of a plan behind those below it.

use std::fmt;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// What becomes of a node, by itself.
pub(super) type RewriteNode =
    fn(LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// The rule of a name, which rewrites nodes by a function.
pub(crate) struct BottomUp {
    pub(crate) name: &'static str,
    pub(crate) rewrite: RewriteNode,
}

impl fmt::Debug for BottomUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BottomUp").field(&self.name).finish()
    }
}

impl OptimizerRule for BottomUp {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(plan, config)
    }
}
