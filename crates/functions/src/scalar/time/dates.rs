//! Construction of dates and timestamps, and differences between them.

use datafusion::arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64NanosecondType, TimeUnit,
    TimestampNanosecondType,
};
use datafusion::common::{Result, ScalarValue};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, date, interval, timestamp, whole};
use crate::temporal::Endless;
use crate::temporal::civil::{
    Civil, MICROS_OF_DAY, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, days_of_month,
    micros_of_unit, number, plus, split,
};

/// A unit for counting dates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::scalar) enum Unit {
    /// A number of months.
    Months(i64),
    /// Years of ISO 8601.
    IsoYears,
    /// Weeks.
    Weeks,
    /// A number of microseconds.
    Micros(i64),
}

impl Unit {
    /// Finds a unit by any of DuckDB's names.
    pub(in crate::scalar) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "years" | "y" | "yr" | "yrs" => Self::Months(12),
            "quarter" | "quarters" => Self::Months(3),
            "month" | "months" | "mon" | "mons" => Self::Months(1),
            "decade" | "decades" | "dec" | "decs" => Self::Months(120),
            "century" | "centuries" | "cent" | "c" => Self::Months(1200),
            "millennium" | "millennia" | "mil" | "mils" | "millenium" => Self::Months(12_000),
            "isoyear" => Self::IsoYears,
            "week" | "weeks" | "w" | "yearweek" => Self::Weeks,
            name => Self::Micros(micros_of_unit(name)?),
        })
    }

    /// Returns the number of the unit that contains a timestamp; for weeks, of the day.
    fn ordinal(self, micros: i64) -> i64 {
        match self {
            Self::Months(months) => {
                // Years before 1 are truncated towards zero, as in DuckDB for decades and longer.
                let civil = Civil::of_days(split(micros).0);
                match months {
                    12.. => civil.year / (months / 12),
                    _ => civil.months().div_euclid(months),
                }
            }
            Self::IsoYears => Civil::of_days(split(micros).0).iso_week().0,
            Self::Weeks => split(micros).0,
            Self::Micros(unit) => micros.div_euclid(unit),
        }
    }

    /// Counts the unit boundaries between two timestamps; for weeks, in multiples of seven days, as in DuckDB.
    fn boundaries(self, from: i64, to: i64) -> Option<i64> {
        let distance = self.ordinal(to).checked_sub(self.ordinal(from))?;
        Some(if self == Self::Weeks { distance / 7 } else { distance })
    }

    /// Counts the whole units between two timestamps.
    fn complete(self, from: i64, to: i64) -> Option<i64> {
        Some(match self {
            Self::Months(months) => months_between(from, to)? / months,
            Self::IsoYears => months_between(from, to)? / 12,
            Self::Weeks => to.checked_sub(from)? / (7 * MICROS_OF_DAY),
            Self::Micros(unit) => to.checked_sub(from)? / unit,
        })
    }
}

/// Counts the whole months between two timestamps.
fn months_between(from: i64, to: i64) -> Option<i64> {
    if from > to {
        return months_between(to, from).map(|months| -months);
    }
    let (start, end) = (Civil::of_days(split(from).0), Civil::of_days(split(to).0));
    let months = end.months() - start.months();
    let is_last = end.day == days_of_month(end.year, end.month);
    // The end of a month completes it, as in DuckDB.
    let complete = match end.day.cmp(&start.day) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => split(to).1 >= split(from).1,
        std::cmp::Ordering::Less => is_last && split(to).1 >= split(from).1,
    };
    Some(months - i64::from(!complete && months > 0))
}

fn date_diff(call: &Call) -> Result<ArrayRef> {
    distance(call, Unit::boundaries)
}

fn date_sub(call: &Call) -> Result<ArrayRef> {
    distance(call, Unit::complete)
}

fn distance(call: &Call, of: fn(Unit, i64, i64) -> Option<i64>) -> Result<ArrayRef> {
    let names = call.text(0);
    let unit = |row: usize| match Unit::named(names.value(row)) {
        Some(unit) => Ok(unit),
        None => {
            call.fails_as("22023", format_args!("'{}' is not a unit of time", names.value(row)))
        }
    };
    let checked = |distance: Option<i64>| match distance {
        Some(distance) => Ok(Some(distance)),
        None => call.fails("the distance is too large"),
    };
    let (from, to) = (call.moments(1)?, call.moments(2)?);
    call.wholes(|row| match (unit(row)?, from.at(row), to.at(row)) {
        (unit, Ok(from), Ok(to)) => checked(of(unit, from, to)),
        // NULL, as in DuckDB.
        _ => Ok(None),
    })
}

fn last_day(call: &Call) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    call.dates(|row| {
        let Ok(micros) = moments.at(row) else { return Ok(None) };
        let civil = Civil::of_days(split(micros).0);
        let day = days_of_month(civil.year, civil.month);
        Ok(i32::try_from(Civil { day, ..civil }.days()).ok())
    })
}

fn day_of(call: &Call, row: usize) -> Result<i64> {
    let part = |at: usize| call.whole(at).value(row);
    // A negative year counts BC years; 1 BC is year 0 of the calendar.
    let year = match part(0) {
        year @ ..0 => Some(year + 1),
        0 => None,
        year => Some(year),
    };
    match year.and_then(|year| Civil::checked(year, part(1), part(2))) {
        Some(civil) => Ok(civil.days()),
        None => {
            let (year, month, day) = (part(0), part(1), part(2));
            call.fails_as("22008", format_args!("{year}-{month}-{day} is not a date"))
        }
    }
}

fn make_date(call: &Call) -> Result<ArrayRef> {
    if call.count() == 1 {
        let days = call.whole(0);
        return call.dates(|row| match i32::try_from(days.value(row)) {
            Ok(days) => Ok(Some(days)),
            Err(_) => call.fails(format_args!("day {} is out of range", days.value(row))),
        });
    }
    call.dates(|row| Ok(i32::try_from(day_of(call, row)?).ok()))
}

/// Returns the microseconds of a time of day whose first part is this argument.
fn time_of(call: &Call, row: usize, at: usize) -> Result<i64> {
    let (hour, minute) = (call.whole(at).value(row), call.whole(at + 1).value(row));
    let second = call.double(at + 2).value(row);
    let is_end = hour == 24 && minute == 0 && second == 0.0;
    let is_time = is_end
        || (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..60.0).contains(&second);
    if !is_time {
        return call
            .fails_as("22008", format_args!("{hour}:{minute}:{second} is not a time of day"));
    }
    let micros = (second * MICROS_OF_SECOND as f64).round() as i64;
    Ok(hour * MICROS_OF_HOUR + minute * MICROS_OF_MINUTE + micros)
}

fn make_time(call: &Call) -> Result<ArrayRef> {
    call.plain::<Time64NanosecondType>(|row| Ok(Some(time_of(call, row, 0)? * 1000)))
}

fn make_timestamp(call: &Call) -> Result<ArrayRef> {
    if call.count() == 1 {
        let micros = call.whole(0);
        return call.timestamps(|row| finite(call, micros.value(row)));
    }
    call.timestamps(|row| {
        let of_day = time_of(call, row, 3)?;
        let micros = day_of(call, row)?.checked_mul(MICROS_OF_DAY);
        match micros.and_then(|micros| micros.checked_add(of_day)) {
            Some(micros) => Ok(Some(micros)),
            None => call.fails("the timestamp is out of range"),
        }
    })
}

fn age(call: &Call) -> Result<ArrayRef> {
    let to = call.moments(0)?;
    let from = match call.count() {
        1 => None,
        _ => Some(call.moments(1)?),
    };
    let values: Result<IntervalMonthDayNanoArray> = (0..call.rows)
        .map(|row| {
            if call.is_null(row) {
                return Ok(None);
            }
            let (to, from) = match &from {
                Some(from) => (to.at(row), from.at(row)),
                None => (Ok(today_micros()), to.at(row)),
            };
            let (Ok(to), Ok(from)) = (to, from) else {
                return call.fails_as("22008", "cannot subtract infinite timestamps");
            };
            match difference(to, from) {
                Some(interval) => Ok(Some(interval)),
                None => call.fails("the distance is too large"),
            }
        })
        .collect();
    Ok(std::sync::Arc::new(values?))
}

fn today_micros() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = now.map_or(0, |now| now.as_micros() as i64);
    micros - micros.rem_euclid(MICROS_OF_DAY)
}

/// Computes months, days and time between two timestamps, like PostgreSQL's `age`.
fn difference(to: i64, from: i64) -> Option<IntervalMonthDayNano> {
    if to < from {
        let back = difference(from, to)?;
        return Some(IntervalMonthDayNano::new(-back.months, -back.days, -back.nanoseconds));
    }
    let (start, end) = (Civil::of_days(split(from).0), Civil::of_days(split(to).0));
    let (mut months, mut days) = (end.months() - start.months(), end.day - start.day);
    let mut time = split(to).1 - split(from).1;
    if time < 0 {
        time += MICROS_OF_DAY;
        days -= 1;
    }
    if days < 0 {
        days += days_of_month(start.year, start.month);
        months -= 1;
    }
    let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
    Some(IntervalMonthDayNano::new(months, days, time * 1000))
}

/// `date_add(date, interval)` as in DuckDB: always a timestamp.
fn date_add(call: &Call) -> Result<ArrayRef> {
    let moments = call.moments(0)?;
    let intervals = call.arrays[1].as_primitive::<IntervalMonthDayNanoType>();
    call.timestamps(|row| match plus(moments.at(row), intervals.value(row)) {
        Some(moved) => Ok(Some(number(moved))),
        None => call.fails("the timestamp is out of range"),
    })
}

/// `to_days(3)` and similar functions: an interval of a number of units.
fn units(call: &Call, months: i64, days: i64, micros: i64) -> Result<ArrayRef> {
    let numbers = call.whole(0);
    let of = |number: i64| {
        let months = i32::try_from(number.checked_mul(months)?).ok()?;
        let days = i32::try_from(number.checked_mul(days)?).ok()?;
        let nanos = number.checked_mul(micros)?.checked_mul(1000)?;
        Some(IntervalMonthDayNano::new(months, days, nanos))
    };
    call.primitives::<IntervalMonthDayNanoType>(|row| match of(numbers.value(row)) {
        Some(interval) => Ok(Some(interval)),
        None => call.fails(format_args!("{} is too large for an interval", numbers.value(row))),
    })
}

macro_rules! to_units {
    ($($name:ident $unit:literal $months:expr, $days:expr, $micros:expr;)*) => {
        $(
            fn $name(call: &Call) -> Result<ArrayRef> {
                units(call, $months, $days, $micros)
            }
        )*
        const TO_UNITS: &[Entry] = &[$(Entry {
            name: stringify!($name),
            aliases: &[],
            arguments: "number",
            about: concat!("An interval of this many ", $unit, "."),
            example: concat!(stringify!($name), "(3)"),
            takes: &[Arguments::Are(&[Takes::Whole])],
            gives: interval,
            volatile: false,
            run: $name,
        }),*];
    };
}

to_units! {
    to_years "years" 12, 0, 0;
    to_quarters "quarters" 3, 0, 0;
    to_months "months" 1, 0, 0;
    to_weeks "weeks" 0, 7, 0;
    to_days "days" 0, 1, 0;
    to_hours "hours" 0, 0, MICROS_OF_HOUR;
    to_minutes "minutes" 0, 0, MICROS_OF_MINUTE;
    to_seconds "seconds" 0, 0, MICROS_OF_SECOND;
    to_milliseconds "milliseconds" 0, 0, 1000;
    to_microseconds "microseconds" 0, 0, 1;
}

/// Tests numbers, dates and timestamps, such as `isinf`.
fn flags(call: &Call, of_number: fn(f64) -> bool, of_endless: bool) -> Result<ArrayRef> {
    match call.arrays[0].data_type() {
        DataType::Float64 => {
            let values = call.double(0);
            call.flags(|row| Ok(Some(of_number(values.value(row)))))
        }
        DataType::Interval(_) => call.flags(|_| Ok(Some(!of_endless))),
        _ => {
            let moments = call.moments(0)?;
            call.flags(|row| Ok(Some(moments.at(row).is_err() == of_endless)))
        }
    }
}

const NUMBER_OR_TIME: &[Arguments] = &[
    Arguments::Are(&[Takes::Double]),
    Arguments::Are(&[Takes::Moment]),
    Arguments::Are(&[Takes::Interval]),
];

/// `make_timestamp_ns(nanoseconds)`
fn make_timestamp_ns(call: &Call) -> Result<ArrayRef> {
    let nanos = call.whole(0);
    call.plain::<TimestampNanosecondType>(|row| finite(call, nanos.value(row)))
}

/// Returns the number of a finite timestamp.
fn finite(call: &Call, number: i64) -> Result<Option<i64>> {
    match Endless::of_moment(number) {
        None => Ok(Some(number)),
        Some(_) => call.fails_as("22008", format_args!("{number} is out of range for a timestamp")),
    }
}

fn time(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Time64(TimeUnit::Nanosecond))
}

const DISTANCE: &[Arguments] = &[
    Arguments::Are(&[Takes::Text, Takes::Moment, Takes::Moment]),
    Arguments::Are(&[Takes::Text, Takes::Time, Takes::Time]),
];

const OTHERS: &[Entry] = &[
    Entry {
        name: "date_diff",
        aliases: &["datediff"],
        arguments: "unit, from, to",
        about: "How many units begin between two dates, timestamps or times.",
        example: "date_diff('month', DATE '2024-01-31', DATE '2024-02-01') = 1",
        takes: DISTANCE,
        gives: whole,
        volatile: false,
        run: date_diff,
    },
    Entry {
        name: "date_sub",
        aliases: &["datesub"],
        arguments: "unit, from, to",
        about: "How many whole units lie between two dates, timestamps or times.",
        example: "date_sub('month', DATE '2024-01-31', DATE '2024-02-01') = 0",
        takes: DISTANCE,
        gives: whole,
        volatile: false,
        run: date_sub,
    },
    Entry {
        name: "date_add",
        aliases: &[],
        arguments: "date, interval",
        about: "The timestamp that is an interval after a date or timestamp.",
        example: "date_add(DATE '2024-01-31', INTERVAL 1 MONTH) = TIMESTAMP '2024-02-29 00:00:00'",
        takes: &[Arguments::Are(&[Takes::Moment, Takes::Interval])],
        gives: |given, _| Ok(given[0].clone()),
        volatile: false,
        run: date_add,
    },
    Entry {
        name: "last_day",
        aliases: &[],
        arguments: "date",
        about: "The last day of the month.",
        example: "last_day(DATE '2024-02-05') = DATE '2024-02-29'",
        takes: &[Arguments::Are(&[Takes::Moment])],
        gives: date,
        volatile: false,
        run: last_day,
    },
    Entry {
        name: "make_date",
        aliases: &[],
        arguments: "year, month, day",
        about: "The date of these; of one integer, the date that many days after 1970-01-01.",
        example: "make_date(2024, 2, 29) = DATE '2024-02-29'",
        takes: &[
            Arguments::Are(&[Takes::Whole, Takes::Whole, Takes::Whole]),
            Arguments::Are(&[Takes::Whole]),
        ],
        gives: date,
        volatile: false,
        run: make_date,
    },
    Entry {
        name: "make_time",
        aliases: &[],
        arguments: "hour, minute, second",
        about: "The time of day of these.",
        example: "make_time(12, 34, 56.5) = TIME '12:34:56.5'",
        takes: &[Arguments::Are(&[Takes::Whole, Takes::Whole, Takes::Double])],
        gives: time,
        volatile: false,
        run: make_time,
    },
    Entry {
        name: "make_timestamp",
        aliases: &[],
        arguments: "year, month, day, hour, minute, second",
        about: "The timestamp of these; of one integer, the timestamp that many microseconds after 1970.",
        example: "make_timestamp(2024, 2, 29, 12, 34, 56.5)",
        takes: &[
            Arguments::Are(&[
                Takes::Whole,
                Takes::Whole,
                Takes::Whole,
                Takes::Whole,
                Takes::Whole,
                Takes::Double,
            ]),
            Arguments::Are(&[Takes::Whole]),
        ],
        gives: timestamp,
        volatile: false,
        run: make_timestamp,
    },
    Entry {
        name: "make_timestamp_ns",
        aliases: &[],
        arguments: "nanoseconds",
        about: "The timestamp that many nanoseconds after 1970.",
        example: "make_timestamp_ns(1700000000000000000)",
        takes: &[Arguments::Are(&[Takes::Whole])],
        gives: |_, _| Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
        volatile: false,
        run: make_timestamp_ns,
    },
    Entry {
        name: "age",
        aliases: &[],
        arguments: "to, from",
        about: "Months, days and time between two; of one argument, until the beginning of today.",
        example: "age(TIMESTAMP '2024-03-05 00:00:00', TIMESTAMP '2023-01-01 00:00:00')",
        takes: &[Arguments::Are(&[Takes::Moment, Takes::Moment]), Arguments::Are(&[Takes::Moment])],
        gives: interval,
        volatile: false,
        run: age,
    },
    Entry {
        name: "isfinite",
        aliases: &[],
        arguments: "value",
        about: "Whether a number is neither infinite nor NaN, or a date or timestamp not 'infinity'.",
        example: "isfinite(1.0)",
        takes: NUMBER_OR_TIME,
        gives: crate::scalar::entry::flag,
        volatile: false,
        run: |call| flags(call, f64::is_finite, false),
    },
    Entry {
        name: "isinf",
        aliases: &[],
        arguments: "value",
        about: "Whether a number is infinite, or a date or timestamp is 'infinity' or '-infinity'.",
        example: "isinf('inf'::DOUBLE)",
        takes: NUMBER_OR_TIME,
        gives: crate::scalar::entry::flag,
        volatile: false,
        run: |call| flags(call, f64::is_infinite, true),
    },
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[OTHERS, TO_UNITS];
