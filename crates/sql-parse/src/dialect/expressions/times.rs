//! Dates, times and intervals in PostgreSQL's syntax.
//!
//! ```text
//! INTERVAL '1 day 02:03', '1-2', 'P1DT2H'     INTERVAL '… months … days … nanoseconds'
//! INTERVAL '1:30' HOUR TO MINUTE              likewise
//! INTERVAL '-1 2:03'                          likewise, and of two values the one that IntervalStyle means
//! INTERVAL (n + 1) DAY                        (n + 1) * INTERVAL '1 day'
//! t AT TIME ZONE z                            timezone(z, t)
//! date_trunc('day', t, z)                     timezone(z, date_trunc('day', timezone(z, t)))
//! (a, b) OVERLAPS (c, d)                      overlaps(a, b, c, d)
//! localtimestamp, localtime, now() to digits  casts of now()
//! make_interval(days => 3)                    make_interval(0, 0, 0, 3, 0, 0, 0)
//! make_timestamptz(…), make_timestamptz(…, z)  CAST(make_timestamp(…) AS TIMESTAMPTZ), timezone(z, …)
//! date(x)                                     CAST(x AS DATE)
//! FROM generate_series(a, b, INTERVAL '1 day')  unnest(timestamp_series(a, b, INTERVAL '1 day'))
//! ```

use atoll_functions::temporal::{IntervalField, IntervalFields, IntervalFormat, read_interval};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, DateTimeField, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Interval, ObjectName, TimezoneInfo, Value,
};

use super::precisions;
use crate::dialect::tree::{binary, call, cast, text};
use atoll_sql_common::error::SqlState;

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) -> Result<()> {
    let rewritten = match expr {
        Expr::Interval(of) => interval(of)?,
        Expr::AtTimeZone { timestamp, time_zone } => {
            Some(call("timezone", vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()]))
        }
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => overlaps(left, right),
        Expr::Identifier(name) if name.quote_style.is_none() => local(&name.value, None),
        Expr::Function(function) => function_call(function),
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expr = rewritten;
    }
    Ok(())
}

/// An interval in the syntax that DataFusion reads; `None` if it already is.
fn interval(of: &mut Interval) -> Result<Option<Expr>> {
    let field = of.leading_field.as_ref();
    let written = match of.value.as_ref() {
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(text) => text.clone(),
            _ => return Ok(None),
        },
        Expr::UnaryOp { .. } | Expr::BinaryOp { .. } => return Ok(None),
        number => {
            let Some(field) = field else { return Ok(None) };
            let one = Interval {
                value: Box::new(text(format!("1 {field}"))),
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            };
            let number = Expr::Nested(Box::new(number.clone()));
            let product = binary(number, BinaryOperator::Multiply, Expr::Interval(one));
            return Ok(Some(Expr::Nested(Box::new(product))));
        }
    };
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    let (written, range) = match (field, field.and_then(place)) {
        (None, _) => (written, None),
        (Some(_), Some(first)) => {
            let last = of.last_field.as_ref().map_or(Some(first), place);
            (written, last.map(|last| (first, last)))
        }
        // Weeks, quarters and the like are not fields that an interval ends with.
        (Some(field), None) if is_number(&written) => (format!("{written} {field}"), None),
        (Some(_), None) => (written, None),
    };
    let digits = of.fractional_seconds_precision.or(of.leading_precision);
    let digits = digits.and_then(|digits| u32::try_from(digits).ok());
    let read = |format| read_interval(&written, IntervalFields { range, digits }, format);
    let Some(plain) = read(IntervalFormat::Postgres) else {
        let message = format!("invalid input syntax for type interval: \"{written}\"");
        return Err(SqlState::INVALID_DATETIME_FORMAT.error(message));
    };
    *of = canonical(plain);
    // A value that was written here has a part before its first sign.
    let is_own = written.starts_with(NO_YEARS);
    let standard = read(IntervalFormat::SqlStandard).filter(|it| *it != plain && !is_own);
    Ok(standard.map(|standard| by_style(plain, standard)))
}

/// How the texts of both values of an ambiguous interval begin.
const NO_YEARS: &str = "0 years ";

/// An interval whose parts are each one of DataFusion's.
fn canonical(of: IntervalMonthDayNano) -> Interval {
    let IntervalMonthDayNano { months, days, nanoseconds } = of;
    interval_of(format!("{months} months {days} days {nanoseconds} nanoseconds"))
}

fn interval_of(written: String) -> Interval {
    Interval {
        value: Box::new(text(written)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }
}

/// `CASE current_setting('intervalstyle') WHEN 'sql_standard' THEN standard ELSE plain END`
fn by_style(plain: IntervalMonthDayNano, standard: IntervalMonthDayNano) -> Expr {
    let condition = text("sql_standard".to_owned());
    let value = |of: IntervalMonthDayNano| {
        let IntervalMonthDayNano { months, days, nanoseconds } = of;
        let parts = format!("{NO_YEARS}{months} months {days} days {nanoseconds} nanoseconds");
        Expr::Interval(interval_of(parts))
    };
    let result = value(standard);
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: Some(Box::new(call("current_setting", vec![text("intervalstyle".to_owned())]))),
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(value(plain))),
    }
}

/// A series of timestamps as a list; `None` if its step is not an interval.
pub(in crate::dialect) fn series(name: &ObjectName, args: &[FunctionArg]) -> Option<Expr> {
    if !name.to_string().eq_ignore_ascii_case("generate_series") {
        return None;
    }
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let mut args = args.iter().map(plain).collect::<Option<Vec<Expr>>>()?;
    let step = args.get_mut(2).filter(|step| is_interval(step))?;
    if matches!(step, Expr::Value(_)) {
        *step = cast(step.clone(), DataType::Interval { fields: None, precision: None });
    }
    (args.len() == 3).then(|| call("timestamp_series", args))
}

/// Whether one of these arguments is syntactically a timestamp, which DataFusion 55.2 refuses in a series in FROM.
pub(in crate::dialect) fn are_moments(args: &[FunctionArg]) -> bool {
    args.iter().any(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => match expr {
            Expr::TypedString(typed) => matches!(typed.data_type, DataType::Timestamp(..)),
            Expr::Cast { data_type, .. } => matches!(data_type, DataType::Timestamp(..)),
            _ => false,
        },
        _ => false,
    })
}

/// Whether an expression is syntactically an interval, or a text, which cannot be the step of a series of numbers.
pub(in crate::dialect) fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Interval(_) => true,
        Expr::Value(literal) => matches!(literal.value, Value::SingleQuotedString(_)),
        Expr::Cast { data_type, .. } => matches!(data_type, DataType::Interval { .. }),
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_interval(inner),
        Expr::BinaryOp { left, right, .. } => is_interval(left) || is_interval(right),
        Expr::Function(function) => function.name.to_string().eq_ignore_ascii_case("make_interval"),
        _ => false,
    }
}

fn place(field: &DateTimeField) -> Option<IntervalField> {
    Some(match field {
        DateTimeField::Year | DateTimeField::Years => IntervalField::Year,
        DateTimeField::Month | DateTimeField::Months => IntervalField::Month,
        DateTimeField::Day | DateTimeField::Days => IntervalField::Day,
        DateTimeField::Hour | DateTimeField::Hours => IntervalField::Hour,
        DateTimeField::Minute | DateTimeField::Minutes => IntervalField::Minute,
        DateTimeField::Second | DateTimeField::Seconds => IntervalField::Second,
        _ => return None,
    })
}

fn overlaps(left: &Expr, right: &Expr) -> Option<Expr> {
    let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) else { return None };
    (left.len() == 2 && right.len() == 2)
        .then(|| call("overlaps", left.iter().chain(right).cloned().collect()))
}

/// `localtimestamp` and the like, to this many digits.
fn local(name: &str, digits: Option<u64>) -> Option<Expr> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    let now = || call("now", vec![]);
    let mut time = if is("localtimestamp") {
        cast(now(), DataType::Timestamp(None, TimezoneInfo::None))
    } else if is("localtime") {
        cast(
            cast(now(), DataType::Timestamp(None, TimezoneInfo::None)),
            DataType::Time(None, TimezoneInfo::None),
        )
    } else if is("current_timestamp") && digits.is_some() {
        cast(now(), DataType::Timestamp(Some(6), TimezoneInfo::Tz))
    } else if is("current_time") && digits.is_some() {
        call("timetz_checked", vec![now()])
    } else {
        return None;
    };
    if let Some(digits) = digits {
        precisions::round(&mut time, digits);
    }
    Some(time)
}

fn function_call(function: &Function) -> Option<Expr> {
    let [part] = function.name.0.as_slice() else { return None };
    let name = part.as_ident().filter(|name| name.quote_style.is_none())?.value.as_str();
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    let args = match &function.args {
        FunctionArguments::None => return local(name, None),
        FunctionArguments::List(list) => &list.args,
        FunctionArguments::Subquery(_) => return None,
    };
    if is("make_interval") {
        return make_interval(args);
    }
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let mut args = args.iter().map(plain).collect::<Option<Vec<Expr>>>()?;
    match args.len() {
        1 if is("date") => args.pop().map(|value| cast(value, DataType::Date)),
        1 => local(name, digits(args.first()?)),
        3 if is("date_trunc") => {
            let zone = args.pop()?;
            let there = call("timezone", vec![zone.clone(), args.pop()?]);
            Some(call("timezone", vec![zone, call("date_trunc", vec![args.pop()?, there])]))
        }
        6 if is("make_timestamptz") => {
            let there = call("make_timestamp", args);
            Some(cast(there, DataType::Timestamp(Some(6), TimezoneInfo::Tz)))
        }
        7 if is("make_timestamptz") => {
            let zone = args.pop()?;
            Some(call("timezone", vec![zone, call("make_timestamp", args)]))
        }
        _ => None,
    }
}

fn digits(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Value(literal) => match &literal.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The call with all seven parts; `None` if it has them.
fn make_interval(args: &[FunctionArg]) -> Option<Expr> {
    const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    let zero = || Expr::Value(Value::Number("0".to_owned(), false).into());
    let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
    if args.len() > PARTS.len() || args.len() == PARTS.len() && !args.iter().any(is_named) {
        return None;
    }
    let mut parts = vec![zero(); PARTS.len()];
    for (at, arg) in args.iter().enumerate() {
        let (at, arg) = match arg {
            FunctionArg::Unnamed(arg) => (at, arg),
            FunctionArg::Named { name, arg, .. } => {
                (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part))?, arg)
            }
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part))?, arg)
            }
            FunctionArg::ExprNamed { .. } => return None,
        };
        let FunctionArgExpr::Expr(value) = arg else { return None };
        parts[at] = value.clone();
    }
    Some(call("make_interval", parts))
}
