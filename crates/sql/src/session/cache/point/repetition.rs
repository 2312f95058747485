//! Whether a plan gives the same again.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};

use crate::session_functions::NextNumber;

/// How a plan's result for the same values varies between executions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// It does not.
    Same,
    /// Only in sequence numbers.
    Numbered,
    /// In other ways: `random()` and similar functions belong to the statement that they are planned for.
    Other,
}

impl Repetition {
    pub(super) fn from_plan(plan: &LogicalPlan) -> Result<Self> {
        let mut found = Self::Same;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| match expr {
                    Expr::ScalarFunction(call)
                        if call.func.signature().volatility != Volatility::Immutable =>
                    {
                        found = match NextNumber::try_from_expr(expr) {
                            Some(_) => Self::Numbered,
                            None => Self::Other,
                        };
                        Ok(match found {
                            Self::Other => TreeNodeRecursion::Stop,
                            _ => TreeNodeRecursion::Continue,
                        })
                    }
                    _ => Ok(TreeNodeRecursion::Continue),
                })
            })
        })?;
        Ok(found)
    }
}
