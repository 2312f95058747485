//! The sort key of a RANGE frame with offsets, cast to a type in which adding an offset neither wraps nor rounds.
//!
//! DataFusion (55.2) adds the offset in the key's type. If the type cannot hold the sum, the frame ends at the end
//! of the partition, including rows with NULL; if it cannot hold the offset, the frame is unbounded; and
//! the addition changes the type of decimals, so they are no longer compared. Offsets are added to this key instead:
//!
//! | key | offset | becomes |
//! |---|---|---|
//! | integers, decimals | a number | a decimal with room for the sum and the offset's digits |
//! | floats | a number | DOUBLE |
//! | dates | an interval | unchanged; TIMESTAMP if the interval has hours |
//! | timestamps | an interval | microseconds at least |
//! | times | an interval of hours | TIMESTAMP, in which a sum does not wrap at midnight |
//!
//! `infinity` and `-infinity` become distant values, to which offsets can be added, and which no sum reaches.
//! The order of the key is preserved, so that sorted input is not sorted again.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Date32Type, Field, FieldRef,
    Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::planner::RawWindowExpr;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WindowFrame, WindowFrameBound, WindowFrameUnits,
};

use crate::failure::FunctionFailure;
use crate::scalar::WrittenNumber;
use crate::sql_name;
use crate::temporal::{IntervalFields, IntervalFormat, read_interval};

/// Days from 1970 to the last timestamp to which an offset is added, and to the stand-in for `infinity`. There is room
/// for two offsets of 10,000 years between them, and for one after them.
const LAST_DAYS: i64 = 180_000 * 365;
const ENDLESS_DAYS: i64 = 205_000 * 365;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Digits before the point of the largest DOUBLE.
const DOUBLE_WHOLE: usize = 309;

/// Rewrites the call of a window function so that its RANGE frame adds its offsets in a type that holds the sums.
pub(crate) fn ranged(mut call: RawWindowExpr) -> RawWindowExpr {
    let frame = &call.window_frame;
    if frame.units != WindowFrameUnits::Range {
        return call;
    }
    let texts =
        [&frame.start_bound, &frame.end_bound].into_iter().filter_map(|bound| match bound {
            WindowFrameBound::Preceding(ScalarValue::Utf8(Some(text)))
            | WindowFrameBound::Following(ScalarValue::Utf8(Some(text))) => Some(text.as_str()),
            _ => None,
        });
    if let Some(offsets) = Offsets::from_texts(texts)
        && let [key] = call.order_by.as_mut_slice()
    {
        let function = ScalarUDF::from(RangeKey::new(offsets));
        key.expr = function.call(vec![key.expr.clone()]);
        call.window_frame = waiting(&call.window_frame);
    }
    call
}

/// The same frame, with the end `n PRECEDING` as `-n FOLLOWING`.
///
/// DataFusion (55.2) computes frames that end before the current row as soon as it has this row. The peers of a NULL or
/// an infinity, which come later, belong to its frame too, whatever the offset is; an end that follows waits for them.
fn waiting(frame: &WindowFrame) -> WindowFrame {
    let WindowFrameBound::Preceding(ScalarValue::Utf8(Some(text))) = &frame.end_bound else {
        return frame.clone();
    };
    let negated = match read_interval(text, IntervalFields::default(), IntervalFormat::Postgres) {
        Some(of) if WrittenNumber::parse(text).is_none() => {
            let (months, days) = (-i64::from(of.months), -i64::from(of.days));
            format!("{months} months {days} days {} nanoseconds", -i128::from(of.nanoseconds))
        }
        _ => format!("-{text}"),
    };
    let end = WindowFrameBound::Following(ScalarValue::Utf8(Some(negated)));
    WindowFrame::new_bounds(frame.units, frame.start_bound.clone(), end)
}

/// The offsets added to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Offsets {
    /// Numbers with this many digits before and after the point.
    Numbers {
        whole: usize,
        behind: usize,
    },
    Intervals {
        have_days: bool,
        have_time: bool,
    },
}

impl Offsets {
    fn from_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Option<Self> {
        texts.fold(None, |all, text| match (all, WrittenNumber::parse(text)) {
            (None, Some(number)) => {
                let (whole, behind) = number.places();
                Some(Self::Numbers { whole, behind })
            }
            (Some(Self::Numbers { whole, behind }), Some(number)) => {
                let places = number.places();
                Some(Self::Numbers { whole: whole.max(places.0), behind: behind.max(places.1) })
            }
            (all, _) => {
                let read = read_interval(text, IntervalFields::default(), IntervalFormat::Postgres)
                    .unwrap_or_default();
                let days = read.months != 0 || read.days != 0;
                let time = read.nanoseconds != 0;
                let (have_days, have_time) = match all {
                    Some(Self::Intervals { have_days, have_time }) => (have_days, have_time),
                    _ => (false, false),
                };
                let (have_days, have_time) = (have_days || days, have_time || time);
                Some(Self::Intervals { have_days, have_time })
            }
        })
    }

    /// Returns the type in which these are added to a key.
    fn key_type(self, key: &DataType) -> Result<DataType> {
        use DataType::{
            Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary, Float16,
            Float32, Float64, Time32, Time64, Timestamp,
        };
        let micros = TimeUnit::Microsecond;
        Ok(match (self, key) {
            (_, Dictionary(_, of)) => self.key_type(of)?,
            (Self::Numbers { whole, .. }, Float16 | Float32 | Float64) if whole < DOUBLE_WHOLE => {
                Float64
            }
            (Self::Numbers { whole, behind }, of) if of.is_integer() => {
                // 64 bits have at most 20 digits.
                decimal(whole.max(20), behind)?
            }
            (
                Self::Numbers { whole, behind },
                Decimal32(precision, scale)
                | Decimal64(precision, scale)
                | Decimal128(precision, scale)
                | Decimal256(precision, scale),
            ) => {
                let own = i16::from(*precision) - i16::from(*scale);
                let own_behind = usize::try_from(*scale).unwrap_or(0);
                decimal(whole.max(usize::try_from(own).unwrap_or(0)), behind.max(own_behind))?
            }
            (Self::Intervals { have_time: false, .. }, Date32) => Date32,
            (Self::Intervals { .. }, Date32 | Date64) => Timestamp(micros, None),
            (Self::Intervals { .. }, Timestamp(TimeUnit::Nanosecond, zone)) => {
                Timestamp(TimeUnit::Nanosecond, zone.clone())
            }
            (Self::Intervals { .. }, Timestamp(_, zone)) => Timestamp(micros, zone.clone()),
            (Self::Intervals { have_days: false, .. }, Time64(TimeUnit::Nanosecond)) => {
                Timestamp(TimeUnit::Nanosecond, None)
            }
            (Self::Intervals { have_days: false, .. }, Time32(_) | Time64(_)) => {
                Timestamp(micros, None)
            }
            (offsets, of) => return Err(offsets.unsupported(of)),
        })
    }

    fn unsupported(self, key: &DataType) -> DataFusionError {
        let offset = match self {
            Self::Numbers { .. } => "a number as its offset",
            Self::Intervals { .. } => "an interval as its offset",
        };
        let message = format!(
            "RANGE with {offset} is not supported for ORDER BY of type {}; offsets of numbers are numbers, \
             those of dates and times are intervals",
            sql_name(key)
        );
        FunctionFailure::error("0A000", message)
    }
}

/// Returns a decimal type that holds the sum of two values with this many digits.
fn decimal(whole: usize, behind: usize) -> Result<DataType> {
    let digits = whole + behind;
    let scale = i8::try_from(behind).unwrap_or(i8::MAX);
    // A sum has one more digit.
    if digits < usize::from(DECIMAL128_MAX_PRECISION) {
        return Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale));
    }
    if digits < usize::from(DECIMAL256_MAX_PRECISION) {
        return Ok(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale));
    }
    let message = format!(
        "a RANGE frame adds numbers of {digits} digits; at most {} are possible",
        DECIMAL256_MAX_PRECISION - 1
    );
    Err(FunctionFailure::error("22003", message))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RangeKey {
    offsets: Offsets,
    signature: Signature,
}

impl RangeKey {
    fn new(offsets: Offsets) -> Self {
        Self { offsets, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for RangeKey {
    fn name(&self) -> &str {
        "range_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [key] => self.offsets.key_type(key),
            other => internal_err!("a frame has one sort key, not {}", other.len()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        match arguments.arg_fields {
            [key] => {
                let of = self.offsets.key_type(key.data_type())?;
                Ok(Arc::new(Field::new(self.name(), of, key.is_nullable())))
            }
            other => internal_err!("a frame has one sort key, not {}", other.len()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = arguments.return_field.data_type();
        match arguments.args.as_slice() {
            [ColumnarValue::Array(key)] => Ok(ColumnarValue::Array(as_key(key, of)?)),
            [ColumnarValue::Scalar(key)] => {
                let key = as_key(&key.to_array()?, of)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&key, 0)?))
            }
            other => internal_err!("a frame has one sort key, not {}", other.len()),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |key| key.sort_properties))
    }

    fn preserves_lex_ordering(&self, _: &[ExprProperties]) -> Result<bool> {
        Ok(true)
    }
}

fn as_key(key: &ArrayRef, of: &DataType) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Dictionary, Time32, Time64, Timestamp};
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let key = match (key.data_type(), of) {
        (Dictionary(_, values), _) => return as_key(&cast(key, values)?, of),
        (Time32(_) | Time64(_), Timestamp(unit, _)) => {
            let since_midnight = cast(key, &Time64(*unit))?;
            cast(&since_midnight, &DataType::Int64)?
        }
        (Date32 | Date64, _) => {
            let days = cast_with_options(key, &Date32, &options)?;
            let near = |days: i32| bounded(days.into(), i32::MAX.into(), 1).map(|days| days as i32);
            let days = days.as_primitive::<Date32Type>().try_unary::<_, Date32Type, _>(near)?;
            Arc::new(days)
        }
        (Timestamp(unit, zone), Timestamp(TimeUnit::Microsecond, _)) => {
            let (own, factor) = match unit {
                TimeUnit::Second => (1, SECOND),
                TimeUnit::Millisecond => (1_000, 1_000),
                TimeUnit::Microsecond | TimeUnit::Nanosecond => (SECOND, 1),
            };
            let near = |value: i64| Ok(bounded(value, i64::MAX, DAY * own)? * factor);
            let counts = cast(key, &DataType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>();
            let micros = counts.try_unary::<_, TimestampMicrosecondType, DataFusionError>(near)?;
            Arc::new(micros.with_timezone_opt(zone.clone()))
        }
        _ => Arc::clone(key),
    };
    Ok(cast_with_options(&key, of, &options)?)
}

/// Moves `infinity` and `-infinity`, the last value and the one before its counterpart, near enough that offsets can be
/// added to them, but further away than any sum. `day` is the number of units in a day.
fn bounded(value: i64, last: i64, day: i64) -> Result<i64> {
    if value == last {
        return Ok(ENDLESS_DAYS * day);
    }
    if value == -last - 1 {
        return Ok(-ENDLESS_DAYS * day);
    }
    match value.unsigned_abs() <= (LAST_DAYS * day).unsigned_abs() {
        true => Ok(value),
        false => {
            let message =
                "timestamp out of range: RANGE with an offset knows the years up to 180,000";
            Err(FunctionFailure::error("22008", message.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(texts: &[&str], of: DataType) -> Option<DataType> {
        Offsets::from_texts(texts.iter().copied())?.key_type(&of).ok()
    }

    #[test]
    fn keys_hold_the_sums_and_the_digits_of_their_offsets() {
        use DataType::{Decimal128, Decimal256, Float64, Int64, Utf8};
        assert_eq!(key(&["1"], Int64), Some(Decimal128(38, 0)));
        assert_eq!(key(&["1", "0.125"], Int64), Some(Decimal128(38, 3)));
        assert_eq!(key(&["0.005"], Decimal128(10, 2)), Some(Decimal128(38, 3)));
        assert_eq!(key(&["1"], Decimal128(38, 10)), Some(Decimal256(76, 10)));
        assert_eq!(key(&["1"], Float64), Some(Float64));
        assert_eq!(key(&["1"], Utf8), None);
        assert_eq!(key(&[], Int64), None);
    }

    #[test]
    fn dates_have_hours_only_where_their_offsets_have_them() {
        use DataType::{Date32, Time64, Timestamp};
        let micros = TimeUnit::Microsecond;
        assert_eq!(key(&["1 months 2 days 0 nanoseconds"], Date32), Some(Date32));
        assert_eq!(key(&["1 day", "1 hour"], Date32), Some(Timestamp(micros, None)));
        assert_eq!(key(&["1 hour"], Time64(micros)), Some(Timestamp(micros, None)));
        assert_eq!(key(&["1 day"], Time64(micros)), None);
        assert_eq!(key(&["1"], Date32), None);
    }
}
