//! Values as text in PostgreSQL's format: `t`, `\x00ff`, `{1,NULL,"a b"}`.

use atoll_sql::arrow::array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use atoll_sql::arrow::array::{Array, ArrayRef, AsArray};
use atoll_sql::arrow::buffer::NullBuffer;
use atoll_sql::arrow::datatypes::{DataType, Field};
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll_sql::temporal::{TemporalStyle, is_temporal, temporal_writer, write_i64, write_u64};
use atoll_sql::{format_type, is_array_item_quoted, is_of_users, shown_function};

use super::json::json_cells;
use super::number::{write_decimal, write_f32, write_f64, write_short_decimal};
use super::types::{BPCHAR, INT2VECTOR, JSON, OIDVECTOR, PgType, RECORD, REGPROC, REGTYPE};
use super::{WriteValue, items, items_of};

/// The values of a column, for writing as text.
pub(crate) struct TextCells<'a> {
    pub(super) nulls: Option<NullBuffer>,
    pub(super) write: WriteValue<'a>,
}

impl TextCells<'_> {
    /// Whether the value is null.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the value of a row that is not null.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        (self.write)(row, out);
    }
}

/// What the modifier of a type with a length adds to it.
const LENGTH_BASE: i32 = 4;

/// The values of a column as text; those of CHAR(n), which are stored without spaces at their ends, with n characters.
pub(crate) fn text_column<'a>(
    field: &Field,
    array: &'a ArrayRef,
    style: TemporalStyle,
) -> Result<TextCells<'a>, ArrowError> {
    let of = PgType::of_field(field);
    match of.oid {
        RECORD if matches!(array.data_type(), DataType::Struct(_)) => {
            Ok(TextCells { nulls: array.logical_nulls(), write: record(array, style)? })
        }
        INT2VECTOR | OIDVECTOR => {
            Ok(TextCells { nulls: array.logical_nulls(), write: vector(array, style)? })
        }
        BPCHAR if of.modifier > LENGTH_BASE => {
            let cells = text_cells(array, style)?;
            let length = (of.modifier - LENGTH_BASE) as usize;
            let write = move |row, out: &mut Vec<u8>| {
                let start = out.len();
                cells.write(row, out);
                let characters = out[start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
                out.resize(out.len() + length.saturating_sub(characters), b' ');
            };
            Ok(TextCells { nulls: array.logical_nulls(), write: Box::new(write) })
        }
        REGPROC if array.data_type() == &DataType::Int64 => {
            let oids = array.as_primitive::<Int64Type>();
            let write = move |row, out: &mut Vec<u8>| {
                out.extend_from_slice(shown_function(oids.value(row)).as_bytes());
            };
            Ok(TextCells { nulls: array.logical_nulls(), write: Box::new(write) })
        }
        REGTYPE if array.data_type() == &DataType::Int64 => {
            let oids = array.as_primitive::<Int64Type>();
            let write = move |row, out: &mut Vec<u8>| {
                let oid = oids.value(row);
                // The names of users' types are not known here.
                let is_of_users = u32::try_from(oid).is_ok_and(is_of_users);
                let name = if is_of_users { oid.to_string() } else { format_type(oid, -1) };
                out.extend_from_slice(name.as_bytes());
            };
            Ok(TextCells { nulls: array.logical_nulls(), write: Box::new(write) })
        }
        _ => text_cells(array, style),
    }
}

/// Rows: `(1,"a b",)`.
fn record(array: &ArrayRef, style: TemporalStyle) -> Result<WriteValue<'_>, ArrowError> {
    let values = array.as_struct();
    let columns = values.fields().iter().zip(values.columns());
    let columns = columns.map(|(field, column)| match column.data_type() {
        // A row within a row.
        DataType::Struct(_) => {
            Ok(TextCells { nulls: column.logical_nulls(), write: record(column, style)? })
        }
        _ => text_column(field, column, style),
    });
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    Ok(Box::new(move |row, out| {
        out.push(b'(');
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if !column.is_null(row) {
                let start = out.len();
                column.write(row, out);
                quote_field(start, out);
            }
        }
        out.push(b')');
    }))
}

/// Quotes the field of a row after `start` if it could be misread.
fn quote_field(start: usize, out: &mut Vec<u8>) {
    let is_special =
        |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',') || byte.is_ascii_whitespace();
    if out.len() > start && !out[start..].iter().any(is_special) {
        return;
    }
    let field = out.split_off(start);
    out.push(b'"');
    for byte in field {
        if matches!(byte, b'"' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Numbers separated by spaces.
fn vector(array: &ArrayRef, style: TemporalStyle) -> Result<WriteValue<'_>, ArrowError> {
    let Some(values) = items(array) else { return Ok(Box::new(|_, _| {})) };
    let cells = text_cells(values, style)?;
    Ok(Box::new(move |row, out| {
        for (at, item) in items_of(array, row).enumerate() {
            if at > 0 {
                out.push(b' ');
            }
            cells.write(item, out);
        }
    }))
}

/// The values of an array as text, those of dates, times and intervals in a style.
pub(crate) fn text_cells(
    array: &ArrayRef,
    style: TemporalStyle,
) -> Result<TextCells<'_>, ArrowError> {
    Ok(TextCells { nulls: array.logical_nulls(), write: writer(array, style)? })
}

fn writer(array: &ArrayRef, style: TemporalStyle) -> Result<WriteValue<'_>, ArrowError> {
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
        DataType::Null => Box::new(|_, _| {}),
        other if is_temporal(other) => {
            temporal_writer(array.as_ref(), style)?.unwrap_or_else(|| Box::new(|_, _| {}))
        }
        other if PgType::from_data_type(other).oid == JSON => json_cells(array)?,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            list(array, style)?
        }
        _ => {
            let format = FormatOptions::new();
            // Arrow types without a PostgreSQL counterpart are text.
            ArrayFormatter::try_new(array, &format)?;
            Box::new(move |row, out| {
                let text = ArrayFormatter::try_new(array, &FormatOptions::new())
                    .map(|values| values.value(row).to_string());
                out.extend_from_slice(text.unwrap_or_default().as_bytes());
            })
        }
    })
}

/// Values of a native type, with the function that writes them.
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

/// The number of digits that always fit in 64 bits.
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

/// Sign, digits and scale of a decimal.
pub(super) type DecimalDigits = (bool, String, i8);

/// The digits of decimals by row.
pub(super) fn decimal_digits(array: &ArrayRef) -> Box<dyn Fn(usize) -> DecimalDigits + '_> {
    fn digits<T: ArrowPrimitiveType>(
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
        DataType::Decimal32(_, scale) => digits::<Decimal32Type>(array, *scale),
        DataType::Decimal64(_, scale) => digits::<Decimal64Type>(array, *scale),
        DataType::Decimal256(_, scale) => digits::<Decimal256Type>(array, *scale),
        DataType::Decimal128(_, scale) => digits::<Decimal128Type>(array, *scale),
        _ => digits::<UInt64Type>(array, 0),
    }
}

fn list(array: &ArrayRef, style: TemporalStyle) -> Result<WriteValue<'_>, ArrowError> {
    let Some(values) = items(array) else { return Ok(Box::new(|_, _| {})) };
    let is_nested = items(values).is_some();
    let cells = match array.data_type() {
        DataType::List(item) if !item.metadata().is_empty() => text_column(item, values, style)?,
        _ => text_cells(values, style)?,
    };
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
            if !is_nested {
                quote_item(start, out);
            }
        }
        out.push(b'}');
    }))
}

/// Quotes the list item after `start` if it could be misread.
fn quote_item(start: usize, out: &mut Vec<u8>) {
    if !is_array_item_quoted(&out[start..]) {
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
