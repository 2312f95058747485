//! Rows of a list beside the keys of a grouping.
//!
//! ```text
//! SELECT a, unnest(l), count(*) FROM t GROUP BY a, l     … GROUP BY a, l, TRUE
//! ```
//!
//! DataFusion takes the keys of a grouping for unique also where its rows are multiplied (see `unnested_keys` in
//! `sql-semantics`), and groups a query around it by more columns than it names. A key that the select list lacks
//! ends that.

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Value};

use crate::dialect::relations::list_rows::has_rows;

pub(in crate::dialect) fn rewrite(select: &mut Select) {
    let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by else { return };
    let is_row_list = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_rows(expr),
        _ => false,
    };
    let is_plain = !keys.is_empty() && modifiers.is_empty();
    if is_plain && select.projection.iter().any(is_row_list) {
        keys.push(Expr::value(Value::Boolean(true)));
    }
}
