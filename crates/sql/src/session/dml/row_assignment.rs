//! `SET (a, b) = (SELECT …)`: one row of a query, which runs once for all of its columns.
//!
//! ```text
//! get_field((SELECT named_struct(…) AS "assigned row of a, b" FROM (…)), 'value 0') AS a, get_field((…), 'value 1') AS b
//!     ▼
//! Projection: get_field("assigned row of a, b", 'value 0') AS a, get_field("assigned row of a, b", 'value 1') AS b
//!   Projection: …, (SELECT named_struct(…) FROM (…)) AS "assigned row of a, b"
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Subquery};
use datafusion::sql::sqlparser::ast::{Expr as AstExpr, ObjectName, Query, SelectItem, SetExpr};

use crate::session::dml::change::quoted;
use atoll_sql_parse::syntax::parsed_expr;

/// The name prefix of the column of such a query.
const ROW: &str = "assigned row of ";

/// Fields of the row of a query, for these columns: each contains the query, until it is planned.
pub(in crate::session) fn fields(query: &Query, columns: &[ObjectName]) -> Result<Vec<AstExpr>> {
    let field = |at: usize| format!("value {at}");
    let names: Vec<String> = (0..columns.len()).map(|at| quoted(&field(at)).to_string()).collect();
    let pairs = names.iter().enumerate().map(|(at, name)| format!("'{}', {name}", field(at)));
    let (pairs, names) = (pairs.collect::<Vec<_>>().join(", "), names.join(", "));
    // A column is set once, so no other query has this name.
    let of: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let row = quoted(&format!("{ROW}{}", of.join(", ")));
    let query = told_apart(query);
    let row =
        format!("(SELECT named_struct({pairs}) AS {row} FROM ({query}) AS \"values\" ({names}))");
    let fields = (0..columns.len()).map(|at| format!("get_field({row}, '{}')", field(at)));
    fields.map(|text| parsed_expr(&text)).collect()
}

/// The query with unique names for its values: `SELECT n, n`.
fn told_apart(query: &Query) -> Query {
    let mut query = query.clone();
    if let SetExpr::Select(select) = query.body.as_mut() {
        let mut seen = HashSet::new();
        for (at, item) in select.projection.iter_mut().enumerate() {
            if let SelectItem::UnnamedExpr(expr) = item
                && !seen.insert(expr.to_string())
            {
                let alias = quoted(&format!("value {at}"));
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
    }
    query
}

/// A select list in which each of these queries runs once.
pub(in crate::session) fn once(query: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = query else { return Ok(query) };
    let mut rows: Vec<(String, Expr)> = Vec::new();
    for expr in &projection.expr {
        expr.apply(|expr| {
            if let Some(name) = row_name(expr)
                && rows.iter().all(|(known, _)| *known != name)
            {
                rows.push((name, expr.clone()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if rows.is_empty() {
        return Ok(LogicalPlan::Projection(projection));
    }
    let columns = projection.input.schema().columns().into_iter().map(Expr::Column);
    let rows = rows.into_iter().map(|(name, row)| row.alias(name));
    let below = Projection::try_new(columns.chain(rows).collect(), projection.input)?;
    let in_columns = |expr: Expr| {
        let replaced = expr.transform_down(|expr| {
            Ok(match row_name(&expr) {
                Some(name) => Transformed::yes(Expr::Column(Column::from_name(name))),
                None => Transformed::no(expr),
            })
        });
        replaced.data()
    };
    let fields = projection.expr.into_iter().map(in_columns).collect::<Result<Vec<_>>>()?;
    let below = Arc::new(LogicalPlan::Projection(below));
    Projection::try_new(fields, below).map(LogicalPlan::Projection)
}

/// The name of the column of such a query.
fn row_name(expr: &Expr) -> Option<String> {
    let Expr::ScalarSubquery(Subquery { subquery, .. }) = expr else { return None };
    let name = subquery.schema().fields().first()?.name();
    name.starts_with(ROW).then(|| name.clone())
}
