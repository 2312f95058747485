//! Array texts to dates, times, timestamps and intervals.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::types::{
    ArrowPrimitiveType, Date32Type, IntervalMonthDayNanoType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveBuilder, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;

use super::interval::{IntervalFields, read_interval};
use super::moment::{DAY, Moment, Reading, Zone, read_moment, read_time};
use super::style::TemporalStyle;
use super::zone::local_time;

/// Whether texts are parsed as values of the type here.
pub fn is_read(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Interval(IntervalUnit::MonthDayNano)
    )
}

/// The meaning of `now` and `today` in a text, and of an ambiguous date or interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementClock<'a> {
    /// The session's time zone; UTC if there is none.
    pub time_zone: Option<&'a str>,
    /// When the statement began, in microseconds since 1970; if unknown, the time of the call is used.
    pub begun: Option<i64>,
    /// The session's styles.
    pub style: TemporalStyle,
}

/// Parses a text; None if it is not a value of the type, or if the type is not supported.
pub fn read_scalar(text: &str, to: &DataType, clock: StatementClock<'_>) -> Option<ScalarValue> {
    if !is_read(to) {
        return None;
    }
    let texts = StringArray::from(vec![text]);
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let read = read_texts(&texts, to, clock, &options).ok()?;
    ScalarValue::try_from_array(&read, 0).ok()
}

/// Parses texts as PostgreSQL does. Others are left to Arrow, whose errors quote them.
///
/// # Errors
/// If a text is not a value of the type and the options make that an error.
pub fn read_texts(
    texts: &StringArray,
    to: &DataType,
    clock: StatementClock<'_>,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    let collected = Collected { texts, to, options };
    let clock = StatementClock { begun: clock.begun.or_else(system_time), ..clock };
    let TemporalStyle { order, intervals, .. } = clock.style;
    let moment = |text: &str, zone: Option<&str>, unit: i64| {
        let clock = StatementClock { time_zone: zone.or(clock.time_zone), ..clock };
        moment(read_moment(text, order)?, zone, clock, unit)
    };
    match to {
        DataType::Date32 => {
            collected.parse::<Date32Type>(|text| date(read_moment(text, order)?, clock))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            collected.parse::<Time64NanosecondType>(|text| read_time(text, order))
        }
        DataType::Time64(_) => collected.parse::<Time64MicrosecondType>(|text| {
            Some(rounded(read_time(text, order)?.into(), 1000))
        }),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let zone = zone.as_deref();
            collected.parse::<TimestampSecondType>(|text| moment(text, zone, 1_000_000_000))
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            let zone = zone.as_deref();
            collected.parse::<TimestampMillisecondType>(|text| moment(text, zone, 1_000_000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let zone = zone.as_deref();
            collected.parse::<TimestampMicrosecondType>(|text| moment(text, zone, 1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let zone = zone.as_deref();
            collected.parse::<TimestampNanosecondType>(|text| moment(text, zone, 1))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => collected
            .parse::<IntervalMonthDayNanoType>(|text| {
                read_interval(text, IntervalFields::default(), intervals)
            }),
        _ => cast_with_options(texts, to, options),
    }
}

/// Texts to be parsed.
struct Collected<'a> {
    texts: &'a StringArray,
    to: &'a DataType,
    options: &'a CastOptions<'a>,
}

impl Collected<'_> {
    fn parse<T: ArrowPrimitiveType>(
        &self,
        read: impl Fn(&str) -> Option<T::Native>,
    ) -> Result<ArrayRef, ArrowError> {
        let mut values = PrimitiveBuilder::<T>::with_capacity(self.texts.len());
        for text in self.texts {
            match (text, text.and_then(&read)) {
                (None, _) => values.append_null(),
                (_, Some(value)) => values.append_value(value),
                (Some(text), None) => {
                    let one = StringArray::from(vec![text]);
                    let one = cast_with_options(&one, self.to, self.options)?;
                    let one = one.as_primitive::<T>();
                    values.append_option(one.is_valid(0).then(|| one.value(0)));
                }
            }
        }
        Ok(Arc::new(values.finish().with_data_type(self.to.clone())))
    }
}

fn date(reading: Reading<'_>, clock: StatementClock<'_>) -> Option<i32> {
    Some(match reading {
        Reading::At(Moment { days, .. }) => i32::try_from(days).ok()?,
        Reading::Endless(endless) => endless.days(),
        Reading::Now => i32::try_from(clock.today()?).ok()?,
        Reading::Today(Moment { days, .. }) => {
            i32::try_from(clock.today()? + i128::from(days)).ok()?
        }
    })
}

/// Microseconds since 1970.
fn system_time() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}

impl<'a> StatementClock<'a> {
    /// Returns when the statement began, or the time of the call if that is unknown.
    pub(super) fn begun_or_now(self) -> Option<i64> {
        self.begun.or_else(system_time)
    }

    /// Days since 1970, in local time.
    fn today(self) -> Option<i128> {
        Some(self.local()?.div_euclid(i128::from(DAY)))
    }

    /// Local time, in nanoseconds since 1970.
    fn local(self) -> Option<i128> {
        let begun = self.begun?;
        let local = match self.time_zone {
            None => begun,
            Some(zone) => local_time(begun, zone.parse().ok()?)?,
        };
        Some(i128::from(local) * 1000)
    }
}

/// Converts nanoseconds to a longer unit, rounded.
fn rounded(nanos: i128, unit: i64) -> i64 {
    let unit = i128::from(unit);
    (nanos + unit / 2).div_euclid(unit) as i64
}

/// Converts a timestamp to a unit of this many nanoseconds. Without a time zone it is local time in the type's zone; a
/// type without a zone ignores the text's zone.
fn moment(
    reading: Reading<'_>,
    zone: Option<&str>,
    clock: StatementClock<'_>,
    unit: i64,
) -> Option<i64> {
    let at = |days: i128, nanos: i64| days * i128::from(DAY) + i128::from(nanos);
    let (local, of_text) = match reading {
        Reading::Endless(endless) => return Some(endless.moment()),
        Reading::Now if zone.is_some() => (i128::from(clock.begun?) * 1000, Some(Zone::Ahead(0))),
        Reading::Now => (clock.local()?, None),
        Reading::Today(Moment { days, nanos, zone }) => {
            (at(clock.today()? + i128::from(days), nanos), zone)
        }
        Reading::At(Moment { days, nanos, zone }) => (at(days.into(), nanos), zone),
    };
    let nanos = match (zone, of_text) {
        // The zone must exist, even if its offset is not needed.
        (None, Some(Zone::Named(name))) => name.parse::<Tz>().ok().map(|_| local)?,
        (None, _) => local,
        (Some(_), Some(Zone::Ahead(seconds))) => local - i128::from(seconds) * 1_000_000_000,
        (Some(_), Some(Zone::Named(name))) => instant(local, name)?,
        (Some("UTC" | "+00:00"), None) => local,
        (Some(zone), None) => instant(local, zone)?,
    };
    let unit = i128::from(unit);
    i64::try_from((nanos + unit / 2).div_euclid(unit)).ok()
}

/// Converts a local time to an instant; None if the zone is unknown, or if the time is skipped or ambiguous in it.
fn instant(local: i128, zone: &str) -> Option<i128> {
    let micros = i64::try_from(local.div_euclid(1000)).ok()?;
    let local_array = TimestampMicrosecondArray::from(vec![micros]);
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    let instants = cast(&local_array, &zoned).ok()?;
    let instants = instants.as_primitive::<TimestampMicrosecondType>();
    let micros = instants.is_valid(0).then(|| instants.value(0))?;
    Some(i128::from(micros) * 1000 + local.rem_euclid(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::temporal::{DateFormat, DateOrder, IntervalFormat};

    /// 2024-01-01 23:30 UTC: 2024-01-02 00:30 in Berlin.
    const CLOCK: StatementClock<'static> = StatementClock {
        time_zone: Some("Europe/Berlin"),
        begun: Some(1_704_151_800_000_000),
        style: TemporalStyle {
            dates: DateFormat::Iso,
            order: DateOrder::Mdy,
            intervals: IntervalFormat::Postgres,
        },
    };

    fn micros(text: &str, zone: Option<&str>) -> Option<i64> {
        let to = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        match read_scalar(text, &to, CLOCK)? {
            ScalarValue::TimestampMicrosecond(micros, _) => micros,
            _ => None,
        }
    }

    #[test]
    fn words_use_the_given_clock() {
        const HOUR: i64 = 3_600_000_000;
        let midnight = 1_704_153_600_000_000;
        let berlin = Some("Europe/Berlin");
        for (text, zone, wanted) in [
            ("now", None, midnight + HOUR / 2),
            ("now", berlin, midnight - HOUR / 2),
            ("now", Some("Asia/Tokyo"), midnight - HOUR / 2),
            ("today", None, midnight),
            ("today", berlin, midnight - HOUR),
            ("today 10:00", None, midnight + 10 * HOUR),
            ("today 10:00+02", None, midnight + 10 * HOUR),
            ("today 10:00+02", berlin, midnight + 8 * HOUR),
            ("yesterday 10:00 Asia/Tokyo", berlin, midnight - 23 * HOUR),
            ("2024-03-31 02:30 Europe/Berlin", None, 1_711_852_200_000_000),
        ] {
            assert_eq!(micros(text, zone), Some(wanted), "{text} {zone:?}");
        }
        let date = |text: &str| read_scalar(text, &DataType::Date32, CLOCK);
        assert_eq!(date("today"), Some(ScalarValue::Date32(Some(19_724))));
        assert_eq!(date("now"), Some(ScalarValue::Date32(Some(19_724))));
        assert_eq!(date("yesterday"), Some(ScalarValue::Date32(Some(19_723))));
        for text in ["today 77", "today 2024-01-01", "Jan today", "2024-01-01 10:00 Nowhere/X"] {
            assert_eq!(micros(text, None), None, "{text}");
        }
    }
}
