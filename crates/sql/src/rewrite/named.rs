//! Expressions of a node, rewritten under the names that they have.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The node with its expressions rewritten. Columns that come of them are called as before.
pub(crate) fn map_named(
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
