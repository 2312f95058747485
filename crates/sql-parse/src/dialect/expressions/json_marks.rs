//! Keeps JSON as JSON through CASE, coalesce and subqueries, whose results DataFusion returns without the mark.
//!
//! ```text
//! SELECT CASE WHEN a THEN (SELECT json_object('b', b) FROM t) END      SELECT json_checked(CASE …)
//! SELECT coalesce(jsonb_agg(b), '[]') FROM t                           SELECT jsonb_checked(coalesce(…))
//! ```

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Select, SelectItem,
    SetExpr, Value,
};

use crate::dialect::tree;

/// Functions that return JSON.
const GIVES: [&str; 12] = [
    "array_to_json",
    "json",
    "json_agg",
    "json_array",
    "json_build_array",
    "json_build_object",
    "json_group_array",
    "json_group_object",
    "json_object",
    "json_object_agg",
    "row_to_json",
    "to_json",
];

/// Functions that return JSONB.
const GIVES_JSONB: [&str; 13] = [
    "jsonb_agg",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_checked",
    "jsonb_extract_path",
    "jsonb_insert",
    "jsonb_object_agg",
    "jsonb_path_query_array",
    "jsonb_path_query_first",
    "jsonb_set",
    "jsonb_strip_nulls",
    "to_jsonb",
    "try_jsonb_checked",
];

/// Marks the results of a SELECT.
pub(in crate::dialect) fn rewrite(select: &mut Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let is_unmarked = match expr {
            Expr::Case { .. } | Expr::Subquery(_) => true,
            Expr::Function(function) => is_coalesce(function),
            _ => false,
        };
        let checked = match gives(expr) {
            Given::Json if is_unmarked => "json_checked",
            Given::Jsonb if is_unmarked => "jsonb_checked",
            _ => continue,
        };
        let value = std::mem::replace(expr, Expr::value(Value::Null));
        *expr = tree::call(checked, vec![value]);
    }
}

/// The kind of an expression's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Json,
    Jsonb,
    Null,
    /// A literal, which becomes JSONB next to JSONB.
    Literal,
    Other,
}

impl Given {
    /// The common kind of several results.
    fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, other) | (other, Self::Null) => other,
            (Self::Jsonb, Self::Literal) | (Self::Literal, Self::Jsonb) => Self::Jsonb,
            (left, right) if left == right => left,
            _ => Self::Other,
        }
    }
}

fn is_coalesce(function: &Function) -> bool {
    function.name.to_string().eq_ignore_ascii_case("coalesce")
}

fn of_function(function: &Function) -> Given {
    let name = function.name.to_string();
    let is_among = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    if is_among(&GIVES) {
        return Given::Json;
    }
    if is_among(&GIVES_JSONB) {
        return Given::Jsonb;
    }
    match &function.args {
        FunctionArguments::List(list) if is_coalesce(function) => {
            let arguments = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => gives(expr),
                _ => Given::Other,
            });
            arguments.fold(Given::Null, Given::joined)
        }
        _ => Given::Other,
    }
}

fn gives(expr: &Expr) -> Given {
    match expr {
        Expr::Nested(inner) => gives(inner),
        Expr::Value(value) => match &value.value {
            Value::Null => Given::Null,
            Value::SingleQuotedString(_) => Given::Literal,
            _ => Given::Other,
        },
        Expr::Cast { data_type: DataType::JSONB, .. } => Given::Jsonb,
        Expr::Function(function) => of_function(function),
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
            let all = results.chain(else_result.as_deref()).map(gives);
            all.fold(Given::Null, Given::joined)
        }
        _ => Given::Other,
    }
}
