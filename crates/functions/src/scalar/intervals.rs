//! Intervals times numbers.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;

use super::call::Call;
use super::entry::{Arguments, Entry, Takes, interval};
use super::texts::entry;

const DAYS_OF_MONTH: f64 = 30.0;
const MICROS_OF_DAY: f64 = 86_400_000_000.0;
const NANOS_OF_MICRO: i64 = 1_000;

/// An interval so many times, as PostgreSQL and DuckDB have it: what is left of months becomes days, of 30 to a month,
/// and what is left of days becomes time. None where a part does not fit.
fn times(interval: IntervalMonthDayNano, factor: f64) -> Option<IntervalMonthDayNano> {
    if !factor.is_finite() {
        return None;
    }
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    let (months, days) = (f64::from(months) * factor, f64::from(days) * factor);
    let of_months = rounded((months - months.trunc()) * DAYS_OF_MONTH);
    let of_days = rounded(days - days.trunc() + of_months - of_months.trunc());
    let micros = (nanoseconds / NANOS_OF_MICRO) as f64 * factor + of_days * MICROS_OF_DAY;
    let all_days = days.trunc() + of_months.trunc();
    let small = |value: f64| (value.abs() <= f64::from(i32::MAX)).then_some(value as i32);
    let limit = (i64::MAX / NANOS_OF_MICRO) as f64;
    let micros = (micros.abs() < limit).then(|| micros.round() as i64)?;
    Some(IntervalMonthDayNano::new(
        small(months.trunc())?,
        small(all_days)?,
        micros * NANOS_OF_MICRO,
    ))
}

/// A part of a day without what floats add: a tenth of a microsecond is none.
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

const INTERVAL_AND_NUMBER: &[Arguments] = &[Arguments::Are(&[Takes::Interval, Takes::Double])];

const ALL: &[Entry] = &[
    entry!("interval_multiply" [], "interval, number", INTERVAL_AND_NUMBER, interval,
        "An interval so many times: interval * number.",
        "interval_multiply(INTERVAL '1 day', 1.5) = INTERVAL '1 day 12 hours'",
        |call| multiplied(call, Some)),
    entry!("interval_divide" [], "interval, number", INTERVAL_AND_NUMBER, interval,
        "A part of an interval: interval / number.",
        "interval_divide(INTERVAL '3 days', 2) = INTERVAL '1 day 12 hours'",
        |call| multiplied(call, |number| (number != 0.0).then(|| number.recip()))),
];

pub(super) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_months_and_days_becomes_days_and_time() {
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
