//! The texts of defaults, as PostgreSQL shows them.
//!
//! ```text
//! jsonb_checked('{}')      '{}'::jsonb
//! 'sad'                    'sad'::mood, the type of the column; 7 for '7' of an integer
//! nextval('s')             nextval('s'::regclass)
//! ```

use std::ops::ControlFlow;

use atoll_functions::RangeForm;
use atoll_sql_common::pg_type::{PgType, format_type, type_oid};
use atoll_sql_parse::syntax::{parsed_expr, sql_text, walk_expressions_mut};
use datafusion::arrow::datatypes::Field;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    Value,
};

use super::objects::{PgObjects, PgRelation};

/// Functions that casts to types become, with these types.
const CASTS: [(&str, &str); 7] = [
    ("json_checked", "json"),
    ("jsonb_checked", "jsonb"),
    ("uuid_checked", "uuid"),
    ("inet_checked", "inet"),
    ("cidr_checked", "cidr"),
    ("macaddr_checked", "macaddr"),
    ("timetz_checked", "time with time zone"),
];

/// The text of a column's default.
pub(super) fn shown(objects: &PgObjects, text: &str, column: &Field) -> String {
    let Ok(mut expr) = parsed_expr(text) else { return text.to_owned() };
    let mut is_changed = false;
    let _ = walk_expressions_mut(&mut expr, &mut |expr| {
        if let Some(cast) = as_cast(expr) {
            *expr = cast;
            is_changed = true;
        }
        if let Some(argument) = sequence_argument(expr)
            && let Some(sequence) = text_of(argument).and_then(|it| objects.relation_named(&it))
        {
            let name = Expr::value(Value::SingleQuotedString(objects.shown_name(sequence)));
            *argument = cast(name, "regclass");
            is_changed = true;
        }
        ControlFlow::<()>::Continue(())
    });
    match &expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(constant) => typed(objects, constant, column),
            _ => text.to_owned(),
        },
        // `'x'::TEXT` of a text column
        Expr::Cast { expr: constant, data_type, .. } if is_typed(constant, data_type, column) => {
            typed(objects, &text_of(constant).unwrap_or_default(), column)
        }
        expr if is_changed => sql_text(expr),
        _ => text.to_owned(),
    }
}

/// Whether it is a text constant that is cast to the type of its column.
fn is_typed(constant: &Expr, data_type: &DataType, column: &Field) -> bool {
    let own = format_type(PgType::of_field(column).oid.into(), -1);
    matches!(constant, Expr::Value(_))
        && text_of(constant).is_some()
        && data_type.to_string().eq_ignore_ascii_case(&own)
}

/// A text constant with the type of its column.
fn typed(objects: &PgObjects, constant: &str, column: &Field) -> String {
    let of = PgType::of_field(column);
    let number = constant.trim();
    match of.oid {
        type_oid::INT2 | type_oid::INT4 | type_oid::INT8 if number.parse::<u64>().is_ok() => {
            return number.to_owned();
        }
        type_oid::BOOL if number.eq_ignore_ascii_case("true") => return "true".to_owned(),
        type_oid::BOOL if number.eq_ignore_ascii_case("false") => return "false".to_owned(),
        _ => {}
    }
    let name = objects.types.format_type(of.oid.into());
    let name = match of.oid {
        type_oid::BPCHAR => "bpchar".to_owned(),
        oid => name.unwrap_or_else(|| format_type(oid.into(), -1)),
    };
    format!("'{}'::{name}", constant.replace('\'', "''"))
}

/// A call that a cast became, as that cast.
fn as_cast(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let name = function.name.to_string().to_lowercase();
    let argument = first_argument(function)?;
    if let Some((_, to)) = CASTS.iter().find(|(known, _)| *known == name) {
        return Some(cast(argument.clone(), to));
    }
    if let Some(of) = name.strip_suffix("_checked").and_then(RangeForm::named) {
        return Some(cast(argument.clone(), of.name()));
    }
    // `with_type(left('abc'::VARCHAR, 3), 'varchar(3)')`
    let constant = Expr::value(Value::SingleQuotedString(constant(argument)?));
    match (name.as_str(), second_text(function)?.split_once('(')?.0) {
        ("with_type", "varchar") => Some(cast(constant, "character varying")),
        ("with_type", "bpchar") => Some(cast(constant, "bpchar")),
        _ => None,
    }
}

/// The text that a constant cut to a length is.
fn constant(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return text_of(expr) };
    let text = constant(first_argument(function)?)?;
    match function.name.to_string().to_lowercase().as_str() {
        "left" => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let length: usize = list.args.get(1)?.to_string().parse().ok()?;
            Some(text.chars().take(length).collect())
        }
        "rtrim" => Some(text.trim_end_matches(' ').to_owned()),
        _ => None,
    }
}

fn cast(expr: Expr, to: &str) -> Expr {
    Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(expr),
        data_type: DataType::Custom(Ident::new(to).into(), vec![]),
        array: false,
        format: None,
    }
}

fn first_argument(function: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    }
}

fn second_text(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.get(1)? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => text_of(argument),
        _ => None,
    }
}

/// The sequences that a default names.
pub(super) fn sequences_in<'a>(objects: &'a PgObjects, text: &str) -> Vec<&'a PgRelation> {
    let mut found = Vec::new();
    let Some(mut expr) = parsed_expr(text).ok().filter(|_| text.contains("nextval")) else {
        return found;
    };
    let _ = walk_expressions_mut(&mut expr, &mut |expr| {
        let named = sequence_argument(expr).and_then(|argument| text_of(argument));
        found.extend(named.and_then(|name| objects.relation_named(&name)));
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The argument of `nextval`.
fn sequence_argument(expr: &mut Expr) -> Option<&mut Expr> {
    let Expr::Function(function) = expr else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("nextval") {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.first_mut()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    }
}

/// The string that an expression is, or casts.
fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => text_of(expr),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}
