//! Times rounded to digits of their seconds: the casts to TIMESTAMPTZ(2), TIME(0) and INTERVAL(3).

use datafusion::arrow::array::types::{
    IntervalMonthDayNanoType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::Result;

use super::zoned_times::rounded_texts;
use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, as_first};
use crate::scalar::text::texts::entry;

/// Digits of a second that values have.
const DIGITS: u32 = 6;

const NANOS_OF_MICRO: i64 = 1_000;

/// Rounds microseconds half away from zero; the infinities, which have no neighbours, stay.
pub(super) fn rounded(micros: i64, digits: u32) -> i64 {
    let step = 10_i64.pow(DIGITS.saturating_sub(digits));
    let sum = micros.checked_add(if micros < 0 { -step / 2 } else { step / 2 });
    sum.map_or(micros, |sum| sum / step * step)
}

fn time_rounded(call: &Call) -> Result<ArrayRef> {
    let array = &call.arrays[0];
    let digits = |row: usize| u32::try_from(call.whole(1).value(row)).unwrap_or(DIGITS);
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let values = array.as_primitive::<TimestampMicrosecondType>();
            let of = |row: usize| match values.value(row) {
                endless @ (i64::MIN | i64::MAX) => Ok(Some(endless)),
                finite => Ok(Some(rounded(finite, digits(row)))),
            };
            call.primitives::<TimestampMicrosecondType>(of)
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let values = array.as_primitive::<Time64MicrosecondType>();
            call.plain::<Time64MicrosecondType>(|row| {
                Ok(Some(rounded(values.value(row), digits(row))))
            })
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            let values = array.as_primitive::<Time64NanosecondType>();
            call.plain::<Time64NanosecondType>(|row| {
                let micros = values.value(row) / NANOS_OF_MICRO;
                Ok(Some(rounded(micros, digits(row)) * NANOS_OF_MICRO))
            })
        }
        DataType::Interval(_) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            call.primitives::<IntervalMonthDayNanoType>(|row| {
                let IntervalMonthDayNano { months, days, nanoseconds } = values.value(row);
                let micros = rounded(nanoseconds / NANOS_OF_MICRO, digits(row));
                let nanoseconds = micros.saturating_mul(NANOS_OF_MICRO);
                Ok(Some(IntervalMonthDayNano::new(months, days, nanoseconds)))
            })
        }
        of if of.is_string() => rounded_texts(call, digits),
        other => call.fails(format_args!("{other} has no digits of seconds")),
    }
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[entry!(
    "time_rounded" [], "time, digits", &[Arguments::Are(&[Takes::Any, Takes::Whole])], as_first,
    "A time, timestamp or interval whose seconds have so many digits; the cast to TIME(3) and the like.",
    "time_rounded(TIME '10:00:00.55', 1) = TIME '10:00:00.6'",
    time_rounded
)]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (micros, digits, expected) in [
            (1_500_000, 0, 2_000_000),
            (-1_500_000, 0, -2_000_000),
            (1_499_999, 0, 1_000_000),
            (123_456, 3, 123_000),
            (123_500, 3, 124_000),
            (7, 6, 7),
            (i64::MAX, 0, i64::MAX),
        ] {
            assert_eq!(rounded(micros, digits), expected);
        }
    }
}
