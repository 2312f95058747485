//! Correlated subqueries that DataFusion joins correctly and that are left to it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, BinaryExpr, Expr, Filter, LogicalPlan, Operator};

use super::branches::subquery_of;
use super::columns::outer_columns;
use crate::arithmetic::{Failure, failure};
use crate::volatile::is_volatile;

/// Whether a plan's expressions contain a subquery, or the plan is a LATERAL subquery.
pub(super) fn is_needed(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        found = found || matches!(node, LogicalPlan::Subquery(_));
        node.apply_expressions(|expr| {
            found = found || expr.exists(|expr| Ok(subquery_of(expr).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether an expression of a node is a subquery to join here.
pub(super) fn is_dependent(expr: &Expr, node: &LogicalPlan) -> bool {
    let Some(subquery) = subquery_of(expr) else { return false };
    let is_scalar = matches!(expr, Expr::ScalarSubquery(_));
    let value_is_outer = match expr {
        Expr::InSubquery(membership) => membership.expr.contains_outer(),
        Expr::SetComparison(comparison) => comparison.expr.contains_outer(),
        _ => false,
    };
    if value_is_outer {
        return true;
    }
    let rows = subquery.subquery.as_ref();
    let Ok(all) = outer_columns(rows, None) else { return false };
    if all.is_empty() {
        return false;
    }
    let mut own = DFSchema::empty();
    node.inputs().into_iter().for_each(|input| own.merge(input.schema()));
    if all.iter().any(|(column, _)| !own.has_column(column)) {
        return true;
    }
    let is_in_place = match node {
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => true,
        _ => !is_scalar,
    };
    let is_plain = if is_scalar { is_plain_value(rows) } else { is_plain_rows(rows) };
    let is_plain = is_plain && !is_volatile(rows).unwrap_or(true);
    !is_in_place || !is_plain
}

/// A single aggregate over rows selected by equality with outer columns.
fn is_plain_value(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            !projection.expr.iter().any(Expr::contains_outer) && is_plain_value(&projection.input)
        }
        LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) => {
            group_expr.is_empty()
                && !aggr_expr.iter().any(Expr::contains_outer)
                && is_plain_filter(input, true)
                && never_fails(aggr_expr, input)
        }
        _ => false,
    }
}

/// Whether the arguments can be computed for rows that no outer row needs.
fn never_fails(args: &[Expr], input: &LogicalPlan) -> bool {
    args.iter().all(|arg| failure(arg, input.schema()) != Failure::Any)
}

/// Rows selected by a filter.
fn is_plain_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            !projection.expr.iter().any(Expr::contains_outer) && is_plain_rows(&projection.input)
        }
        _ => is_plain_filter(plan, false),
    }
}

fn is_plain_filter(plan: &LogicalPlan, only_equal: bool) -> bool {
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan else { return false };
    let conjuncts = split_conjunction(predicate);
    let is_plain =
        |conjunct: &Expr| !conjunct.contains_outer() || !only_equal || is_equality(conjunct);
    conjuncts.into_iter().all(is_plain)
        && outer_columns(input, None).is_ok_and(|refs| refs.is_empty())
}

fn is_equality(conjunct: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = conjunct else {
        return false;
    };
    let is_outer = |expr: &Expr| matches!(expr, Expr::OuterReferenceColumn(..));
    (is_outer(left) && matches!(**right, Expr::Column(_)))
        || (is_outer(right) && matches!(**left, Expr::Column(_)))
}
