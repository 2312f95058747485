//! The outer columns that subqueries reference.

use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::branches::subquery_of;

/// Returns a unique column name.
pub(super) fn unused(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("${what}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Collects the outer columns that a subquery and its nested subqueries reference: all of them, or only those of one
/// outer plan.
pub(super) fn outer_columns(
    plan: &LogicalPlan,
    of: Option<&DFSchema>,
) -> Result<Vec<(Column, Expr)>> {
    let mut found: Vec<(Column, Expr)> = Vec::new();
    collect(plan, &mut found)?;
    found.retain(|(column, _)| of.is_none_or(|schema| schema.has_column(column)));
    Ok(found)
}

fn collect(plan: &LogicalPlan, found: &mut Vec<(Column, Expr)>) -> Result<()> {
    plan.apply(|node| {
        let mut own = DFSchema::empty();
        node.inputs().into_iter().for_each(|input| own.merge(input.schema()));
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr
                    && !found.iter().any(|(known, _)| known == column)
                {
                    found.push((column.clone(), expr.clone()));
                }
                if let Some(subquery) = subquery_of(expr) {
                    let mut inner = Vec::new();
                    collect(&subquery.subquery, &mut inner)?;
                    inner.retain(|(column, _)| !own.has_column(column));
                    inner.retain(|(column, _)| !found.iter().any(|(known, _)| known == column));
                    found.append(&mut inner);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Replaces outer columns by plain columns if the plan has them.
pub(super) fn unwrapped(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    })
    .data()
}
