//! Casts between dates, timestamps, times and intervals as PostgreSQL has them: what is behind the digits of a type is
//! rounded, and `infinity` stays what it is. Arrow cuts off, and multiplies.

use std::sync::Arc;

use datafusion::arrow::array::types::{
    Date32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, Int64Array, PrimitiveArray, Scalar,
    make_array,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::error::ArrowError;

const NANOS_OF_DAY: i64 = 86_400_000_000_000;

/// Whether the cast is one of those here.
pub(super) fn is_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Interval, Time64, Timestamp};
    match (from, to) {
        (Date32, Timestamp(..)) | (Timestamp(..), Date32) => true,
        (Timestamp(from, zone), Timestamp(to, other)) => zone == other && nanos(*from) < nanos(*to),
        (Time64(TimeUnit::Nanosecond), Interval(IntervalUnit::MonthDayNano))
        | (Interval(IntervalUnit::MonthDayNano), Time64(TimeUnit::Nanosecond)) => true,
        _ => false,
    }
}

/// The values in the other type.
pub(super) fn convert(
    values: &ArrayRef,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    match (values.data_type(), to) {
        (DataType::Date32, DataType::Timestamp(unit, zone)) => {
            let local = midnights(values.as_primitive(), *unit, options)?;
            match zone {
                None => Ok(local),
                Some(_) => finite(&local, to, options),
            }
        }
        (DataType::Timestamp(..), DataType::Date32) => finite(values, to, options),
        (DataType::Timestamp(from, _), DataType::Timestamp(to_unit, _)) => {
            let values = cast_with_options(values, &DataType::Int64, options)?;
            let step = nanos(*to_unit) / nanos(*from);
            let rounded = |value: i64| match value {
                i64::MIN | i64::MAX => value,
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

/// Arrow's cast of dates and timestamps, as of local times to instants of a time zone; those that are endless stay so.
pub(super) fn finite(
    values: &ArrayRef,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    match without_endless(values)? {
        Some((others, endless)) => {
            let (others, _) = others.get();
            let others = make_array(others.to_data());
            endless.put_back(cast_with_options(&others, to, options)?)
        }
        None => cast_with_options(values, to, options),
    }
}

/// The days or moments of an array of which some are endless.
pub(super) struct Endless(Int64Array);

/// The finite values beside those that are endless.
pub(super) type Apart = (Box<dyn Datum>, Endless);

/// The finite dates or timestamps, with NULL for those that are endless, and all of them; none where all are finite.
pub(super) fn without_endless(values: &dyn Datum) -> Result<Option<Apart>, ArrowError> {
    let (array, is_constant) = values.get();
    let has_some = match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values();
            days.iter().any(|days| matches!(*days, i32::MIN | i32::MAX))
        }
        DataType::Timestamp(..) => {
            let raw = array.to_data();
            raw.buffer::<i64>(0).iter().any(|value| matches!(*value, i64::MIN | i64::MAX))
        }
        _ => false,
    };
    if !has_some {
        return Ok(None);
    }
    let raw = match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            days.unary::<_, Int64Type>(|days| match days {
                i32::MIN => i64::MIN,
                i32::MAX => i64::MAX,
                days => days.into(),
            })
        }
        _ => cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
    };
    let is_finite = |value: i64| !matches!(value, i64::MIN | i64::MAX);
    let finite = raw.unary_opt::<_, Int64Type>(|value| is_finite(value).then_some(value));
    let finite = match array.data_type() {
        DataType::Date32 => cast(&cast(&finite, &DataType::Int32)?, &DataType::Date32)?,
        other => cast(&finite, other)?,
    };
    let finite: Box<dyn Datum> = match is_constant {
        true => Box::new(Scalar::new(finite)),
        false => Box::new(finite),
    };
    Ok(Some((finite, Endless(raw))))
}

impl Endless {
    /// The results for the finite ones, with the endless ones where they were.
    pub(super) fn put_back(&self, results: ArrayRef) -> Result<ArrayRef, ArrowError> {
        let to = results.data_type().clone();
        let is_date = to == DataType::Date32;
        let whole = match is_date {
            true => cast(&cast(&results, &DataType::Int32)?, &DataType::Int64)?,
            false => cast(&results, &DataType::Int64)?,
        };
        let whole = whole.as_primitive::<Int64Type>();
        let endless = |row: usize| {
            let at = if self.0.len() == 1 { 0 } else { row };
            let value = self.0.is_valid(at).then(|| self.0.value(at))?;
            let is_endless = matches!(value, i64::MIN | i64::MAX);
            match is_date {
                true => is_endless.then_some(value.clamp(i32::MIN.into(), i32::MAX.into())),
                false => is_endless.then_some(value),
            }
        };
        let of =
            |row: usize| endless(row).or_else(|| whole.is_valid(row).then(|| whole.value(row)));
        let all: Int64Array = (0..whole.len()).map(of).collect();
        match is_date {
            true => cast(&cast(&all, &DataType::Int32)?, &to),
            false => cast(&all, &to),
        }
    }
}

/// How many nanoseconds a unit has.
fn nanos(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The beginnings of days.
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
    let midnight = |days: i32| match days {
        i32::MIN => Some(i64::MIN),
        i32::MAX => Some(i64::MAX),
        days => i64::from(days).checked_mul(of_day),
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
