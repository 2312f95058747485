//! TIME WITH TIME ZONE, which is a text as PostgreSQL prints it: `12:00:00+02`.

use std::fmt;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use datafusion::common::Result;

use super::digits::rounded;
use super::zones::known_zone;
use crate::failure::FunctionFailure;
use crate::scalar::call::{Call, put};
use crate::scalar::entry::{Arguments, Entry, Takes, bytes, double, flag, text};
use crate::scalar::text::texts::entry;
use crate::temporal::{DAY, SECOND, StatementClock, ZonedTime, ZonedTimeError, ahead_now};

/// Returns the text of a TIMETZ as PostgreSQL prints it.
///
/// # Errors
/// If a text is not a time, or has no zone and the clock has none.
pub fn canonical_timetz(text: &str, clock: StatementClock<'_>) -> Result<String, FunctionFailure> {
    let failure = |state, message| FunctionFailure { state, message };
    ZonedTime::parse(text, clock).map(|time| time.to_string()).map_err(|why| match why {
        ZonedTimeError::Syntax => {
            let message = format!("invalid input syntax for type time with time zone: \"{text}\"");
            failure("22007", message)
        }
        ZonedTimeError::NoZone => {
            let message = format!(
                "the time \"{text}\" has no time zone; write one, as in '12:00+02', or cast the text to TIMETZ"
            );
            failure("0A000", message)
        }
    })
}

fn is_canonical(text: &str) -> bool {
    canonical_timetz(text, StatementClock::default()).is_ok_and(|canonical| canonical == text)
}

/// The session's zone.
fn clock(call: &Call) -> StatementClock<'_> {
    StatementClock { begun: None, ..StatementClock::from_options(&call.config) }
}

fn zoned(call: &Call, at: usize, row: usize) -> Result<ZonedTime> {
    let text = call.text(at).value(row);
    match ZonedTime::parse(text, clock(call)) {
        Ok(time) => Ok(time),
        Err(_) => call.fails_as("22007", format_args!("'{text}' is not a time with a time zone")),
    }
}

/// A text, a TIME or a TIMESTAMPTZ, the latter two in the session's zone.
fn checked(call: &Call, is_tried: bool) -> Result<ArrayRef> {
    let array = &call.arrays[0];
    let ahead = || match ahead_now(clock(call).time_zone.unwrap_or("UTC"), clock(call)) {
        Some(ahead) => Ok(ahead),
        None => call.fails("the session's time zone is unknown"),
    };
    match array.data_type() {
        DataType::Time64(_) => {
            let (times, ahead) = (array.as_primitive::<Time64MicrosecondType>(), ahead()?);
            shown(call, |row| Ok(ZonedTime::new(times.value(row), -ahead)))
        }
        DataType::Timestamp(_, Some(_)) => {
            let local = call.moments(0)?;
            let instants = array.as_primitive::<TimestampMicrosecondType>();
            shown(call, |row| {
                let Ok(at) = local.at(row) else { return Ok(None) };
                let ahead = (at - instants.value(row)) / SECOND;
                Ok(ZonedTime::new(at.rem_euclid(DAY), -ahead))
            })
        }
        DataType::Timestamp(..) | DataType::Date32 => call.fails_as(
            "42846",
            "cannot cast type timestamp without time zone to time with time zone; write AT TIME ZONE",
        ),
        _ => call.texts(|row, out| {
            match canonical_timetz(call.text(0).value(row), clock(call)) {
                Ok(time) => out.push_str(&time),
                Err(_) if is_tried => return Ok(false),
                Err(failure) => return Err(failure.into_datafusion()),
            }
            Ok(true)
        }),
    }
}

fn shown(call: &Call, time: impl Fn(usize) -> Result<Option<ZonedTime>>) -> Result<ArrayRef> {
    call.texts(|row, out| match time(row)? {
        Some(time) => put(out, format_args!("{time}")).map(|()| true),
        None => Ok(false),
    })
}

/// A time in another zone: its name, or an interval to the east.
fn at_zone(call: &Call) -> Result<ArrayRef> {
    let unknown = |zone: &dyn fmt::Display| {
        call.fails_as("22023", format_args!("time zone '{zone}' is not known"))
    };
    shown(call, |row| {
        let ahead = match call.arrays[0].data_type() {
            DataType::Interval(_) => {
                let interval = call.arrays[0].as_primitive::<IntervalMonthDayNanoType>().value(row);
                if interval.months != 0 || interval.days != 0 {
                    return call
                        .fails_as("22023", "interval time zone must not include months or days");
                }
                interval.nanoseconds / 1_000_000_000
            }
            _ => {
                let name = call.text(0).value(row);
                let ahead = known_zone(name).and_then(|zone| ahead_now(&zone, clock(call)));
                match ahead {
                    Some(ahead) => ahead,
                    None => return unknown(&name),
                }
            }
        };
        Ok(zoned(call, 1, row)?.elsewhere(ahead))
    })
}

/// Times whose seconds have so many digits.
pub(super) fn rounded_texts(call: &Call, digits: impl Fn(usize) -> u32) -> Result<ArrayRef> {
    shown(call, |row| {
        let time = zoned(call, 0, row)?;
        Ok(ZonedTime::new(rounded(time.micros(), digits(row)), time.west().into()))
    })
}

/// A time so much later or, with -1, earlier, on any day: months and days of an interval do not count.
fn moved(call: &Call, sign: i64) -> Result<ArrayRef> {
    let intervals = call.arrays[1].as_primitive::<IntervalMonthDayNanoType>();
    shown(call, |row| {
        let (time, micros) = (zoned(call, 0, row)?, intervals.value(row).nanoseconds / 1000);
        let moved = time.micros().rem_euclid(DAY) + sign * (micros % DAY);
        Ok(ZonedTime::new(moved.rem_euclid(DAY), time.west().into()))
    })
}

/// A part of a time; of its zone the seconds, minutes and hours to the east.
fn part(call: &Call) -> Result<ArrayRef> {
    call.doubles(|row| {
        let name = call.text(0).value(row).to_ascii_lowercase();
        let time = zoned(call, 1, row)?;
        let (seconds, ahead) = (time.micros() as f64 / 1e6, -i64::from(time.west()));
        let whole = time.micros() / SECOND;
        Ok(Some(match name.as_str() {
            "hour" => (whole / 3600) as f64,
            "minute" => (whole / 60 % 60) as f64,
            "second" => (time.micros() % (60 * SECOND)) as f64 / 1e6,
            "millisecond" | "milliseconds" => (time.micros() % (60 * SECOND)) as f64 / 1e3,
            "microsecond" | "microseconds" => (time.micros() % (60 * SECOND)) as f64,
            "epoch" => seconds - ahead as f64,
            "timezone" => ahead as f64,
            "timezone_hour" => (ahead / 3600) as f64,
            "timezone_minute" => (ahead / 60 % 60) as f64,
            _ => {
                return call.fails_as(
                    "0A000",
                    format_args!("unit \"{name}\" not supported for type time with time zone"),
                );
            }
        }))
    })
}

const ONE: &[Arguments] = &[Arguments::Are(&[Takes::Text])];
const CAST: &[Arguments] = &[
    Arguments::Are(&[Takes::Text]),
    Arguments::Are(&[Takes::Time]),
    Arguments::Are(&[Takes::DateOrTimestampOnly]),
];
const ONE_OR_LIST: &[Arguments] =
    &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Texts])];
const ZONE_AND_TIME: &[Arguments] =
    &[Arguments::Are(&[Takes::Text, Takes::Text]), Arguments::Are(&[Takes::Interval, Takes::Text])];
const TIME_AND_INTERVAL: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Interval])];
const PART_AND_TIME: &[Arguments] = &[Arguments::Are(&[Takes::Text, Takes::Text])];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!(
        "timetz_checked" [], "text, time or timestamp", CAST, text,
        "A time of day with its time zone, by default the session's; the cast to TIMETZ.",
        "'12:00:00+2'::TIMETZ = '12:00:00+02'",
        |call| checked(call, false)
    ),
    entry!(
        "try_timetz_checked" [], "text, time or timestamp", CAST, text,
        "The same, but NULL for an invalid time; TRY_CAST to TIMETZ.",
        "TRY_CAST('x' AS TIMETZ) IS NULL",
        |call| checked(call, true)
    ),
    entry!(
        "timetz_valid" [], "text", ONE_OR_LIST, flag,
        "Whether a text is a TIMETZ as it is printed, or all texts of a list are.",
        "timetz_valid('12:00:00+02')",
        |call| call.all_pass(is_canonical)
    ),
    entry!(
        "timetz_order" [], "time", ONE, bytes,
        "Bytes that compare as TIMETZ does: by the moment in UTC, then by the zone.",
        "timetz_order('12:00:00+02') < timetz_order('11:00:00+00')",
        |call| call.binaries(|row, out| {
            out.extend_from_slice(&zoned(call, 0, row)?.order());
            Ok(true)
        })
    ),
    entry!(
        "timetz_at_zone" [], "zone, time", ZONE_AND_TIME, text,
        "A TIMETZ in another zone: time AT TIME ZONE zone.",
        "timetz_at_zone('UTC', '12:00:00+02') = '10:00:00+00'",
        at_zone
    ),
    entry!(
        "timetz_plus" [], "time, interval", TIME_AND_INTERVAL, text,
        "A TIMETZ so much later: time + interval.",
        "timetz_plus('23:00:00+02', INTERVAL '2 hours') = '01:00:00+02'",
        |call| moved(call, 1)
    ),
    entry!(
        "timetz_minus" [], "time, interval", TIME_AND_INTERVAL, text,
        "A TIMETZ so much earlier: time - interval.",
        "timetz_minus('01:00:00+02', INTERVAL '2 hours') = '23:00:00+02'",
        |call| moved(call, -1)
    ),
    entry!(
        "timetz_part" [], "part, time", PART_AND_TIME, double,
        "A part of a TIMETZ: extract(part FROM time).",
        "timetz_part('hour', '12:00:00+02') = 12",
        part
    ),
]];
