//! `ORDER BY ALL` where DataFusion does not support it.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, OrderByOptions, Query, SelectItem, SetExpr, Value,
};

/// DataFusion ignores ORDER BY ALL after anything but a SELECT, and refuses it over expressions:
/// positions say the same.
pub(crate) fn order_by_all(query: &mut Query) -> Result<()> {
    let Some(order_by) = &mut query.order_by else { return Ok(()) };
    let OrderByKind::All(options) = order_by.kind else { return Ok(()) };
    match columns(&query.body) {
        Some(columns) => {
            let positions = (1..=columns).map(|column| position(column, options)).collect();
            order_by.kind = OrderByKind::Expressions(positions);
            Ok(())
        }
        // All of them are columns, which DataFusion knows.
        None if matches!(query.body.as_ref(), SetExpr::Select(_)) => Ok(()),
        None => not_impl_err!(
            "ORDER BY ALL after a set operation over * is not supported; name the columns"
        ),
    }
}

fn position(column: usize, options: OrderByOptions) -> OrderByExpr {
    let expr = Expr::Value(Value::Number(column.to_string(), false).into());
    OrderByExpr { expr, options, with_fill: None }
}

/// The number of its columns, if visible.
fn columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| {
                matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::Query(query) => columns(&query.body),
        SetExpr::SetOperation { left, right, .. } => columns(left).or_else(|| columns(right)),
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}
