//! Plans that are read twice.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::columns::outer_columns;
use crate::volatile::{is_barred, is_in_recursion, is_shared, shared};

/// Whether a plan returns the same rows each time it is read.
fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let mut repeats = true;
    plan.apply(|node| {
        if is_shared(node) {
            return Ok(TreeNodeRecursion::Jump);
        }
        if let Some(asked) = of_gate(node) {
            repeats &= is_repeatable(asked)?;
            return Ok(TreeNodeRecursion::Jump);
        }
        repeats &=
            !matches!(node, LogicalPlan::Limit(_) | LogicalPlan::Extension(_)) || is_barred(node);
        node.apply_expressions(|expr| {
            repeats &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(repeats)
}

/// The plan that a [gate](super::gate) checks for a row; which row does not matter.
fn of_gate(node: &LogicalPlan) -> Option<&LogicalPlan> {
    let LogicalPlan::Projection(projection) = node else { return None };
    let LogicalPlan::Limit(limit) = projection.input.as_ref() else { return None };
    let is_constant = projection.expr.iter().all(|expr| expr.column_refs().is_empty());
    is_constant.then_some(limit.input.as_ref())
}

/// Whether a plan returns the same rows each time, or can be materialized.
pub(super) fn can_repeat(plan: &LogicalPlan) -> Result<bool> {
    Ok(is_repeatable(plan)? || (outer_columns(plan, None)?.is_empty() && !is_in_recursion(plan)?))
}

/// Returns the plan, materialized unless it returns the same rows both times.
pub(super) fn repeatable(outer: LogicalPlan) -> Result<LogicalPlan> {
    if is_repeatable(&outer)? {
        return Ok(outer);
    }
    if !can_repeat(&outer)? {
        return not_impl_err!(
            "a correlated subquery over rows of another one, or of a recursive query, that are not the \
             same each time they are read (LIMIT, random()); make a table of them first"
        );
    }
    let columns: Vec<Expr> = outer.schema().columns().into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(shared(outer)?).project(columns)?.build()
}
