//! Plans that are read twice.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, not_impl_err};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::ident;

use super::columns::{outer_columns, unused};
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
    Ok(is_repeatable(plan)? || can_number(plan)?)
}

/// Whether a plan can be materialized, and so its rows be numbered.
pub(super) fn can_number(plan: &LogicalPlan) -> Result<bool> {
    Ok(outer_columns(plan, None)?.is_empty() && !is_in_recursion(plan)?)
}

/// Returns the plan, materialized with a number for each row, and the column of the numbers.
pub(super) fn numbered(plan: LogicalPlan) -> Result<(LogicalPlan, Column)> {
    if !can_number(&plan)? {
        return not_impl_err!(
            "a subquery over both sides of an outer join within a correlated subquery or a recursive query; \
             put the join into a subquery in FROM"
        );
    }
    let (columns, number) = (plan.schema().columns(), unused("number"));
    let columns: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
    let count = row_number();
    let numbered = ident(count.schema_name().to_string()).alias(&number);
    let of_rows = columns.iter().cloned().chain([numbered]);
    let plan = LogicalPlanBuilder::from(plan).window([count])?.project(of_rows)?.build()?;
    let of_rows = columns.into_iter().chain([ident(&number)]);
    let plan = LogicalPlanBuilder::from(shared(plan)?).project(of_rows)?.build()?;
    Ok((plan, Column::from_name(number)))
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
