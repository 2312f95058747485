//! JSON stays JSON through CASE and subqueries, whose results DataFusion gives without the mark.
//!
//! ```text
//! SELECT CASE WHEN a THEN (SELECT json_object('b', b) FROM t) END      SELECT json_checked(CASE …)
//! ```

use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem, SetExpr, Value};

use super::tree;

/// Functions that give JSON.
const GIVES: [&str; 5] = ["json_object", "json_build_object", "json_array", "to_json", "json"];

/// Marks what a SELECT gives.
pub(super) fn rewrite(select: &mut Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        if matches!(expr, Expr::Case { .. } | Expr::Subquery(_)) && gives(expr) == Given::Json {
            let value = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = tree::call("json_checked", vec![value]);
        }
    }
}

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Json,
    Null,
    Other,
}

fn gives(expr: &Expr) -> Given {
    match expr {
        Expr::Nested(inner) => gives(inner),
        Expr::Value(value) if value.value == Value::Null => Given::Null,
        Expr::Function(function) => {
            let name = function.name.to_string();
            match GIVES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                true => Given::Json,
                false => Given::Other,
            }
        }
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => {
                    gives(expr)
                }
                _ => Given::Other,
            },
            _ => Given::Other,
        },
        Expr::Case { conditions, else_result, .. } => {
            let results = conditions.iter().map(|when| &when.result);
            let mut all = results.chain(else_result.as_deref()).map(gives);
            all.try_fold(Given::Null, |so_far, next| match (so_far, next) {
                (_, Given::Other) => Err(()),
                (Given::Null, next) => Ok(next),
                (so_far, _) => Ok(so_far),
            })
            .unwrap_or(Given::Other)
        }
        _ => Given::Other,
    }
}
