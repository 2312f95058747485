//! Shared code of logical rules: a rule that rewrites each node after its inputs, and a rewrite of a node's expressions
//! that keeps their names.

use std::fmt;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Rewrites a single node.
pub type RewriteNode = fn(LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A named rule that rewrites nodes by a function.
pub struct BottomUp {
    /// The rule's name.
    pub name: &'static str,
    /// The function that rewrites a node.
    pub rewrite: RewriteNode,
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

/// Rewrites the expressions of a node; its columns keep their names.
pub fn map_named(
    node: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = rewrite(expr)?;
        Ok(match rewritten.transformed {
            true => rewritten.update_data(|expr| name.restore(expr)),
            false => rewritten,
        })
    })
}

/// Whether an operator compares its operands.
pub fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
