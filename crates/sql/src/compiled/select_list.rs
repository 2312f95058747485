//! The select list of a plan.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

/// The expressions of projections over a scan, in the scan's columns, and the scan.
pub(crate) fn select_list(plan: &LogicalPlan) -> Option<(Vec<Expr>, &TableScan)> {
    match projected(plan)? {
        (exprs, LogicalPlan::TableScan(scan)) if scan.fetch.is_none() => Some((exprs, scan)),
        _ => None,
    }
}

/// The expressions of projections over a node that reads or writes a table, in its columns, and that node.
pub(crate) fn projected(plan: &LogicalPlan) -> Option<(Vec<Expr>, &LogicalPlan)> {
    match plan {
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => {
            let columns = plan.schema().columns().into_iter();
            Some((columns.map(Expr::Column).collect(), plan))
        }
        LogicalPlan::Projection(projection) => {
            let (below, leaf) = projected(&projection.input)?;
            let schema = projection.input.schema();
            let exprs = projection.expr.iter().map(|expr| inlined(expr, schema, &below));
            Some((exprs.collect::<Option<_>>()?, leaf))
        }
        LogicalPlan::SubqueryAlias(alias) => projected(&alias.input),
        _ => None,
    }
}

/// An expression with its columns replaced by the expressions that compute them.
pub(crate) fn inlined(expr: &Expr, schema: &DFSchema, below: &[Expr]) -> Option<Expr> {
    let inlined = expr.clone().transform_up(|expr| match &expr {
        Expr::Column(column) => {
            let at = schema.index_of_column(column)?;
            Ok(Transformed::yes(below[at].clone().unalias()))
        }
        _ => Ok(Transformed::no(expr)),
    });
    Some(inlined.ok()?.data.unalias())
}
