//! Differences of timestamps, overlapping time spans, and series of timestamps.

use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, TimestampMicrosecondArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, flag, interval};
use crate::scalar::text::texts::entry;
use crate::temporal::civil::{MICROS_OF_DAY, number, plus};
use crate::temporal::{Endless, Moments, cast_moments, instant, interval_length, local_time};

/// Maximum length of a batch's series, and of those in steps of days and months of a zone.
const SERIES_MAX: usize = 1 << 26;
const ZONED_SERIES_MAX: usize = 1 << 22;

/// Days and time between two timestamps; None if they are too far apart.
fn minus(to: i64, from: i64) -> Option<IntervalMonthDayNano> {
    let micros = to.checked_sub(from)?;
    let days = i32::try_from(micros / MICROS_OF_DAY).ok()?;
    Some(IntervalMonthDayNano::new(0, days, micros % MICROS_OF_DAY * 1000))
}

fn timestamp_minus(call: &Call) -> Result<ArrayRef> {
    // Instants: days have 24 hours, whatever the zone's clocks do.
    let moments = |at: usize| Moments::new(call.arrays[at].as_primitive().clone());
    let (to, from) = (moments(0), moments(1));
    call.primitives::<IntervalMonthDayNanoType>(|row| {
        let (Ok(to), Ok(from)) = (to.at(row), from.at(row)) else {
            return call.fails_as("22008", "cannot subtract infinite timestamps");
        };
        match minus(to, from) {
            Some(interval) => Ok(Some(interval)),
            None => call.fails_as("22008", "the interval is out of range"),
        }
    })
}

/// Returns the timestamps of an argument as comparable numbers; an interval is added to the previous argument.
fn ends(call: &Call, at: usize) -> Result<Vec<i64>> {
    if !matches!(call.arrays[at].data_type(), DataType::Interval(_)) {
        let moments = call.moments(at)?;
        return Ok((0..call.rows).map(|row| number(moments.at(row))).collect());
    }
    let starts = call.moments(at - 1)?;
    let lengths = call.arrays[at].as_primitive::<IntervalMonthDayNanoType>();
    let end = |row: usize| match plus(starts.at(row), lengths.value(row)) {
        Some(end) => Ok(number(end)),
        None if call.is_null(row) => Ok(0),
        None => call.fails_as("22008", "the timestamp is out of range"),
    };
    (0..call.rows).map(end).collect()
}

/// Whether two spans, each with its ends in any order and the later one excluded, share an instant; a span with equal
/// ends is that instant.
fn overlaps(call: &Call) -> Result<ArrayRef> {
    let [a, b, c, d] = [ends(call, 0)?, ends(call, 1)?, ends(call, 2)?, ends(call, 3)?];
    call.flags(|row| {
        let first = (a[row].min(b[row]), a[row].max(b[row]));
        let second = (c[row].min(d[row]), c[row].max(d[row]));
        let (earlier, later) = if first.0 <= second.0 { (first, second) } else { (second, first) };
        Ok(Some(later.0 < earlier.1 || later.0 == earlier.0))
    })
}

/// The step of a series.
struct Step {
    interval: IntervalMonthDayNano,
    is_forward: bool,
    /// The zone in which days and months are counted, for timestamps with a time zone.
    zone: Option<Tz>,
}

impl Step {
    /// Converts an interval; None if its length is zero.
    fn from_interval(interval: IntervalMonthDayNano, zone: Option<Tz>) -> Option<Self> {
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        let is_nothing = (months, days, nanoseconds / 1000) == (0, 0, 0);
        let length = interval_length(interval);
        let zone = zone.filter(|_| (months, days) != (0, 0));
        (length != 0 && !is_nothing).then_some(Self { interval, is_forward: length > 0, zone })
    }

    /// Returns the next timestamp; None if it is out of range.
    fn after(&self, at: i64) -> Option<i64> {
        let plus = |at: i64, by| plus(Ok(at), by)?.ok();
        let Some(zone) = self.zone else { return plus(at, self.interval) };
        let IntervalMonthDayNano { months, days, nanoseconds } = self.interval;
        let local = plus(local_time(at, zone)?, IntervalMonthDayNano::new(months, days, 0))?;
        instant(local, zone)?.checked_add(nanoseconds / 1000)
    }

    fn is_behind(&self, at: i64, last: i64) -> bool {
        if self.is_forward { at > last } else { at < last }
    }

    /// Returns the maximum length of a series: steps in a zone's local time need a lookup each.
    fn most(&self) -> usize {
        if self.zone.is_some() { ZONED_SERIES_MAX } else { SERIES_MAX }
    }
}

/// Lists the timestamps from the first to the last one, an interval apart. Hours are counted in UTC, days and months in
/// local time.
fn timestamp_series(call: &Call) -> Result<ArrayRef> {
    let steps = call.arrays[2].as_primitive::<IntervalMonthDayNanoType>();
    let zone = zone_of(&[call.arrays[0].data_type().clone(), call.arrays[1].data_type().clone()]);
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let tz = zone.as_deref().map(str::parse::<Tz>).transpose()?;
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let instants = |at: usize| -> Result<TimestampMicrosecondArray> {
        let instants = cast_moments(&call.arrays[at], &zoned, &strict)?;
        Ok(instants.as_primitive::<TimestampMicrosecondType>().clone())
    };
    let (first, last) = (instants(0)?, instants(1)?);
    let (mut values, mut lengths, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..call.rows {
        nulls.push(!call.is_null(row));
        let before = values.len();
        if !call.is_null(row) {
            let Some(step) = Step::from_interval(steps.value(row), tz) else {
                return call.fails_as("22023", "step size cannot equal zero");
            };
            append_series(call, &step, first.value(row)..=last.value(row), &mut values)?;
        }
        lengths.push(values.len() - before);
    }
    let values = TimestampMicrosecondArray::from(values).with_data_type(zoned.clone());
    let item = Arc::new(Field::new_list_field(zoned, true));
    let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(nulls));
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(values), Some(nulls))?))
}

/// Appends the timestamps of one series.
fn append_series(
    call: &Call,
    step: &Step,
    ends: RangeInclusive<i64>,
    values: &mut Vec<i64>,
) -> Result<()> {
    let (mut at, last) = ends.into_inner();
    let is_endless = |micros: i64| Endless::of_moment(micros).is_some();
    if (is_endless(at) || is_endless(last)) && !step.is_behind(at, last) {
        let why = "timestamp out of range: a series from or to 'infinity' has no end";
        return call.fails_as("22008", why);
    }
    while !step.is_behind(at, last) {
        if values.len() >= step.most() {
            return call.fails_as("54000", "the series is too long");
        }
        values.push(at);
        let Some(next) = step.after(at) else {
            return call.fails_as("22008", "timestamp out of range");
        };
        // A month less 31 days does not advance, or goes back.
        if next == at || step.is_behind(at, next) {
            return call.fails_as("22023", "the step does not lead to the end of the series");
        }
        at = next;
    }
    Ok(())
}

/// Returns the first time zone among these types.
fn zone_of(types: &[DataType]) -> Option<Arc<str>> {
    types.iter().find_map(|of| match of {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    })
}

fn series(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    let zone = zone_of(&given[..given.len().min(2)]);
    Ok(DataType::new_list(DataType::Timestamp(TimeUnit::Microsecond, zone), true))
}

const SPANS: &[Arguments] = &[
    Arguments::Are(&[Takes::Time, Takes::Time, Takes::Time, Takes::Time]),
    Arguments::Are(&[Takes::Moment, Takes::Interval, Takes::Moment, Takes::Interval]),
    Arguments::Are(&[Takes::Moment, Takes::Interval, Takes::Moment, Takes::Moment]),
    Arguments::Are(&[Takes::Moment, Takes::Moment, Takes::Moment, Takes::Interval]),
    Arguments::Are(&[Takes::Moment, Takes::Moment, Takes::Moment, Takes::Moment]),
];

const ALL: &[Entry] = &[
    entry!("timestamp_minus"[], "to, from",
        &[Arguments::Are(&[Takes::DateOrTimestampOnly, Takes::DateOrTimestampOnly])], interval,
        "Days and time from one timestamp to another: to - from.",
        "timestamp_minus(TIMESTAMP '2024-01-03 12:00', TIMESTAMP '2024-01-01') = INTERVAL '2 days 12:00'",
        timestamp_minus),
    entry!("overlaps"[], "start, end, start, end", SPANS, flag,
        "Whether two spans of time overlap; an end may be an interval: (start, end) OVERLAPS (start, end).",
        "overlaps(DATE '2024-01-01', DATE '2024-02-01', DATE '2024-01-15', DATE '2024-03-01')",
        overlaps),
    entry!("timestamp_series"[], "start, stop, step",
        &[Arguments::Are(&[Takes::Moment, Takes::Moment, Takes::Interval])], series,
        "A list of timestamps an interval apart, the last one included; in FROM generate_series(start, stop, step).",
        "timestamp_series(DATE '2024-01-01', DATE '2024-03-01', INTERVAL '1 month')",
        timestamp_series),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_goes_by_the_clocks_of_its_zone() {
        const HOUR: i64 = 3_600_000_000;
        let zone: Tz = "Europe/Berlin".parse().expect("the zone is known");
        let step = |months, days, hours: i64| {
            let interval = IntervalMonthDayNano::new(months, days, hours * HOUR * 1000);
            Step::from_interval(interval, Some(zone)).expect("it has a length")
        };
        // 2024-03-30 02:30 in Berlin; a day later that time is skipped, and 03:30 from then on.
        let at = 1_711_762_200_000_000;
        assert_eq!(step(0, 1, 0).after(at), Some(at + 24 * HOUR));
        assert_eq!(step(0, 1, 0).after(at + 24 * HOUR), Some(at + 48 * HOUR));
        assert_eq!(step(0, 0, 24).after(at), Some(at + 24 * HOUR));
        assert_eq!(step(0, 2, 1).after(at), Some(at + 48 * HOUR));
        assert_eq!(step(0, -1, 0).after(i64::MIN), None);
        let nothing = IntervalMonthDayNano::new(1, -30, 0);
        assert!(Step::from_interval(nothing, None).is_none());
        assert!(Step::from_interval(IntervalMonthDayNano::new(0, 0, 999), None).is_none());
    }

    #[test]
    fn days_and_time_have_one_sign() {
        const HOUR: i64 = 3_600_000_000;
        let of = |to, from| minus(to, from).map(|it| (it.months, it.days, it.nanoseconds / 1000));
        assert_eq!(of(26 * HOUR, 0), Some((0, 1, 2 * HOUR)));
        assert_eq!(of(0, 26 * HOUR), Some((0, -1, -2 * HOUR)));
        assert_eq!(of(i64::MAX, -1), None);
    }
}
