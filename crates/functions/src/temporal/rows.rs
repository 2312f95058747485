//! Arrays of dates, times and intervals to text.

use datafusion::arrow::array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use datafusion::arrow::array::{Array, AsArray, StringArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::arrow::error::ArrowError;

use super::endless::Endless;
use super::style::{DateFormat, TemporalStyle};
use super::write::{
    write_date, write_styled_date, write_styled_timestamp, write_time, write_timestamp,
};
use super::write_interval::IntervalParts;
use super::zone::LocalZone;

/// Reads a value, such as microseconds, from each row.
type OfRow<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

/// Appends the value of a row.
pub type WriteRow<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// Whether this module writes values of the type.
pub fn is_temporal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Interval(_)
            | DataType::Duration(_)
    )
}

/// Returns the writer of an array's values in a style; None if this module does not support the type.
///
/// # Errors
/// If the time zone is unknown.
pub fn temporal_writer(
    array: &dyn Array,
    style: TemporalStyle,
) -> Result<Option<WriteRow<'_>>, ArrowError> {
    Ok(Some(match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values();
            dates(move |row| days[row].into(), style)
        }
        DataType::Date64 => {
            let millis = array.as_primitive::<Date64Type>().values();
            dates(move |row| millis[row].div_euclid(86_400_000), style)
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let (micros, nanos) = (time_micros(array), nanos(array));
            Box::new(move |row, out| write_time(micros(row), nanos(row), out))
        }
        DataType::Timestamp(_, zone) => timestamp(array, zone.as_deref(), style)?,
        DataType::Interval(_) | DataType::Duration(_) => {
            let (parts, format) = (interval_parts(array), style.intervals);
            Box::new(move |row, out| parts(row).write_in(format, out))
        }
        _ => return Ok(None),
    }))
}

/// Days since 1970 by row as dates.
fn dates<'a>(days: impl Fn(usize) -> i64 + 'a, style: TemporalStyle) -> WriteRow<'a> {
    match style.dates {
        DateFormat::Iso => Box::new(move |row, out| write_date(days(row), out)),
        _ => Box::new(move |row, out| write_styled_date(days(row), style, out)),
    }
}

/// Converts an array's values to texts in a style; None if this module does not support the type.
///
/// # Errors
/// If the time zone is unknown.
pub fn temporal_texts(
    array: &dyn Array,
    style: TemporalStyle,
) -> Result<Option<StringArray>, ArrowError> {
    let Some(write) = temporal_writer(array, style)? else { return Ok(None) };
    let mut texts = StringBuilder::with_capacity(array.len(), array.len() * 24);
    let mut text = Vec::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        write(row, &mut text);
        texts.append_value(String::from_utf8_lossy(&text));
    }
    Ok(Some(texts.finish()))
}

/// Microseconds since midnight.
pub fn time_micros(array: &dyn Array) -> OfRow<'_, i64> {
    match array.data_type() {
        DataType::Time32(TimeUnit::Second) => {
            let values = array.as_primitive::<Time32SecondType>().values();
            Box::new(move |row| i64::from(values[row]) * 1_000_000)
        }
        DataType::Time32(_) => {
            let values = array.as_primitive::<Time32MillisecondType>().values();
            Box::new(move |row| i64::from(values[row]) * 1000)
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            let values = array.as_primitive::<Time64NanosecondType>().values();
            Box::new(move |row| values[row].div_euclid(1000))
        }
        _ => {
            let values = array.as_primitive::<Time64MicrosecondType>().values();
            Box::new(move |row| values[row])
        }
    }
}

/// Microseconds since 1970; infinite values stay infinite.
pub fn timestamp_micros(array: &dyn Array) -> OfRow<'_, i64> {
    fn scaled<T: ArrowPrimitiveType<Native = i64>>(
        array: &dyn Array,
        times: i64,
    ) -> OfRow<'_, i64> {
        let values = array.as_primitive::<T>().values();
        Box::new(move |row| values[row].saturating_mul(times))
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => scaled::<TimestampSecondType>(array, 1_000_000),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            scaled::<TimestampMillisecondType>(array, 1000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            scaled::<TimestampMicrosecondType>(array, 1)
        }
        _ => {
            let values = array.as_primitive::<TimestampNanosecondType>().values();
            Box::new(move |row| match values[row] {
                endless if Endless::of_moment(endless).is_some() => endless,
                nanos => nanos.div_euclid(1000),
            })
        }
    }
}

/// Nanoseconds of the microsecond.
fn nanos(array: &dyn Array) -> OfRow<'_, u32> {
    fn remainder<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array) -> OfRow<'_, u32> {
        let values = array.as_primitive::<T>().values();
        Box::new(move |row| values[row].rem_euclid(1000) as u32)
    }
    match array.data_type() {
        DataType::Time64(TimeUnit::Nanosecond) => remainder::<Time64NanosecondType>(array),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => remainder::<TimestampNanosecondType>(array),
        _ => Box::new(|_| 0),
    }
}

fn timestamp<'a>(
    array: &'a dyn Array,
    zone: Option<&str>,
    style: TemporalStyle,
) -> Result<WriteRow<'a>, ArrowError> {
    let (micros, nanos) = (timestamp_micros(array), nanos(array));
    if style.dates != DateFormat::Iso {
        let zone = zone.map(LocalZone::parse).transpose()?;
        return Ok(Box::new(move |row, out| {
            write_styled_timestamp((micros(row), nanos(row)), zone, style, out);
        }));
    }
    Ok(match zone {
        None => Box::new(move |row, out| write_timestamp(micros(row), nanos(row), None, out)),
        Some("UTC" | "+00:00" | "Z") => {
            Box::new(move |row, out| write_timestamp(micros(row), nanos(row), Some(0), out))
        }
        Some(zone) => {
            let zone = LocalZone::parse(zone)?;
            Box::new(move |row, out| {
                let micros = micros(row);
                write_timestamp(micros, nanos(row), Some(zone.offset(micros)), out);
            })
        }
    })
}

/// Months, days and microseconds.
pub fn interval_parts(array: &dyn Array) -> OfRow<'_, IntervalParts> {
    fn parts<T: ArrowPrimitiveType<Native = i64>>(
        array: &dyn Array,
        micros: impl Fn(i64) -> i64 + 'static,
    ) -> OfRow<'_, IntervalParts> {
        let values = array.as_primitive::<T>().values();
        Box::new(move |row| IntervalParts { micros: micros(values[row]), ..Default::default() })
    }
    match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            let values = array.as_primitive::<IntervalYearMonthType>().values();
            Box::new(move |row| IntervalParts { months: values[row], ..Default::default() })
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let values = array.as_primitive::<IntervalDayTimeType>().values();
            Box::new(move |row| {
                let value = values[row];
                let micros = i64::from(value.milliseconds) * 1000;
                IntervalParts { months: 0, days: value.days, micros }
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>().values();
            Box::new(move |row| {
                let value = values[row];
                let micros = value.nanoseconds.div_euclid(1000);
                IntervalParts { months: value.months, days: value.days, micros }
            })
        }
        DataType::Duration(TimeUnit::Second) => {
            parts::<DurationSecondType>(array, |value| value.saturating_mul(1_000_000))
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            parts::<DurationMillisecondType>(array, |value| value.saturating_mul(1000))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            parts::<DurationMicrosecondType>(array, |value| value)
        }
        _ => parts::<DurationNanosecondType>(array, |value| value.div_euclid(1000)),
    }
}
