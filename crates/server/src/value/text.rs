//! Values as text, as PostgreSQL writes them: `t`, `\x00ff`, `{1,NULL,"a b"}`.

use atoll_sql::arrow::array::timezone::Tz;
use atoll_sql::arrow::array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use atoll_sql::arrow::array::{Array, ArrayRef, AsArray};
use atoll_sql::arrow::buffer::NullBuffer;
use atoll_sql::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::arrow::temporal_conversions::as_datetime_with_timezone;
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::json::json_cells;
use super::number::{
    write_decimal, write_f32, write_f64, write_i64, write_short_decimal, write_u64,
};
use super::time::{IntervalParts, write_date, write_time, write_timestamp};
use super::types::{INT2VECTOR, JSON, OIDVECTOR, PgType};
use super::{WriteValue, items, items_of};

/// The values of a column, to be written as text.
pub(crate) struct TextCells<'a> {
    pub(super) nulls: Option<NullBuffer>,
    pub(super) write: WriteValue<'a>,
}

impl TextCells<'_> {
    /// Whether there is no value.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the value of a row, which is not null.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        (self.write)(row, out);
    }
}

/// The values of a column as text.
pub(super) fn text_column<'a>(
    field: &Field,
    array: &'a ArrayRef,
) -> Result<TextCells<'a>, ArrowError> {
    match PgType::of_field(field).oid {
        INT2VECTOR | OIDVECTOR => {
            Ok(TextCells { nulls: array.logical_nulls(), write: vector(array)? })
        }
        _ => text_cells(array),
    }
}

/// Numbers with blanks between them.
fn vector(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let Some(values) = items(array) else { return Ok(Box::new(|_, _| {})) };
    let cells = text_cells(values)?;
    Ok(Box::new(move |row, out| {
        for (at, item) in items_of(array, row).enumerate() {
            if at > 0 {
                out.push(b' ');
            }
            cells.write(item, out);
        }
    }))
}

/// The values of an array as text.
pub(crate) fn text_cells(array: &ArrayRef) -> Result<TextCells<'_>, ArrowError> {
    Ok(TextCells { nulls: array.logical_nulls(), write: writer(array)? })
}

fn writer(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(move |row, out| out.push(if values.value(row) { b't' } else { b'f' }))
        }
        DataType::Int8 => whole::<Int8Type>(array),
        DataType::Int16 => whole::<Int16Type>(array),
        DataType::Int32 => whole::<Int32Type>(array),
        DataType::Int64 => whole::<Int64Type>(array),
        DataType::UInt8 => whole::<UInt8Type>(array),
        DataType::UInt16 => whole::<UInt16Type>(array),
        DataType::UInt32 => whole::<UInt32Type>(array),
        DataType::UInt64 => by::<UInt64Type>(array, write_u64),
        DataType::Float16 => by::<Float16Type>(array, |value, out| write_f32(value.to_f32(), out)),
        DataType::Float32 => by::<Float32Type>(array, write_f32),
        DataType::Float64 => by::<Float64Type>(array, write_f64),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => decimal(array),
        DataType::Utf8 => bytes(array, |array, row| array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => {
            bytes(array, |array, row| array.as_string::<i64>().value(row).as_bytes())
        }
        DataType::Utf8View => {
            bytes(array, |array, row| array.as_string_view().value(row).as_bytes())
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            Box::new(move |row, out| write_hex(binary_value(array, row), out))
        }
        DataType::Date32 => by::<Date32Type>(array, |days, out| write_whole_date(days.into(), out)),
        DataType::Date64 => by::<Date64Type>(array, |millis, out| {
            write_whole_date(millis.div_euclid(86_400_000), out);
        }),
        DataType::Time32(_) | DataType::Time64(_) => {
            let micros = time_micros(array);
            Box::new(move |row, out| write_time(micros(row), out))
        }
        DataType::Timestamp(_, zone) => timestamp(array, zone.as_deref())?,
        DataType::Interval(_) | DataType::Duration(_) => {
            let parts = interval_parts(array);
            Box::new(move |row, out| parts(row).write(out))
        }
        DataType::Null => Box::new(|_, _| {}),
        other if PgType::of(other).oid == JSON => json_cells(array)?,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => list(array)?,
        _ => {
            let format = FormatOptions::new();
            // What arrow knows and PostgreSQL does not is text.
            ArrayFormatter::try_new(array, &format)?;
            Box::new(move |row, out| {
                let text = ArrayFormatter::try_new(array, &FormatOptions::new())
                    .map(|values| values.value(row).to_string());
                out.extend_from_slice(text.unwrap_or_default().as_bytes());
            })
        }
    })
}

/// Values of a native type, written by a function.
fn by<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    write: impl Fn(T::Native, &mut Vec<u8>) + 'static,
) -> WriteValue<'_> {
    let values = array.as_primitive::<T>().values();
    Box::new(move |row, out| write(values[row], out))
}

fn whole<T: ArrowPrimitiveType>(array: &ArrayRef) -> WriteValue<'_>
where
    T::Native: Into<i64>,
{
    by::<T>(array, |value, out| write_i64(value.into(), out))
}

fn bytes<'a>(
    array: &'a ArrayRef,
    value: impl Fn(&'a ArrayRef, usize) -> &'a [u8] + 'a,
) -> WriteValue<'a> {
    Box::new(move |row, out| out.extend_from_slice(value(array, row)))
}

/// The bytes of a value.
pub(super) fn binary_value(array: &ArrayRef, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        _ => array.as_fixed_size_binary().value(row),
    }
}

fn write_hex(value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    for byte in value {
        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
        out.extend_from_slice(&[DIGITS[high], DIGITS[low]]);
    }
}

fn write_whole_date(days: i64, out: &mut Vec<u8>) {
    if write_date(days, out) {
        out.extend_from_slice(b" BC");
    }
}

/// Digits that 64 bits always hold.
const SHORT_DIGITS: u8 = 18;

fn decimal(array: &ArrayRef) -> WriteValue<'_> {
    if let DataType::Decimal128(precision, scale @ 0..) = array.data_type()
        && *precision <= SHORT_DIGITS
        && scale.unsigned_abs() <= *precision
    {
        let scale = u32::from(scale.unsigned_abs());
        return by::<Decimal128Type>(array, move |value, out| {
            write_short_decimal(value as i64, scale, out);
        });
    }
    let digits = decimal_digits(array);
    Box::new(move |row, out| {
        let (is_negative, digits, scale) = digits(row);
        write_decimal(is_negative, &digits, scale, out);
    })
}

/// Sign, digits and places of a decimal.
pub(super) type DecimalDigits = (bool, String, i8);

/// The digits of decimals, by their rows.
pub(super) fn decimal_digits(array: &ArrayRef) -> Box<dyn Fn(usize) -> DecimalDigits + '_> {
    fn of<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        scale: i8,
    ) -> Box<dyn Fn(usize) -> DecimalDigits + '_>
    where
        T::Native: ToString,
    {
        let values = array.as_primitive::<T>().values();
        Box::new(move |row| {
            let text = values[row].to_string();
            match text.strip_prefix('-') {
                Some(digits) => (true, digits.to_owned(), scale),
                None => (false, text, scale),
            }
        })
    }
    match array.data_type() {
        DataType::Decimal32(_, scale) => of::<Decimal32Type>(array, *scale),
        DataType::Decimal64(_, scale) => of::<Decimal64Type>(array, *scale),
        DataType::Decimal256(_, scale) => of::<Decimal256Type>(array, *scale),
        DataType::Decimal128(_, scale) => of::<Decimal128Type>(array, *scale),
        _ => of::<UInt64Type>(array, 0),
    }
}

/// Microseconds, or whatever else, of each row.
type OfRow<'a, T> = Box<dyn Fn(usize) -> T + 'a>;

/// Microseconds since midnight.
pub(super) fn time_micros(array: &ArrayRef) -> OfRow<'_, i64> {
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

/// Microseconds since 1970.
pub(super) fn timestamp_micros(array: &ArrayRef) -> OfRow<'_, i64> {
    fn of<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef, times: i64) -> OfRow<'_, i64> {
        let values = array.as_primitive::<T>().values();
        Box::new(move |row| values[row].saturating_mul(times))
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => of::<TimestampSecondType>(array, 1_000_000),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            of::<TimestampMillisecondType>(array, 1000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => of::<TimestampMicrosecondType>(array, 1),
        _ => {
            let values = array.as_primitive::<TimestampNanosecondType>().values();
            Box::new(move |row| values[row].div_euclid(1000))
        }
    }
}

fn timestamp<'a>(array: &'a ArrayRef, zone: Option<&str>) -> Result<WriteValue<'a>, ArrowError> {
    let micros = timestamp_micros(array);
    Ok(match zone {
        None => Box::new(move |row, out| write_timestamp(micros(row), None, out)),
        Some("UTC" | "+00:00" | "Z") => {
            Box::new(move |row, out| write_timestamp(micros(row), Some(0), out))
        }
        Some(zone) => {
            let zone: Tz = zone.parse()?;
            Box::new(move |row, out| {
                let micros = micros(row);
                write_timestamp(micros, Some(offset(micros, zone)), out);
            })
        }
    })
}

/// Seconds by which local time is ahead at a moment.
fn offset(micros: i64, zone: Tz) -> i32 {
    let at = as_datetime_with_timezone::<TimestampMicrosecondType>(micros, zone);
    let ahead = at.map(|at| (at.naive_local() - at.naive_utc()).num_seconds());
    ahead.and_then(|seconds| i32::try_from(seconds).ok()).unwrap_or(0)
}

/// Months, days and microseconds.
pub(super) fn interval_parts(array: &ArrayRef) -> OfRow<'_, IntervalParts> {
    fn of<T: ArrowPrimitiveType<Native = i64>>(
        array: &ArrayRef,
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
            of::<DurationSecondType>(array, |value| value.saturating_mul(1_000_000))
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            of::<DurationMillisecondType>(array, |value| value.saturating_mul(1000))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            of::<DurationMicrosecondType>(array, |value| value)
        }
        _ => of::<DurationNanosecondType>(array, |value| value.div_euclid(1000)),
    }
}

fn list(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let Some(values) = items(array) else { return Ok(Box::new(|_, _| {})) };
    let cells = text_cells(values)?;
    Ok(Box::new(move |row, out| {
        out.push(b'{');
        for (at, item) in items_of(array, row).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if cells.is_null(item) {
                out.extend_from_slice(b"NULL");
                continue;
            }
            let start = out.len();
            cells.write(item, out);
            quote_item(start, out);
        }
        out.push(b'}');
    }))
}

/// Quotes the item of a list behind `start`, where it could be read as something else.
fn quote_item(start: usize, out: &mut Vec<u8>) {
    let item = &out[start..];
    let is_special =
        |byte: &u8| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',') || byte.is_ascii_whitespace();
    if !item.is_empty() && !item.iter().any(is_special) && !item.eq_ignore_ascii_case(b"null") {
        return;
    }
    let item = out.split_off(start);
    out.push(b'"');
    for byte in item {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}
