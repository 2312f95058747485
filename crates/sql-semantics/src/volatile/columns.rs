//! The logical rule that computes columns of volatile calls where and as often as a query says.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort};
use datafusion::optimizer::AnalyzerRule;

use super::node::{fenced, unfenced};
use super::once::once;
use super::shared::has_calls;
use atoll_sql_common::logical::map_named;

/// Fences every projection, aggregate and window that makes volatile calls, so that the calls are made for
/// all rows, even if unused: DataFusion drops unused columns, and moves a column that only one branch of a
/// CASE reads into that branch.
///
/// Volatile calls in the select list of a sorted query are evaluated after the sort, as in PostgreSQL, so
/// `SELECT nextval('s'), x FROM t ORDER BY x` counts in row order.
#[derive(Debug)]
pub struct VolatileColumns;

impl AnalyzerRule for VolatileColumns {
    fn name(&self) -> &str {
        "volatile_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_calls(&plan)? {
            return Ok(plan);
        }
        let plan = plan
            .transform_up_with_subqueries(|plan| match plan {
                LogicalPlan::Sort(sort) => behind_sort(sort),
                plan => Ok(Transformed::no(plan)),
            })
            .data()?;
        let plan = plan.transform_up_with_subqueries(computed_once).data()?;
        let plan = plan.transform_up_with_subqueries(fence).data()?;
        without_fence(plan)
    }
}

fn computed_once(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    map_named(node, |expr| expr.transform_up(|expr| Ok(once(expr, &schema))))
}

fn fence(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let exprs = match &node {
        LogicalPlan::Projection(projection) => projection.expr.iter().collect(),
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.iter().chain(&aggregate.aggr_expr).collect()
        }
        LogicalPlan::Window(window) => window.window_expr.iter().collect::<Vec<_>>(),
        _ => return Ok(Transformed::no(node)),
    };
    if !exprs.iter().any(|expr| expr.is_volatile()) {
        return Ok(Transformed::no(node));
    }
    // With grouping sets, an aggregate has more columns than its expressions; a window's own columns come last.
    let columns = node.schema().columns();
    let of_input = columns.len().saturating_sub(exprs.len());
    let called: Vec<Column> = match &node {
        LogicalPlan::Aggregate(_) => columns,
        _ => {
            let own = columns.into_iter().skip(of_input).zip(exprs);
            own.filter(|(_, expr)| expr.is_volatile()).map(|(column, _)| column).collect()
        }
    };
    fenced(node, called).map(Transformed::yes)
}

/// A plan whose rows are all read needs no fence.
fn without_fence(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Limit(_) | LogicalPlan::Sort(_) | LogicalPlan::Dml(_) => {
            plan.map_children(|input| without_fence(input).map(Transformed::yes)).data()
        }
        plan => Ok(unfenced(plan)),
    }
}

/// Moves a sort below volatile calls that it does not sort by.
fn behind_sort(sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    };
    if !projection.expr.iter().any(Expr::is_volatile) {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let columns = projection.schema.columns();
    let made = |column: &Column| {
        let at = columns.iter().position(|own| own == column)?;
        Some(projection.expr[at].clone().unalias())
    };
    let mut keys = Vec::with_capacity(sort.expr.len());
    for key in &sort.expr {
        let expr = key.expr.clone().transform_up(|expr| {
            Ok(match &expr {
                Expr::Column(column) => match made(column) {
                    Some(made) => Transformed::yes(made),
                    None => Transformed::no(expr),
                },
                _ => Transformed::no(expr),
            })
        });
        let expr = expr.data()?;
        if expr.is_volatile() {
            return Ok(Transformed::no(LogicalPlan::Sort(sort)));
        }
        keys.push(key.with_expr(expr));
    }
    let input = Arc::clone(&projection.input);
    let below = LogicalPlan::Sort(Sort { expr: keys, input, fetch: sort.fetch });
    let projection = Projection::try_new(projection.expr.clone(), Arc::new(below))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}
