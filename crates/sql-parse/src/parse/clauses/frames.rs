//! Window frames by PostgreSQL's rules: where they may begin and end, and the values of their offsets.
//!
//! DataFusion (55.2) reads an offset with a minus as it is (apache/datafusion#24902), takes NULL for UNBOUNDED, and
//! computes aggregates of frames that end before they begin from fewer rows than none. Here each offset becomes a
//! number that is not negative, or an interval in one form, and a frame that ends before it begins becomes one without
//! rows.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use atoll_functions::WrittenNumber;
use atoll_functions::temporal::{IntervalFields, IntervalFormat, interval_length, read_interval};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Interval, UnaryOperator, Value, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowSpec,
};

use crate::dialect;
use crate::syntax::walk_expressions;
use atoll_sql_common::error::{SqlState, stated_err};

/// Most months and days of an offset, about 10,000 years: `range_key` of the functions has that much room between the
/// last moment and `infinity`.
const MONTHS_MAX: i32 = 12 * 10_000;
const DAYS_MAX: i32 = 365 * 10_000;

/// The shortest and the longest month, in days.
const MONTH_DAYS: (i128, i128) = (28, 31);
const DAY_NANOS: i128 = 86_400_000_000_000;

/// Checks the frame of a window, and evaluates its offsets.
pub(super) fn check(spec: &mut WindowSpec) -> Result<()> {
    let keys = spec.order_by.len();
    let Some(frame) = &mut spec.window_frame else { return Ok(()) };
    check_bounds(frame)?;
    if frame.units == WindowFrameUnits::Groups && keys == 0 {
        return stated_err!(WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause");
    }
    let start = offset(&mut frame.start_bound, frame.units, "starting")?;
    let end = match &mut frame.end_bound {
        Some(bound) => offset(bound, frame.units, "ending")?,
        None => None,
    };
    let has_offset = offset_of(&frame.start_bound).is_some()
        || frame.end_bound.as_ref().is_some_and(|bound| offset_of(bound).is_some());
    if frame.units == WindowFrameUnits::Range && has_offset && keys != 1 {
        return stated_err!(
            WINDOWING_ERROR,
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        );
    }
    if let (Some(start), Some(end)) = (start, end)
        && is_empty(frame, &start, &end)?
    {
        return no_rows(frame);
    }
    Ok(())
}

/// Checks where a frame begins and ends, with PostgreSQL's messages.
fn check_bounds(frame: &WindowFrame) -> Result<()> {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let why = match (&frame.start_bound, &frame.end_bound) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (_, Some(Preceding(None))) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Some(Preceding(_))) => {
            "frame starting from current row cannot have preceding rows"
        }
        (Following(_), None) => "frame starting from following row cannot end with current row",
        (Following(_), Some(Preceding(_) | CurrentRow)) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    Err(SqlState::WINDOWING_ERROR.error(why))
}

/// The bound of a frame, relative to the current row.
enum Offset {
    Number(WrittenNumber),
    Interval(IntervalMonthDayNano),
}

/// The offset of a bound.
pub(super) fn offset_of(bound: &WindowFrameBound) -> Option<&Expr> {
    match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            offset.as_deref()
        }
        WindowFrameBound::CurrentRow => None,
    }
}

/// The name of a parameter that is an offset, perhaps after casts, and the type of the outermost cast.
pub(super) fn parameter_of(offset: &Expr) -> Option<(&str, Option<&DataType>)> {
    match offset {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => {
            parameter_of(inner)
        }
        Expr::Cast { expr, data_type, .. } => {
            parameter_of(expr).map(|(name, _)| (name, Some(data_type)))
        }
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => Some((name, None)),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the offset of a bound, and writes it in the form that DataFusion reads; `None` if there is none, or a
/// parameter whose value is not known yet.
fn offset(
    bound: &mut WindowFrameBound,
    units: WindowFrameUnits,
    which: &str,
) -> Result<Option<Offset>> {
    let (WindowFrameBound::Preceding(Some(expr)) | WindowFrameBound::Following(Some(expr))) = bound
    else {
        return Ok(None);
    };
    if parameter_of(expr).is_some() {
        return Ok(None);
    }
    let clause = units.to_string();
    let Some(mut read) = read(expr, false, &clause)? else {
        let state = SqlState::NULL_VALUE_NOT_ALLOWED;
        return Err(state.error(format!("frame {which} offset must not be null")));
    };
    if let Offset::Number(number) = &mut read
        && units != WindowFrameUnits::Range
    {
        *number = whole(number)?;
    }
    let is_negative = match &read {
        Offset::Number(number) => number.is_negative(),
        Offset::Interval(interval) => interval_length(*interval) < 0,
    };
    if is_negative {
        let why = match units {
            WindowFrameUnits::Range => "invalid preceding or following size in window function",
            _ => &format!("frame {which} offset must not be negative"),
        };
        return Err(SqlState::INVALID_FRAME_OFFSET.error(why));
    }
    **expr = match &read {
        Offset::Number(number) => {
            let text = number.to_string().trim_start_matches('-').to_owned();
            Expr::Value(Value::Number(text, false).into())
        }
        Offset::Interval(_) if units != WindowFrameUnits::Range => {
            return stated_err!(
                DATATYPE_MISMATCH,
                "argument of {clause} must be type bigint, not type interval"
            );
        }
        Offset::Interval(interval) => written(*interval)?,
    };
    Ok(Some(read))
}

/// A number of rows: halves are rounded up, as in the cast to BIGINT.
fn whole(number: &WrittenNumber) -> Result<WrittenNumber> {
    let text = number.to_string();
    let (whole, behind) = text.split_once('.').unwrap_or((&text, ""));
    let up = match (behind.as_bytes().first(), whole.starts_with('-')) {
        (Some(b'5'..=b'9'), true) => -1,
        (Some(b'5'..=b'9'), false) => 1,
        _ => 0,
    };
    let rows = whole.parse::<i64>().ok().and_then(|rows| rows.checked_add(up));
    match rows.and_then(|rows| WrittenNumber::parse(&rows.to_string())) {
        Some(rows) => Ok(rows),
        None => {
            stated_err!(NUMERIC_VALUE_OUT_OF_RANGE, "the offset {text} is out of range for BIGINT")
        }
    }
}

/// The offset that an expression gives; `None` if it is NULL.
fn read(expr: &Expr, is_negated: bool, clause: &str) -> Result<Option<Offset>> {
    match expr {
        Expr::Nested(inner) => read(inner, is_negated, clause),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => read(expr, !is_negated, clause),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => read(expr, is_negated, clause),
        Expr::Cast { expr, data_type, .. } => cast(expr, data_type, is_negated, clause),
        Expr::Value(value) => match &value.value {
            Value::Null => Ok(None),
            Value::Number(text, _) => number(text, is_negated, clause).map(Some),
            Value::SingleQuotedString(text) => unknown(text, is_negated, clause).map(Some),
            _ => Err(not_written_out(expr, clause)),
        },
        Expr::Interval(Interval { value, leading_field: None, .. }) => match value.as_ref() {
            Expr::Value(value) => match &value.value {
                // A text without the word INTERVAL comes as an interval, too.
                Value::SingleQuotedString(text) => unknown(text, is_negated, clause).map(Some),
                _ => Err(not_written_out(expr, clause)),
            },
            _ => Err(not_written_out(expr, clause)),
        },
        Expr::Interval(_) => {
            let mut plain = expr.clone();
            dialect::rewrite_expr(&mut plain)?;
            match &plain {
                Expr::Interval(Interval { leading_field: None, .. }) => {
                    read(&plain, is_negated, clause)
                }
                _ => Err(not_written_out(expr, clause)),
            }
        }
        _ => Err(not_written_out(expr, clause)),
    }
}

/// A constant with a type: a number of texts, or an interval.
fn cast(
    value: &Expr,
    data_type: &DataType,
    is_negated: bool,
    clause: &str,
) -> Result<Option<Offset>> {
    let text = match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    };
    match (data_type, text) {
        (DataType::Interval { .. }, Some(text)) => interval(text, is_negated).map(Some),
        _ => read(value, is_negated, clause),
    }
}

fn number(text: &str, is_negated: bool, clause: &str) -> Result<Offset> {
    let signed = match (is_negated, text.trim().strip_prefix('-')) {
        (true, Some(positive)) => positive.to_owned(),
        (true, None) => format!("-{}", text.trim()),
        (false, _) => text.trim().to_owned(),
    };
    match WrittenNumber::parse(&signed) {
        Some(number) => Ok(Offset::Number(number)),
        None => stated_err!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "the offset {signed} of {clause} is out of range"
        ),
    }
}

/// A text, whose type depends on the frame: a number, or an interval.
fn unknown(text: &str, is_negated: bool, clause: &str) -> Result<Offset> {
    if WrittenNumber::parse(text).is_some() {
        return number(text, is_negated, clause);
    }
    if text.trim().eq_ignore_ascii_case("nan") {
        return stated_err!(
            INVALID_FRAME_OFFSET,
            "invalid preceding or following size in window function"
        );
    }
    interval(text, is_negated)
}

fn interval(text: &str, is_negated: bool) -> Result<Offset> {
    let Some(read) = read_interval(text, IntervalFields::default(), IntervalFormat::Postgres)
    else {
        return stated_err!(
            INVALID_TEXT_REPRESENTATION,
            "the offset '{text}' of a frame is neither a number nor an interval"
        );
    };
    let sign = if is_negated { -1 } else { 1 };
    let parts = (
        read.months.checked_mul(sign),
        read.days.checked_mul(sign),
        read.nanoseconds.checked_mul(i64::from(sign)),
    );
    match parts {
        (Some(months), Some(days), Some(nanos)) => {
            Ok(Offset::Interval(IntervalMonthDayNano::new(months, days, nanos)))
        }
        _ => stated_err!(DATETIME_FIELD_OVERFLOW, "interval out of range"),
    }
}

/// An interval in the syntax that DataFusion reads in a frame.
fn written(interval: IntervalMonthDayNano) -> Result<Expr> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    if months.unsigned_abs() > MONTHS_MAX.unsigned_abs()
        || days.unsigned_abs() > DAYS_MAX.unsigned_abs()
    {
        return stated_err!(
            DATETIME_FIELD_OVERFLOW,
            "interval out of range: the offset of a RANGE frame is at most 10,000 years"
        );
    }
    let text = format!("{months} months {days} days {nanoseconds} nanoseconds");
    Ok(Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text).into())),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

fn not_written_out(expr: &Expr, clause: &str) -> DataFusionError {
    let is_column = |expr: &Expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    if walk_expressions(expr, &mut { is_column }).is_break() {
        let why = format!("argument of {clause} must not contain variables");
        return SqlState::INVALID_COLUMN_REFERENCE.error(why);
    }
    SqlState::FEATURE_NOT_SUPPORTED.error(format!(
        "{clause} with the offset {expr} is not supported; write the offset as a number or as an \
         interval"
    ))
}

/// Whether a frame ends before it begins in every row; an error where that depends on the row.
fn is_empty(frame: &WindowFrame, start: &Offset, end: &Offset) -> Result<bool> {
    let (near, far) = match (&frame.start_bound, &frame.end_bound) {
        (WindowFrameBound::Following(_), Some(WindowFrameBound::Following(_))) => (start, end),
        (WindowFrameBound::Preceding(_), Some(WindowFrameBound::Preceding(_))) => (end, start),
        _ => return Ok(false),
    };
    match (near, far) {
        (Offset::Number(near), Offset::Number(far)) => {
            Ok(near.compare_sizes(far) == Ordering::Greater)
        }
        (Offset::Interval(near), Offset::Interval(far)) => is_longer(*near, *far),
        _ => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "RANGE between a number and an interval is not supported; write both offsets as one or \
             the other"
        ),
    }
}

/// Whether an interval is longer than another one, whatever the lengths of its months.
fn is_longer(one: IntervalMonthDayNano, other: IntervalMonthDayNano) -> Result<bool> {
    let months = i128::from(one.months) - i128::from(other.months);
    let days = i128::from(one.days) - i128::from(other.days);
    let nanos = i128::from(one.nanoseconds) - i128::from(other.nanoseconds);
    let length = |month_days: i128| (months * month_days + days) * DAY_NANOS + nanos;
    let (low, high) = (length(MONTH_DAYS.0), length(MONTH_DAYS.1));
    match (low.min(high), low.max(high)) {
        (low, _) if low > 0 => Ok(true),
        (_, high) if high <= 0 => Ok(false),
        _ => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "RANGE between months and about as many days is not supported; write both offsets in \
             months, or both in days"
        ),
    }
}

/// Replaces a frame that ends before it begins: the new one begins and ends after all rows; DataFusion refuses the
/// bounds as they are. Under RANGE rows with NULL would still have their peers.
fn no_rows(frame: &mut WindowFrame) -> Result<()> {
    if frame.units == WindowFrameUnits::Range {
        return stated_err!(
            FEATURE_NOT_SUPPORTED,
            "RANGE frames that end before they begin are not supported; write the bound that comes \
             first in the order first"
        );
    }
    let behind_all = || {
        let number = Value::Number(i64::MAX.to_string(), false);
        WindowFrameBound::Following(Some(Box::new(Expr::Value(number.into()))))
    };
    frame.start_bound = behind_all();
    frame.end_bound = Some(behind_all());
    Ok(())
}
