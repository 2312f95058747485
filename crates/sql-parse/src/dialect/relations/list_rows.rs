//! Functions that return a row for each element of a list, and series in a select list.
//!
//! ```text
//! SELECT string_to_table('a,b', ',')            SELECT unnest(string_to_array('a,b', ','))
//! SELECT jsonb_array_elements(j)                SELECT jsonb_checked(unnest(json_elements(j)))
//! FROM t, regexp_split_to_table(t.a, ' ') w     FROM t, LATERAL (SELECT unnest(regexp_split_to_array(t.a, ' '))) w(w)
//! SELECT generate_series(1, 3) * 2              SELECT unnest(generate_series(1, 3)) * 2
//! FROM generate_series(0.0, 1, 0.5) s           FROM (SELECT unnest(generate_series(0, 10, 5)) * 0.1) s(s)
//! SELECT generate_series(1, $1)                 SELECT unnest(generate_series(1, CAST($1 AS BIGINT)))
//! SELECT list_sum(generate_series(1, 3))        unchanged: the argument of a function is the list, as in DuckDB
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, Select, SelectItem, UnaryOperator, Value,
};

use crate::dialect::expressions::times;
use crate::dialect::tree;
use crate::syntax::walk_own_expressions;

/// A function that returns rows.
pub(in crate::dialect) struct ListRows {
    name: &'static str,
    /// The function that returns the list of them.
    list: &'static str,
    /// The function that marks each element as JSON.
    mark: Option<&'static str>,
    /// Whether PostgreSQL names the column `value`, not after the function or the alias.
    pub(in crate::dialect) gives_value: bool,
}

/// Whether an expression contains a call that gives a row for each element of a list.
pub(in crate::dialect) fn has_rows(expr: &Expr) -> bool {
    let find = walk_own_expressions(expr, &mut |part| match gives_rows(part) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    find.is_break()
}

fn gives_rows(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let text = function.name.to_string();
    ["unnest", "generate_subscripts"].iter().any(|known| text.eq_ignore_ascii_case(known))
        || is_series(&function.name)
        || named(&function.name).is_some()
}

const fn plain(name: &'static str, list: &'static str) -> ListRows {
    ListRows { name, list, mark: None, gives_value: false }
}

const fn elements(name: &'static str, list: &'static str, mark: Option<&'static str>) -> ListRows {
    ListRows { name, list, mark, gives_value: true }
}

const FUNCTIONS: &[ListRows] = &[
    plain("regexp_split_to_table", "regexp_split_to_array"),
    plain("string_to_table", "string_to_array"),
    elements("json_array_elements", "json_elements", Some("json_checked")),
    elements("jsonb_array_elements", "json_elements", Some("jsonb_checked")),
    elements("json_array_elements_text", "json_element_texts", None),
    elements("jsonb_array_elements_text", "json_element_texts", None),
    plain("json_object_keys", "json_member_names"),
    plain("jsonb_object_keys", "json_member_names"),
    ListRows {
        name: "jsonb_path_query",
        list: "jsonb_path_list",
        mark: Some("jsonb_checked"),
        gives_value: false,
    },
    plain("pg_listening_channels", "listening_channels"),
    // In FROM `json_rows` makes columns of them.
    plain("json_each_text", "json_member_texts"),
    plain("jsonb_each", "json_members"),
    plain("jsonb_each_text", "json_member_texts"),
];

/// The function of this name, if it returns rows.
pub(in crate::dialect) fn named(name: &ObjectName) -> Option<&'static ListRows> {
    let name = name.to_string();
    FUNCTIONS.iter().find(|known| name.eq_ignore_ascii_case(known.name))
}

impl ListRows {
    /// The list whose elements a call returns as rows.
    pub(in crate::dialect) fn list(&self, args: &[FunctionArg]) -> Expr {
        list_of(self.name, self.list, args)
    }

    /// The rows of such a list.
    pub(in crate::dialect) fn rows(&self, list: Expr) -> Expr {
        let rows = tree::call("unnest", vec![list]);
        match self.mark {
            Some(mark) => tree::call(mark, vec![rows]),
            None => rows,
        }
    }
}

/// Rewrites a call outside of FROM.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let Some(known) = named(&function.name) else { return };
    let mut list = function.clone();
    list.name = ObjectName::from(vec![Ident::new(known.list)]);
    if let FunctionArguments::List(given) = &mut list.args {
        given.args.iter_mut().take(1).for_each(|arg| as_json(known.name, arg));
    }
    *expr = known.rows(Expr::Function(list));
}

/// The call of `list` whose elements the function `name` returns as rows.
pub(in crate::dialect) fn list_of(name: &str, list: &str, args: &[FunctionArg]) -> Expr {
    let mut args = args.to_vec();
    args.iter_mut().take(1).for_each(|arg| as_json(name, arg));
    tree::call_of(list, &args)
}

/// Converts the first argument of a JSONB function to JSONB, so that keys are unique, and a parameter of a JSON function to JSON.
fn as_json(name: &str, arg: &mut FunctionArg) {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return };
    let cast = if name.starts_with("jsonb_") {
        "jsonb_checked"
    } else if name.starts_with("json_") && tree::is_parameter(expr) {
        "json_checked"
    } else {
        return;
    };
    let given = std::mem::replace(expr, tree::text(String::new()));
    *expr = tree::call(cast, vec![given]);
}

/// Makes rows of the series in a select list, alone or in arithmetic.
pub(in crate::dialect) fn rewrite_select(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            series_rows(expr);
        }
    }
}

fn series_rows(expr: &mut Expr) {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus, StringConcat};
    match expr {
        Expr::Function(function) => {
            let FunctionArguments::List(list) = &function.args else { return };
            if is_series(&function.name)
                && let Some(rows) = decimals(&function.name, &list.args)
            {
                *expr = rows;
                return;
            }
            // With one bound it is only a function of lists.
            if is_series(&function.name) && list.args.len() > 1 {
                let series = series(&function.name, &list.args);
                *expr = tree::call("unnest", vec![series]);
            }
        }
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => series_rows(inner),
        Expr::Cast { expr: inner, data_type, .. } if !matches!(data_type, DataType::Array(_)) => {
            series_rows(inner);
        }
        Expr::BinaryOp { left, op: Plus | Minus | Multiply | Divide | Modulo, right } => {
            series_rows(left);
            series_rows(right);
        }
        // Next to a text; lists are joined differently.
        Expr::BinaryOp { left, op: StringConcat, right } if is_text(left) || is_text(right) => {
            series_rows(left);
            series_rows(right);
        }
        _ => {}
    }
}

/// A series as a list: of timestamps, or of numbers, which parameters without a type are then.
pub(in crate::dialect) fn series(name: &ObjectName, args: &[FunctionArg]) -> Expr {
    if let Some(moments) = times::series(name, args) {
        return moments;
    }
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let Some(mut exprs) = args.iter().map(expr).collect::<Option<Vec<Expr>>>() else {
        return tree::call_of(&name.to_string(), args);
    };
    if !exprs.iter().any(times::is_interval) {
        for parameter in exprs.iter_mut().filter(|expr| tree::is_parameter(expr)) {
            *parameter = tree::cast(parameter.clone(), DataType::BigInt(None));
        }
    }
    tree::call(&name.to_string(), exprs)
}

/// The rows of a series of constants with fraction digits: those of whole numbers, times the unit of the last digit.
pub(in crate::dialect) fn decimals(name: &ObjectName, args: &[FunctionArg]) -> Option<Expr> {
    let texts = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => number(expr),
        _ => None,
    });
    let texts = texts.collect::<Option<Vec<String>>>()?;
    let digits = |text: &String| text.split_once('.').map_or(0, |(_, behind)| behind.len());
    let digits = texts.iter().map(digits).max().filter(|digits| *digits > 0)?;
    if !(2..=3).contains(&texts.len()) {
        return None;
    }
    let whole = |text: &String| {
        let (before, behind) = text.split_once('.').unwrap_or((text, ""));
        let whole: i64 = format!("{before}{behind:0<digits$}").parse().ok()?;
        Some(Expr::value(Value::Number(whole.to_string(), false)))
    };
    let mut bounds = texts.iter().map(whole).collect::<Option<Vec<_>>>()?;
    if bounds.len() == 2 {
        bounds.push(whole(&"1".to_owned())?);
    }
    let rows = tree::call("unnest", vec![tree::call(&name.to_string(), bounds)]);
    let unit = Expr::value(Value::Number(format!("0.{:0>digits$}", 1), false));
    Some(Expr::Nested(Box::new(tree::binary(rows, BinaryOperator::Multiply, unit))))
}

/// The text of a number without an exponent, with its sign.
fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            number(expr).filter(|text| !text.starts_with('-')).map(|text| format!("-{text}"))
        }
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                is_plain.then(|| text.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

pub(in crate::dialect) fn is_series(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("generate_series")
}

fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(value.value, Value::SingleQuotedString(_)),
        Expr::Cast { data_type, .. } => !matches!(data_type, DataType::Array(_)),
        Expr::Nested(inner) => is_text(inner),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            is_text(left) || is_text(right)
        }
        _ => false,
    }
}
