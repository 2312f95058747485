//! `time_bucket` and `date_trunc`: the beginning of the interval that contains a timestamp.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes};
use crate::temporal::civil::{
    Civil, MICROS_OF_DAY, MICROS_OF_HOUR, MICROS_OF_MINUTE, MICROS_OF_SECOND, iso_weekday,
    micros_of_unit, number, plus_months, split,
};
use crate::temporal::{Moments, cast_moments, finite_only};

/// Origin of buckets of days or less: Monday, 2000-01-03; of months: 2000-01-01.
const ORIGIN_DAYS: i64 = 10_959;
const ORIGIN_MONTHS: i64 = 2000 * 12;

/// Returns the beginning of the bucket that contains a timestamp.
fn bucket(width: IntervalMonthDayNano, at: i64, origin: Option<i64>) -> Result<i64, &'static str> {
    let too_far = "the timestamp is out of range";
    let micros = i64::from(width.days)
        .checked_mul(MICROS_OF_DAY)
        .and_then(|days| days.checked_add(width.nanoseconds / 1000))
        .ok_or(too_far)?;
    if width.months != 0 {
        if micros != 0 {
            return Err("a width of months cannot have days or time");
        }
        let width = i64::from(width.months);
        if width < 0 {
            return Err("the width must be greater than 0");
        }
        let months = |at: i64| Civil::of_days(split(at).0).months();
        let from = origin.map_or(ORIGIN_MONTHS, months);
        let mut start = (months(at) - from).div_euclid(width) * width + from;
        let begin = |start: i64| match origin {
            Some(origin) => plus_months(origin, start - from),
            None => plus_months(0, start - 1970 * 12),
        };
        if begin(start).ok_or(too_far)? > at {
            start -= width;
        }
        return begin(start).ok_or(too_far);
    }
    if micros <= 0 {
        return Err("the width must be greater than 0");
    }
    let origin = origin.unwrap_or(ORIGIN_DAYS * MICROS_OF_DAY);
    let distance = at.checked_sub(origin).ok_or(too_far)?;
    (distance.div_euclid(micros) * micros).checked_add(origin).ok_or(too_far)
}

fn time_bucket(call: &Call) -> Result<ArrayRef> {
    let widths = call.arrays[0].as_primitive::<IntervalMonthDayNanoType>();
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let moments = match call.arrays[1].data_type() {
        DataType::Date32 => {
            let midnights = cast_moments(&call.arrays[1], &micros, &options)?;
            Moments::new(midnights.as_primitive().clone())
        }
        _ => call.moments(1)?,
    };
    let third = Third::try_from_call(call)?;
    let starts = call.plain::<TimestampMicrosecondType>(|row| {
        let width = widths.value(row);
        let start = match (moments.at(row), &third) {
            // An infinite value is its own bucket.
            (Err(endless), Third::None | Third::Offset(_)) => {
                bucket(width, 0, None).map(|_| endless.moment())
            }
            (Ok(at), Third::None) => bucket(width, at, None),
            (Ok(at), Third::Offset(offsets)) => shifted(width, at, offsets.value(row)),
            (at, Third::Origin(origins)) => match (at, origins.at(row)) {
                (Ok(at), Ok(origin)) => bucket(width, at, Some(origin)),
                (Err(endless), Ok(origin)) => {
                    bucket(width, origin, Some(origin)).map(|_| endless.moment())
                }
                // NULL, as in DuckDB.
                (_, Err(_)) => return Ok(None),
            },
        };
        start.map(Some).or_else(|why| call.fails(why))
    })?;
    match &call.result {
        result if result == &micros => Ok(starts),
        date_or_zoned => Ok(cast_moments(&starts, date_or_zoned, &options)?),
    }
}

/// The optional third argument of `time_bucket`.
enum Third<'a> {
    None,
    Offset(&'a PrimitiveArray<IntervalMonthDayNanoType>),
    Origin(Moments),
}

impl<'a> Third<'a> {
    fn try_from_call(call: &'a Call) -> Result<Self> {
        let Some(third) = call.arrays.get(2) else { return Ok(Self::None) };
        Ok(match third.data_type() {
            DataType::Interval(_) => Self::Offset(third.as_primitive()),
            _ => Self::Origin(call.moments(2)?),
        })
    }
}

/// Returns the bucket after all buckets are shifted by an offset.
fn shifted(
    width: IntervalMonthDayNano,
    at: i64,
    offset: IntervalMonthDayNano,
) -> Result<i64, &'static str> {
    let by = |at: i64, sign: i64| {
        let micros = i64::from(offset.days) * MICROS_OF_DAY + offset.nanoseconds / 1000;
        plus_months(at, sign * i64::from(offset.months))?.checked_add(sign * micros)
    };
    let too_far = "the timestamp is out of range";
    by(bucket(width, by(at, -1).ok_or(too_far)?, None)?, 1).ok_or(too_far)
}

/// A unit that timestamps are truncated to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TruncationUnit {
    Years(i64),
    IsoYear,
    Quarter,
    Month,
    Week,
    /// A number of microseconds.
    Micros(i64),
}

impl TruncationUnit {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "mil" | "mils" => Self::Years(1000),
            "century" | "centuries" | "cent" | "c" => Self::Years(100),
            "decade" | "decades" | "dec" | "decs" => Self::Years(10),
            "year" | "years" | "y" | "yr" | "yrs" => Self::Years(1),
            "isoyear" => Self::IsoYear,
            "quarter" | "quarters" => Self::Quarter,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "week" | "weeks" | "w" | "yearweek" => Self::Week,
            name => Self::Micros(micros_of_unit(name)?),
        })
    }

    /// Returns the beginning of the unit that contains a timestamp.
    fn beginning(self, at: i64) -> i64 {
        let days = split(at).0;
        let civil = || Civil::of_days(days);
        let day = match self {
            Self::Micros(micros) => return at.div_euclid(micros) * micros,
            Self::Years(years) => {
                // Centuries begin with the year 1, decades with 0.
                let first = i64::from(years >= 100);
                let year = (civil().year - first).div_euclid(years) * years + first;
                Civil { year, month: 1, day: 1 }.days()
            }
            Self::IsoYear => {
                let first = Civil { year: civil().iso_week().0, month: 1, day: 4 }.days();
                first - (iso_weekday(first) - 1)
            }
            Self::Quarter => {
                let civil = civil();
                Civil { month: (civil.month - 1) / 3 * 3 + 1, day: 1, ..civil }.days()
            }
            Self::Month => Civil { day: 1, ..civil() }.days(),
            Self::Week => days - (iso_weekday(days) - 1),
        };
        day * MICROS_OF_DAY
    }
}

/// Truncates an interval to a unit.
fn interval_down_to(unit: &str, value: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let months = |months: i32| IntervalMonthDayNano::new(value.months / months * months, 0, 0);
    let days = |days: i32| IntervalMonthDayNano::new(value.months, value.days / days * days, 0);
    let time = |micros: i64| {
        let nanos = micros * 1000;
        let time = value.nanoseconds / nanos * nanos;
        IntervalMonthDayNano::new(value.months, value.days, time)
    };
    Some(match unit {
        "millennium" => months(12_000),
        "century" => months(1200),
        "decade" => months(120),
        "year" | "years" | "isoyear" => months(12),
        "quarter" => months(3),
        "month" | "months" => months(1),
        "week" | "weeks" => days(7),
        "day" | "days" => days(1),
        "hour" | "hours" => time(MICROS_OF_HOUR),
        "minute" | "minutes" => time(MICROS_OF_MINUTE),
        "second" | "seconds" => time(MICROS_OF_SECOND),
        "millisecond" | "milliseconds" => time(1000),
        "microsecond" | "microseconds" => value,
        _ => return None,
    })
}

fn unknown<T>(call: &Call, unit: &str) -> Result<Option<T>> {
    call.fails_as("22023", format_args!("'{unit}' is not a unit of time"))
}

/// Uses DataFusion's function, which handles repeated hours, for a constant unit that it supports.
fn truncated_in_zone(call: &Call) -> Result<Option<ArrayRef>> {
    let (data_type, names) = (call.arrays[1].data_type(), call.text(0));
    let is_zoned = matches!(data_type, DataType::Timestamp(_, Some(_)));
    let known = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    let unit = names.iter().next().flatten().map(str::to_ascii_lowercase);
    let Some(unit) = unit.filter(|unit| is_zoned && known.contains(&unit.as_str())) else {
        return Ok(None);
    };
    if names.iter().any(|name| !name.is_some_and(|name| name.eq_ignore_ascii_case(&unit))) {
        return Ok(None);
    }
    finite_only(&call.arrays[1], |finite| {
        let args = ScalarFunctionArgs {
            args: vec![
                ColumnarValue::Scalar(ScalarValue::from(unit)),
                ColumnarValue::Array(Arc::clone(finite)),
            ],
            arg_fields: call.fields.clone(),
            number_rows: call.rows,
            return_field: Arc::new(Field::new("", data_type.clone(), true)),
            config_options: Arc::clone(&call.config),
        };
        datetime::date_trunc().invoke_with_args(args)?.into_array(call.rows)
    })
    .map(Some)
}

fn date_trunc(call: &Call) -> Result<ArrayRef> {
    let names = call.text(0);
    if let DataType::Interval(_) = call.arrays[1].data_type() {
        let values = call.arrays[1].as_primitive::<IntervalMonthDayNanoType>();
        return call.primitives::<IntervalMonthDayNanoType>(|row| {
            let unit = names.value(row).to_ascii_lowercase();
            match interval_down_to(&unit, values.value(row)) {
                Some(value) => Ok(Some(value)),
                None => unknown(call, names.value(row)),
            }
        });
    }
    let moments = call.moments(1)?;
    if let Some(zoned) = truncated_in_zone(call)? {
        return Ok(zoned);
    }
    // The unit is a constant most of the time.
    let last: Cell<Option<(&str, TruncationUnit)>> = Cell::new(None);
    call.timestamps(|row| {
        let name = names.value(row);
        let known = last.get().filter(|(last, _)| *last == name).map(|(_, unit)| unit);
        match known.or_else(|| TruncationUnit::named(name)) {
            Some(unit) => {
                last.set(Some((name, unit)));
                Ok(Some(number(moments.at(row).map(|micros| unit.beginning(micros)))))
            }
            None => unknown(call, name),
        }
    })
}

fn as_second(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(given[1].clone())
}

const ONLY: &[Entry] = &[
    Entry {
        name: "time_bucket",
        aliases: &[],
        arguments: "width, moment[, origin or offset]",
        about: "The beginning of the interval of this width that a date or timestamp is in.",
        example: "time_bucket(INTERVAL '1 hour', TIMESTAMP '2024-03-05 11:12:13')",
        takes: &[
            Arguments::Are(&[Takes::Interval, Takes::DateOrTimestamp]),
            Arguments::Are(&[Takes::Interval, Takes::DateOrTimestamp, Takes::Interval]),
            Arguments::Are(&[Takes::Interval, Takes::DateOrTimestamp, Takes::Moment]),
        ],
        gives: as_second,
        volatile: false,
        run: time_bucket,
    },
    Entry {
        name: "date_trunc",
        aliases: &["datetrunc"],
        arguments: "unit, moment",
        about: "The beginning of the unit that a date, timestamp or interval is in; of a date, as a timestamp.",
        example: "date_trunc('month', DATE '2024-03-05') = TIMESTAMP '2024-03-01 00:00:00'",
        takes: &[
            Arguments::Are(&[Takes::Text, Takes::Moment]),
            Arguments::Are(&[Takes::Text, Takes::Interval]),
        ],
        gives: as_second,
        volatile: false,
        run: date_trunc,
    },
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ONLY];
