//! Casts between dates, timestamps, times and intervals as in PostgreSQL: excess fraction digits are
//! rounded, and `infinity` stays infinite. Arrow truncates, and multiplies.

use std::sync::Arc;

use datafusion::arrow::array::types::{
    Date32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::error::ArrowError;

use atoll_functions::temporal::{Endless, cast_moments, set_aside};

const NANOS_OF_DAY: i64 = 86_400_000_000_000;

/// Whether this module implements the cast.
pub(super) fn is_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Interval, Time64, Timestamp};
    match (from, to) {
        (Date32, Timestamp(..)) | (Timestamp(..), Date32 | Time64(_)) => true,
        (Timestamp(from, zone), Timestamp(to, other)) => zone == other && from != to,
        (Time64(TimeUnit::Nanosecond), Interval(IntervalUnit::MonthDayNano))
        | (Interval(IntervalUnit::MonthDayNano), Time64(TimeUnit::Nanosecond)) => true,
        _ => false,
    }
}

/// Casts the values.
pub(crate) fn convert(
    values: &ArrayRef,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    match (values.data_type(), to) {
        (DataType::Date32, DataType::Timestamp(unit, zone)) => {
            let local = midnights(values.as_primitive(), *unit, options)?;
            match zone {
                None => Ok(local),
                Some(_) => cast_moments(&local, to, options),
            }
        }
        (DataType::Timestamp(..), DataType::Date32) => cast_moments(values, to, options),
        // Infinite values have no time of day: NULL, as in PostgreSQL.
        (DataType::Timestamp(..), DataType::Time64(_)) => match set_aside(values)? {
            Some((finite, _)) => cast_with_options(&finite, to, options),
            None => cast_with_options(values, to, options),
        },
        (DataType::Timestamp(from, _), DataType::Timestamp(to_unit, _))
            if nanos(*to_unit) < nanos(*from) =>
        {
            cast_moments(values, to, options)
        }
        (DataType::Timestamp(from, _), DataType::Timestamp(to_unit, _)) => {
            let values = cast_with_options(values, &DataType::Int64, options)?;
            let step = nanos(*to_unit) / nanos(*from);
            let rounded = |value: i64| match value {
                endless if Endless::of_moment(endless).is_some() => endless,
                value => value.saturating_add(step / 2).div_euclid(step),
            };
            let rounded: Int64Array = values.as_primitive::<Int64Type>().unary(rounded);
            cast_with_options(&rounded, to, options)
        }
        (DataType::Time64(_), _) => {
            let times = values.as_primitive::<Time64NanosecondType>();
            let intervals: PrimitiveArray<IntervalMonthDayNanoType> =
                times.unary(|nanos| IntervalMonthDayNano::new(0, 0, nanos));
            Ok(Arc::new(intervals))
        }
        _ => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
            let times: PrimitiveArray<Time64NanosecondType> =
                intervals.unary(|interval| interval.nanoseconds.rem_euclid(NANOS_OF_DAY));
            Ok(Arc::new(times))
        }
    }
}

/// Returns the number of nanoseconds in a unit.
fn nanos(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns the beginnings of days.
fn midnights(
    days: &PrimitiveArray<Date32Type>,
    unit: TimeUnit,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    match unit {
        TimeUnit::Second => midnights_in::<TimestampSecondType>(days, unit, options),
        TimeUnit::Millisecond => midnights_in::<TimestampMillisecondType>(days, unit, options),
        TimeUnit::Microsecond => midnights_in::<TimestampMicrosecondType>(days, unit, options),
        TimeUnit::Nanosecond => midnights_in::<TimestampNanosecondType>(days, unit, options),
    }
}

fn midnights_in<T: ArrowPrimitiveType<Native = i64>>(
    days: &PrimitiveArray<Date32Type>,
    unit: TimeUnit,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    let of_day = NANOS_OF_DAY / nanos(unit);
    let midnight = |days: i32| match Endless::of_days(days) {
        Some(endless) => Some(endless.moment()),
        None => i64::from(days).checked_mul(of_day),
    };
    let midnights: PrimitiveArray<T> = match options.safe {
        true => days.unary_opt(midnight),
        false => days.try_unary(|days| {
            let why = || ArrowError::CastError(format!("day {days} is out of range"));
            midnight(days).ok_or_else(why)
        })?,
    };
    Ok(Arc::new(midnights))
}
