//! Parts of dates, timestamps, times and intervals: `year(d)`, `hour(t)`, `epoch(i)`, `dayname(d)`.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType,
};
use datafusion::common::Result;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, double, text, whole};
use crate::temporal::civil::{
    Civil, MICROS_OF_DAY, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, MONTHS, WEEKDAYS,
    iso_weekday, split, weekday,
};

/// A date or a timestamp, a time, an interval.
const ANY_TIME: &[Arguments] = &[
    Arguments::Are(&[Takes::Moment]),
    Arguments::Are(&[Takes::Interval]),
    Arguments::Are(&[Takes::Time]),
];
const MOMENT: &[Arguments] = &[Arguments::Are(&[Takes::Moment])];

/// Extracts a part from days since 1970 and microseconds of the day, or from months, days and microseconds of
/// an interval; None if an interval lacks the part.
struct Part {
    of_moment: fn(i64, i64) -> i64,
    of_interval: Option<fn(i64, i64, i64) -> i64>,
}

fn run(call: &Call, part: &Part) -> Result<ArrayRef> {
    match call.arrays[0].data_type() {
        DataType::Interval(_) => {
            let Some(of) = part.of_interval else {
                return call.fails("intervals do not have this part");
            };
            let intervals = call.arrays[0].as_primitive::<IntervalMonthDayNanoType>();
            call.wholes(|row| {
                let value = intervals.value(row);
                let micros = value.nanoseconds / 1000;
                Ok(Some(of(i64::from(value.months), i64::from(value.days), micros)))
            })
        }
        DataType::Time64(_) => {
            let times = call.arrays[0].as_primitive::<Time64MicrosecondType>();
            call.wholes(|row| Ok(Some((part.of_moment)(0, times.value(row)))))
        }
        _ => {
            let moments = call.moments(0)?;
            // Infinite values have no parts, as in DuckDB.
            call.wholes(|row| {
                let parts = moments.at(row).ok().map(split);
                Ok(parts.map(|(days, of_day)| (part.of_moment)(days, of_day)))
            })
        }
    }
}

pub(in crate::scalar) fn era_of(year: i64, years: i64) -> i64 {
    if year > 0 { (year - 1) / years + 1 } else { year / years - 1 }
}

fn year_week(days: i64) -> i64 {
    let (year, week) = Civil::of_days(days).iso_week();
    year * 100 + if year < 0 { -week } else { week }
}

macro_rules! parts {
    ($($name:ident $aliases:expr, $takes:expr, $about:literal, $example:literal: $moment:expr, $interval:expr;)*) => {
        $(
            fn $name(call: &Call) -> Result<ArrayRef> {
                run(call, &Part { of_moment: $moment, of_interval: $interval })
            }
        )*
        const PARTS: &[Entry] = &[$(Entry {
            name: stringify!($name),
            aliases: &$aliases,
            arguments: "moment",
            about: $about,
            example: $example,
            takes: $takes,
            gives: whole,
            volatile: false,
            run: $name,
        }),*];
    };
}

parts! {
    year [], ANY_TIME, "The year.", "year(DATE '2024-03-05') = 2024":
        |days, _| Civil::of_days(days).year, Some(|months, _, _| months / 12);
    month [], ANY_TIME, "The month, from 1.", "month(DATE '2024-03-05') = 3":
        |days, _| Civil::of_days(days).month, Some(|months, _, _| months % 12);
    day ["dayofmonth"], ANY_TIME, "The day of the month.", "day(DATE '2024-03-05') = 5":
        |days, _| Civil::of_days(days).day, Some(|_, days, _| days);
    quarter [], ANY_TIME, "The quarter, 1 to 4.", "quarter(DATE '2024-03-05') = 1":
        |days, _| (Civil::of_days(days).month - 1) / 3 + 1, Some(|months, _, _| months % 12 / 3 + 1);
    decade [], ANY_TIME, "The year divided by 10.", "decade(DATE '2024-03-05') = 202":
        |days, _| Civil::of_days(days).year / 10, Some(|months, _, _| months / 120);
    century [], ANY_TIME, "The century.", "century(DATE '2024-03-05') = 21":
        |days, _| era_of(Civil::of_days(days).year, 100), Some(|months, _, _| months / 1200);
    millennium [], ANY_TIME, "The millennium.", "millennium(DATE '2024-03-05') = 3":
        |days, _| era_of(Civil::of_days(days).year, 1000), Some(|months, _, _| months / 12_000);
    era [], MOMENT, "1 in years of the common era, else 0.", "era(DATE '2024-03-05') = 1":
        |days, _| i64::from(Civil::of_days(days).year > 0), None;
    week ["weekofyear"], MOMENT, "The week of ISO 8601.", "week(DATE '2024-03-05') = 10":
        |days, _| Civil::of_days(days).iso_week().1, None;
    yearweek [], MOMENT, "Year and week of ISO 8601 as a number.", "yearweek(DATE '2024-03-05') = 202410":
        |days, _| year_week(days), None;
    isoyear [], MOMENT, "The year that the week of ISO 8601 is in.", "isoyear(DATE '2024-12-31') = 2025":
        |days, _| Civil::of_days(days).iso_week().0, None;
    dayofweek ["weekday"], MOMENT, "The day of the week, 0 for Sunday.", "dayofweek(DATE '2024-03-03') = 0":
        |days, _| weekday(days), None;
    isodow [], MOMENT, "The day of the week, 1 for Monday, 7 for Sunday.", "isodow(DATE '2024-03-03') = 7":
        |days, _| iso_weekday(days), None;
    dayofyear [], MOMENT, "The day of the year, from 1.", "dayofyear(DATE '2024-03-05') = 65":
        |days, _| Civil::of_days(days).day_of_year(), None;
    hour [], ANY_TIME, "The hour; all hours of an interval's time.", "hour(TIME '11:12:13') = 11":
        |_, of_day| of_day / MICROS_OF_HOUR, Some(|_, _, micros| micros / MICROS_OF_HOUR);
    minute [], ANY_TIME, "The minute.", "minute(TIME '11:12:13') = 12":
        |_, of_day| of_day % MICROS_OF_HOUR / MICROS_OF_MINUTE,
        Some(|_, _, micros| micros % MICROS_OF_HOUR / MICROS_OF_MINUTE);
    second [], ANY_TIME, "The second.", "second(TIME '11:12:13') = 13":
        |_, of_day| of_day % MICROS_OF_MINUTE / MICROS_OF_SECOND,
        Some(|_, _, micros| micros % MICROS_OF_MINUTE / MICROS_OF_SECOND);
    millisecond [], ANY_TIME, "Seconds and milliseconds, in milliseconds.", "millisecond(TIME '11:12:13.5') = 13500":
        |_, of_day| of_day % MICROS_OF_MINUTE / 1000,
        Some(|_, _, micros| micros % MICROS_OF_MINUTE / 1000);
    microsecond [], ANY_TIME, "Seconds and microseconds, in microseconds.", "microsecond(TIME '11:12:13.5') = 13500000":
        |_, of_day| of_day % MICROS_OF_MINUTE, Some(|_, _, micros| micros % MICROS_OF_MINUTE);
    nanosecond [], ANY_TIME, "Seconds and microseconds, in nanoseconds.", "nanosecond(TIME '11:12:13.5') = 13500000000":
        |_, of_day| of_day % MICROS_OF_MINUTE * 1000,
        Some(|_, _, micros| micros % MICROS_OF_MINUTE * 1000);
    epoch_us [], ANY_TIME, "Microseconds since 1970, or of an interval.", "epoch_us(DATE '1970-01-02') = 86400000000":
        |days, of_day| days * MICROS_OF_DAY + of_day, Some(interval_micros);
    epoch_ns [], ANY_TIME, "Nanoseconds since 1970, or of an interval.", "epoch_ns(DATE '1970-01-02') = 86400000000000":
        |days, of_day| (days * MICROS_OF_DAY + of_day).saturating_mul(1000),
        Some(|months, days, micros| interval_micros(months, days, micros).saturating_mul(1000));
}

/// Counts an interval as DuckDB does: months of 30 days, years of 365¼.
fn interval_micros(months: i64, days: i64, micros: i64) -> i64 {
    let years = months / 12;
    let days = years * 365 + months % 12 * 30 + days;
    days * MICROS_OF_DAY + years * (MICROS_OF_DAY / 4) + micros
}

fn epoch_ms(call: &Call) -> Result<ArrayRef> {
    if call.arrays[0].data_type() == &DataType::Int64 {
        let millis = call.whole(0);
        return call.timestamps(|row| match millis.value(row).checked_mul(1000) {
            Some(micros) => Ok(Some(micros)),
            None => call.fails(format_args!("{} milliseconds are out of range", millis.value(row))),
        });
    }
    let part = Part {
        of_moment: |days, of_day| rounded(days * MICROS_OF_DAY + of_day),
        of_interval: Some(|months, days, micros| rounded(interval_micros(months, days, micros))),
    };
    run(call, &part)
}

/// Milliseconds, half away from zero.
fn rounded(micros: i64) -> i64 {
    (micros + micros.signum() * 500) / 1000
}

fn epoch(call: &Call) -> Result<ArrayRef> {
    let micros = Part {
        of_moment: |days, of_day| days * MICROS_OF_DAY + of_day,
        of_interval: Some(interval_micros),
    };
    let micros = run(call, &micros)?;
    let micros = micros.as_primitive::<Int64Type>();
    let seconds = |micros: i64| micros as f64 / MICROS_OF_SECOND as f64;
    call.doubles(|row| Ok(micros.is_valid(row).then(|| seconds(micros.value(row)))))
}

fn julian(call: &Call) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    call.doubles(|row| {
        let Ok(micros) = moments.at(row) else { return Ok(None) };
        let (days, of_day) = split(micros);
        Ok(Some((days + 2_440_588) as f64 + of_day as f64 / MICROS_OF_DAY as f64))
    })
}

fn monthname(call: &Call) -> Result<ArrayRef> {
    named(call, |days| MONTHS[(Civil::of_days(days).month - 1) as usize])
}

fn dayname(call: &Call) -> Result<ArrayRef> {
    named(call, |days| WEEKDAYS[weekday(days) as usize])
}

fn named(call: &Call, name: fn(i64) -> &'static str) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    call.texts(|row, out| {
        let Ok(micros) = moments.at(row) else { return Ok(false) };
        out.push_str(name(split(micros).0));
        Ok(true)
    })
}

const OTHERS: &[Entry] = &[
    Entry {
        name: "epoch_ms",
        aliases: &[],
        arguments: "moment or milliseconds",
        about: "Milliseconds since 1970; of an integer, the timestamp that many milliseconds after 1970.",
        example: "epoch_ms(TIMESTAMP '1970-01-01 00:00:01') = 1000",
        takes: &[
            Arguments::Are(&[Takes::Moment]),
            Arguments::Are(&[Takes::Interval]),
            Arguments::Are(&[Takes::Time]),
            Arguments::Are(&[Takes::Whole]),
        ],
        gives: |given, _| {
            Ok(match given.first() {
                Some(DataType::Int64) => {
                    DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, None)
                }
                _ => DataType::Int64,
            })
        },
        volatile: false,
        run: epoch_ms,
    },
    Entry {
        name: "epoch",
        aliases: &[],
        arguments: "moment",
        about: "Seconds since 1970, or of an interval.",
        example: "epoch(TIMESTAMP '1970-01-01 00:00:01.5') = 1.5",
        takes: ANY_TIME,
        gives: double,
        volatile: false,
        run: epoch,
    },
    Entry {
        name: "julian",
        aliases: &[],
        arguments: "moment",
        about: "The Julian day.",
        example: "julian(DATE '2024-03-05') = 2460375.0",
        takes: MOMENT,
        gives: double,
        volatile: false,
        run: julian,
    },
    Entry {
        name: "monthname",
        aliases: &[],
        arguments: "moment",
        about: "The English name of the month.",
        example: "monthname(DATE '2024-03-05') = 'March'",
        takes: MOMENT,
        gives: text,
        volatile: false,
        run: monthname,
    },
    Entry {
        name: "dayname",
        aliases: &[],
        arguments: "moment",
        about: "The English name of the day of the week.",
        example: "dayname(DATE '2024-03-05') = 'Tuesday'",
        takes: MOMENT,
        gives: text,
        volatile: false,
        run: dayname,
    },
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[PARTS, OTHERS];
