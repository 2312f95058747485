//! Multiplication, construction and normalization of intervals.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, interval};
use crate::scalar::text::texts::entry;

const DAYS_OF_MONTH: f64 = 30.0;
const MICROS_OF_DAY: f64 = 86_400_000_000.0;
const NANOS_OF_MICRO: i64 = 1_000;

/// Multiplies an interval as PostgreSQL and DuckDB do: the fraction of months becomes days, 30 per month,
/// and the fraction of days becomes time. None if a part does not fit.
fn times(interval: IntervalMonthDayNano, factor: f64) -> Option<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    let micros = (nanoseconds / NANOS_OF_MICRO) as f64;
    interval_times((f64::from(months), f64::from(days), micros), factor)
}

/// Multiplies months, days and microseconds.
pub(crate) fn interval_times(parts: (f64, f64, f64), factor: f64) -> Option<IntervalMonthDayNano> {
    if !factor.is_finite() {
        return None;
    }
    let (months, days, micros) = (parts.0 * factor, parts.1 * factor, parts.2 * factor);
    let of_months = rounded((months - months.trunc()) * DAYS_OF_MONTH);
    let of_days = rounded(days - days.trunc() + of_months - of_months.trunc());
    let micros = micros + (of_days - of_days.trunc()) * MICROS_OF_DAY;
    let all_days = days.trunc() + of_months.trunc() + of_days.trunc();
    let small = |value: f64| (value.abs() <= f64::from(i32::MAX)).then_some(value as i32);
    let limit = (i64::MAX / NANOS_OF_MICRO) as f64;
    let micros = (micros.abs() < limit).then(|| micros.round() as i64)?;
    Some(IntervalMonthDayNano::new(
        small(months.trunc())?,
        small(all_days)?,
        micros * NANOS_OF_MICRO,
    ))
}

/// Rounds a part of a day to remove float errors below a tenth of a microsecond.
fn rounded(value: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    (value * DIGITS).round() / DIGITS
}

fn multiplied(call: &Call, factor: impl Fn(f64) -> Option<f64>) -> Result<ArrayRef> {
    let intervals = call.arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let numbers = call.double(1);
    call.primitives::<IntervalMonthDayNanoType>(|row| {
        let number = numbers.value(row);
        let Some(factor) = factor(number) else { return call.fails("division by zero") };
        match times(intervals.value(row), factor) {
            Some(interval) => Ok(Some(interval)),
            None => call.fails(format_args!("an INTERVAL is out of range: factor {factor}")),
        }
    })
}

/// Builds an interval from years, months, weeks, days, hours, minutes and seconds.
fn make_interval(call: &Call) -> Result<ArrayRef> {
    let of = |row: usize| {
        let part = |at: usize| i128::from(call.whole(at).value(row));
        let seconds = call.double(6).value(row);
        let micros = (seconds.abs() < 9e12).then(|| (seconds * 1e6).round() as i128)?;
        let minutes = part(4) * 60 + part(5);
        Some(IntervalMonthDayNano::new(
            i32::try_from(part(0) * 12 + part(1)).ok()?,
            i32::try_from(part(2) * 7 + part(3)).ok()?,
            i64::try_from((minutes * 60_000_000 + micros) * i128::from(NANOS_OF_MICRO)).ok()?,
        ))
    };
    call.primitives::<IntervalMonthDayNanoType>(|row| in_range(call, of(row)))
}

fn in_range(
    call: &Call,
    interval: Option<IntervalMonthDayNano>,
) -> Result<Option<IntervalMonthDayNano>> {
    match interval {
        Some(interval) => Ok(Some(interval)),
        None => call.fails_as("22008", "an INTERVAL is out of range"),
    }
}

const NANOS_OF_DAY: i64 = 86_400_000_000_000;
const WHOLE_DAYS_OF_MONTH: i32 = 30;

/// Converts 24 hours to days.
fn with_days(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    let days = days.checked_add(i32::try_from(nanoseconds / NANOS_OF_DAY).ok()?)?;
    let time = nanoseconds % NANOS_OF_DAY;
    let borrowed = borrowed(days.into(), time);
    let days = days - i32::try_from(borrowed).ok()?;
    let nanoseconds = time + borrowed * NANOS_OF_DAY;
    Some(IntervalMonthDayNano::new(months, days, nanoseconds))
}

/// Converts 30 days to months.
fn with_months(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    let months = months.checked_add(days / WHOLE_DAYS_OF_MONTH)?;
    let rest = days % WHOLE_DAYS_OF_MONTH;
    let borrowed = i32::try_from(borrowed(months.into(), rest.into())).ok()?;
    let (months, days) = (months - borrowed, rest + borrowed * WHOLE_DAYS_OF_MONTH);
    Some(IntervalMonthDayNano::new(months, days, nanoseconds))
}

/// Does both, with one sign for all parts.
fn justified(interval: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let of = with_months(with_days(interval)?)?;
    let IntervalMonthDayNano { months, days, nanoseconds } = of;
    let below = if days == 0 { nanoseconds } else { days.into() };
    let of_months = i32::try_from(borrowed(months.into(), below)).ok()?;
    let (months, days) = (months - of_months, days + of_months * WHOLE_DAYS_OF_MONTH);
    let of_days = borrowed(days.into(), nanoseconds);
    let days = days - i32::try_from(of_days).ok()?;
    Some(IntervalMonthDayNano::new(months, days, nanoseconds + of_days * NANOS_OF_DAY))
}

/// Returns how many larger units become smaller ones if their signs differ.
fn borrowed(large: i64, small: i64) -> i64 {
    if large > 0 && small < 0 {
        1
    } else if large < 0 && small > 0 {
        -1
    } else {
        0
    }
}

fn justify(
    call: &Call,
    how: fn(IntervalMonthDayNano) -> Option<IntervalMonthDayNano>,
) -> Result<ArrayRef> {
    let intervals = call.arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    call.primitives::<IntervalMonthDayNanoType>(|row| in_range(call, how(intervals.value(row))))
}

const ONE_INTERVAL: &[Arguments] = &[Arguments::Are(&[Takes::Interval])];

const INTERVAL_AND_NUMBER: &[Arguments] = &[Arguments::Are(&[Takes::Interval, Takes::Double])];

const ALL: &[Entry] = &[
    entry!("make_interval" [], "years, months, weeks, days, hours, mins, secs", &[Arguments::Are(&[
            Takes::Whole, Takes::Whole, Takes::Whole, Takes::Whole, Takes::Whole, Takes::Whole, Takes::Double,
        ])], interval,
        "The interval with these parts, each 0 if omitted; they may be named: make_interval(days => 10).",
        "make_interval(0, 0, 0, 10, 12, 30, 0.5)", make_interval),
    entry!("justify_hours" [], "interval", ONE_INTERVAL, interval,
        "An interval with each 24 hours as a day.",
        "justify_hours(INTERVAL '27 hours') = INTERVAL '1 day 3 hours'",
        |call| justify(call, with_days)),
    entry!("justify_days" [], "interval", ONE_INTERVAL, interval,
        "An interval with each 30 days as a month.",
        "justify_days(INTERVAL '35 days') = INTERVAL '1 month 5 days'",
        |call| justify(call, with_months)),
    entry!("justify_interval" [], "interval", ONE_INTERVAL, interval,
        "An interval with 24 hours as a day, 30 days as a month, and one sign for all of it.",
        "justify_interval(INTERVAL '1 month -1 hour') = INTERVAL '29 days 23 hours'",
        |call| justify(call, justified)),
    entry!("interval_multiply" [], "interval, number", INTERVAL_AND_NUMBER, interval,
        "An interval multiplied by a number: interval * number.",
        "interval_multiply(INTERVAL '1 day', 1.5) = INTERVAL '1 day 12 hours'",
        |call| multiplied(call, Some)),
    entry!("interval_divide" [], "interval, number", INTERVAL_AND_NUMBER, interval,
        "A part of an interval: interval / number.",
        "interval_divide(INTERVAL '3 days', 2) = INTERVAL '1 day 12 hours'",
        |call| multiplied(call, |number| (number != 0.0).then(|| number.recip()))),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_months_and_days_become_days_and_time() {
        let times = |months, days, nanos, factor| {
            let of = times(IntervalMonthDayNano::new(months, days, nanos), factor);
            of.map(|of| (of.months, of.days, of.nanoseconds))
        };
        let hour = 3_600_000_000_000;
        assert_eq!(times(1, 0, 0, 1.5), Some((1, 15, 0)));
        assert_eq!(times(1, 3, 0, 0.5), Some((0, 16, 12 * hour)));
        assert_eq!(times(0, 1, 0, 1.0 / 3.0), Some((0, 0, 8 * hour)));
        assert_eq!(times(0, 1, hour, -1.0), Some((0, -1, -hour)));
        assert_eq!(times(0, 0, hour, 0.1), Some((0, 0, hour / 10)));
        assert_eq!(times(1, 0, 0, 1e10), None);
        assert_eq!(times(0, 0, 0, f64::NAN), None);
    }
}
