//! Outer joins whose condition has subqueries that are evaluated for pairs of rows.
//!
//! ```text
//! t LEFT JOIN u ON t.k = u.k AND (a subquery over t and u)
//!
//!   n := t with a number for each row, materialized
//!   n LEFT JOIN (SELECT number, u.* FROM n JOIN u ON n.k = u.k WHERE (the subquery)) ON number
//! ```
//!
//! A subquery over one side needs no pairs: it becomes a column of that side. If it may fail, or calls functions such as
//! random(), it is evaluated for pairs too, only where the rest of the condition is true.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, JoinType, Result, not_impl_err};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};

use super::branches::{has_some, is_unsafe, subquery_of};
use super::columns::unused;
use super::repeat::{can_number, numbered};
use super::{in_expressions, joined, outer_columns_of, plain};
use crate::arithmetic::Failure;
use crate::volatile::is_volatile;

/// Whether the condition of an outer join is evaluated for pairs.
pub(super) fn is_needed(node: &LogicalPlan, join: &Join, filter: &Expr) -> Result<bool> {
    if !matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full) {
        return Ok(false);
    }
    filter.exists(|expr| {
        let Some(subquery) = subquery_of(expr) else { return Ok(false) };
        if reads_both(join, expr)? {
            return Ok(true);
        }
        let is_exact = is_volatile(&subquery.subquery)? || is_unsafe(expr, Failure::Overflow)?;
        Ok(is_exact && plain::is_dependent(expr, node) && are_numbered(join)?)
    })
}

/// Whether the sides whose rows stay without a match can be numbered.
fn are_numbered(join: &Join) -> Result<bool> {
    Ok((join.join_type == JoinType::Right || can_number(&join.left)?)
        && (join.join_type == JoinType::Left || can_number(&join.right)?))
}

fn reads_both(join: &Join, expr: &Expr) -> Result<bool> {
    let columns = outer_columns_of(expr)?;
    let reads = |schema: &DFSchema| columns.iter().any(|column| schema.has_column(column));
    Ok(reads(join.left.schema()) && reads(join.right.schema()))
}

/// Joins the pairs that satisfy the condition to the sides whose rows stay without a match.
pub(super) fn joined_pairs(join: Join, filter: Expr) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let plan = match join.join_type {
        JoinType::Left => {
            let (left, number) = numbered(join.left.as_ref().clone())?;
            let of_right = join.right.schema().columns();
            let join = Join { left: Arc::new(left.clone()), ..join };
            let (pairs, [pair]) = pairs(join, filter, [number.clone()], of_right)?;
            joined(left, pairs, JoinType::Left, (vec![number], vec![pair]), None)?
        }
        JoinType::Right => {
            let (right, number) = numbered(join.right.as_ref().clone())?;
            let of_left = join.left.schema().columns();
            let join = Join { right: Arc::new(right.clone()), ..join };
            let (pairs, [pair]) = pairs(join, filter, [number.clone()], of_left)?;
            joined(pairs, right, JoinType::Right, (vec![pair], vec![number]), None)?
        }
        JoinType::Full => {
            let of_right = join.right.schema().columns().into_iter().map(Expr::Column);
            let of_right: Vec<Expr> = of_right.collect();
            let (left, of_lefts) = numbered(join.left.as_ref().clone())?;
            let (right, of_rights) = numbered(join.right.as_ref().clone())?;
            let (left_too, right_too) = (Arc::new(left.clone()), Arc::new(right.clone()));
            let join = Join { left: left_too, right: right_too, ..join };
            let numbers = [of_lefts.clone(), of_rights.clone()];
            let (pairs, [to_left, to_right]) = pairs(join, filter, numbers, vec![])?;
            let keys = (vec![to_right], vec![of_rights]);
            let rights = joined(pairs, right, JoinType::Right, keys, None)?;
            let paired = [Expr::Column(to_left.clone())].into_iter().chain(of_right);
            let rights = rights.project(paired)?.build()?;
            joined(left, rights, JoinType::Full, (vec![of_lefts], vec![to_left]), None)?
        }
        other => return not_impl_err!("a subquery in the condition of a {other} join"),
    };
    plan.project(columns)?.build()
}

/// The pairs that satisfy the condition: the numbers of their rows, under new names, and these columns.
fn pairs<const N: usize>(
    join: Join,
    filter: Expr,
    numbers: [Column; N],
    columns: Vec<Column>,
) -> Result<(LogicalPlan, [Column; N])> {
    let Join { left, right, on, join_constraint, null_equality, null_aware, .. } = join;
    let all = Join::try_new(
        left,
        right,
        on,
        None,
        JoinType::Inner,
        join_constraint,
        null_equality,
        null_aware,
    )?;
    let found = LogicalPlan::Filter(Filter::try_new(filter, Arc::new(LogicalPlan::Join(all)))?);
    let found = if has_some(&found)? { in_expressions(found)? } else { found };
    let names = numbers.each_ref().map(|_| unused("pair"));
    let renamed = numbers.into_iter().zip(&names);
    let renamed = renamed.map(|(number, name)| Expr::Column(number).alias(name));
    let pairs = LogicalPlanBuilder::from(found)
        .project(renamed.chain(columns.into_iter().map(Expr::Column)))?
        .build()?;
    Ok((pairs, names.map(Column::from_name)))
}
