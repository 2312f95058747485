//! Digits of seconds in casts: `x::TIMESTAMPTZ(2)` is `time_rounded(x::TIMESTAMPTZ, 2)`.

use datafusion::sql::sqlparser::ast::{DataType, Expr, TimezoneInfo, TypedString, Value};

use crate::dialect::tree;

/// Digits of a second that values have.
const DIGITS: u64 = 6;

/// Takes the digits out of a cast, or the type of a literal; [`round`] rounds to them.
pub(in crate::dialect) fn take(expr: &mut Expr) -> Option<u64> {
    let (Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. })) = expr
    else {
        return None;
    };
    let digits = match data_type {
        DataType::Timestamp(
            digits @ (None | Some(..=DIGITS)),
            TimezoneInfo::Tz | TimezoneInfo::WithTimeZone,
        ) => digits.replace(DIGITS),
        DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => return None,
        DataType::Timestamp(digits, _)
        | DataType::Time(digits, _)
        | DataType::Interval { precision: digits, .. } => match digits {
            Some(..=DIGITS) => digits.take(),
            _ => return None,
        },
        _ => return None,
    };
    digits.filter(|digits| *digits < DIGITS)
}

/// Rounds a time to digits of its seconds.
pub(in crate::dialect) fn round(time: &mut Expr, digits: u64) {
    let exact = std::mem::replace(time, Expr::value(Value::Null));
    let digits = Expr::value(Value::Number(digits.to_string(), false));
    *time = tree::call("time_rounded", vec![exact, digits]);
}
