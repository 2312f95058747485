//! Values in PostgreSQL's binary form.

use atoll_sql::RangeForm;
use atoll_sql::arrow::array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
};
use atoll_sql::arrow::array::{Array, ArrayRef, AsArray};
use atoll_sql::arrow::datatypes::{DataType, Field};
use atoll_sql::arrow::error::ArrowError;
use atoll_sql::temporal::{
    DAY, EPOCH_DAYS, StatementClock, TemporalStyle, ZonedTime, interval_parts, time_micros,
    timestamp_micros,
};

use super::numeric::write_numeric;
use super::parameter::hex;
use super::range::range_bytes;
use super::text::{TextCells, binary_value, decimal_digits, text_cells, text_column};
use super::types::{
    BPCHAR, CIDR, INET, JSON, JSONB, MACADDR, OID, PgType, RECORD, REGCLASS, REGPROC, REGTYPE,
    TIMETZ, UUID, XID, network_type,
};
use super::{WriteValue, items, items_of, plain};

/// The values of a column in binary form.
pub(crate) fn binary_column<'a>(
    field: &Field,
    array: &'a ArrayRef,
) -> Result<TextCells<'a>, ArrowError> {
    let is_oid = matches!(PgType::of_field(field).oid, OID | XID | REGPROC | REGCLASS | REGTYPE);
    let special = match PgType::of_field(field).oid {
        UUID => uuids(array)?,
        JSONB => versioned(array),
        INET | CIDR | MACADDR => addresses(array, PgType::of_field(field).oid)?,
        TIMETZ => zoned_times(array)?,
        of_ranges if let Some(of) = PgType::range_of(of_ranges) => ranges(array, of)?,
        BPCHAR => return text_column(field, array, TemporalStyle::default()),
        RECORD if matches!(array.data_type(), DataType::Struct(_)) => Some(record(array)?),
        _ => match PgType::marked_items(field) {
            Some(item) => Some(list(array, Some(&item))?),
            None => None,
        },
    };
    if let Some(write) = special {
        return Ok(TextCells { nulls: array.logical_nulls(), write });
    }
    match array.data_type() {
        DataType::Int64 if is_oid => {
            let write = by::<Int64Type, 4>(array, |value| (value as u32).to_be_bytes());
            Ok(TextCells { nulls: array.logical_nulls(), write })
        }
        _ => binary_cells(array),
    }
}

/// The texts of an array; None if it has another type.
fn texts<'a>(array: &'a ArrayRef) -> Option<Box<dyn Fn(usize) -> &'a str + 'a>> {
    Some(match array.data_type() {
        DataType::Utf8View => {
            let texts = array.as_string_view();
            Box::new(move |row| texts.value(row))
        }
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            Box::new(move |row| texts.value(row))
        }
        _ => return None,
    })
}

/// JSONB: its version number, then text.
fn versioned(array: &ArrayRef) -> Option<WriteValue<'_>> {
    let text = texts(array)?;
    Some(Box::new(move |row, out| {
        out.push(1);
        out.extend_from_slice(text(row).as_bytes());
    }))
}

/// Addresses, which are stored as text; None if the array has another type.
fn addresses(array: &ArrayRef, oid: u32) -> Result<Option<WriteValue<'_>>, ArrowError> {
    let (Some(text), Some(of)) = (texts(array), network_type(oid)) else { return Ok(None) };
    let nulls = array.logical_nulls();
    let mut values = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let bytes = if is_null { Some(Vec::new()) } else { of.to_binary(text(row)) };
        values.push(bytes.ok_or_else(|| foreign_text(of.name(), text(row)))?);
    }
    Ok(Some(Box::new(move |row, out| out.extend_from_slice(&values[row]))))
}

/// Ranges, which are stored as text; None if the array has another type.
fn ranges(array: &ArrayRef, of: RangeForm) -> Result<Option<WriteValue<'_>>, ArrowError> {
    let Some(text) = texts(array) else { return Ok(None) };
    let nulls = array.logical_nulls();
    let mut values = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let bytes = if is_null { Some(Vec::new()) } else { range_bytes(of, text(row)) };
        values.push(bytes.ok_or_else(|| foreign_text(of.name(), text(row)))?);
    }
    Ok(Some(Box::new(move |row, out| out.extend_from_slice(&values[row]))))
}

/// Times with a zone, which are stored as text; None if the array has another type.
fn zoned_times(array: &ArrayRef) -> Result<Option<WriteValue<'_>>, ArrowError> {
    let Some(text) = texts(array) else { return Ok(None) };
    let nulls = array.logical_nulls();
    let mut values = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        values.push(match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            true => [0; 12],
            false => ZonedTime::parse(text(row), StatementClock::default())
                .map_err(|_| foreign_text("time with time zone", text(row)))?
                .to_binary(),
        });
    }
    Ok(Some(Box::new(move |row, out| out.extend_from_slice(&values[row]))))
}

/// A UNION may put arbitrary text into a column of a type.
fn foreign_text(of: &str, text: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!(
        "invalid input syntax for type {of}: '{text}'; cast the column to text: CAST(… AS TEXT)"
    ))
}

/// UUIDs, which are stored as text; None if the array has another type.
fn uuids(array: &ArrayRef) -> Result<Option<WriteValue<'_>>, ArrowError> {
    let Some(text) = texts(array) else { return Ok(None) };
    let nulls = array.logical_nulls();
    let mut values = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        values.push(match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            true => [0; 16],
            false => uuid(text(row))?,
        });
    }
    Ok(Some(Box::new(move |row, out| out.extend_from_slice(&values[row]))))
}

/// The bytes of a UUID.
fn uuid(text: &str) -> Result<[u8; 16], ArrowError> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let bytes = hex(&digits).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.ok_or_else(|| foreign_text("uuid", text))
}

/// The values of an array in binary form.
fn binary_cells(array: &ArrayRef) -> Result<TextCells<'_>, ArrowError> {
    let write: WriteValue<'_> = match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(move |row, out| out.push(u8::from(values.value(row))))
        }
        DataType::Int8 => by::<Int8Type, 2>(array, |value| i16::from(value).to_be_bytes()),
        DataType::UInt8 => by::<UInt8Type, 2>(array, |value| i16::from(value).to_be_bytes()),
        DataType::Int16 => by::<Int16Type, 2>(array, i16::to_be_bytes),
        DataType::UInt16 => by::<UInt16Type, 4>(array, |value| i32::from(value).to_be_bytes()),
        DataType::Int32 => by::<Int32Type, 4>(array, i32::to_be_bytes),
        DataType::UInt32 => by::<UInt32Type, 8>(array, |value| i64::from(value).to_be_bytes()),
        DataType::Int64 => by::<Int64Type, 8>(array, i64::to_be_bytes),
        DataType::Float16 => by::<Float16Type, 4>(array, |value| value.to_f32().to_be_bytes()),
        DataType::Float32 => by::<Float32Type, 4>(array, f32::to_be_bytes),
        DataType::Float64 => by::<Float64Type, 8>(array, f64::to_be_bytes),
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let digits = decimal_digits(array);
            Box::new(move |row, out| {
                let (is_negative, digits, scale) = digits(row);
                write_numeric(is_negative, &digits, scale, out);
            })
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            Box::new(move |row, out| out.extend_from_slice(binary_value(array, row)))
        }
        DataType::Date32 => by::<Date32Type, 4>(array, |days| date(days.into())),
        DataType::Date64 => by::<Date64Type, 4>(array, |ms| date(ms.div_euclid(86_400_000))),
        DataType::Time32(_) | DataType::Time64(_) => {
            let micros = time_micros(array);
            Box::new(move |row, out| out.extend_from_slice(&micros(row).to_be_bytes()))
        }
        DataType::Timestamp(..) => {
            let micros = timestamp_micros(array);
            Box::new(move |row, out| {
                let micros = match micros(row) {
                    endless @ (i64::MIN | i64::MAX) => endless,
                    micros => micros.saturating_sub(EPOCH_DAYS * DAY),
                };
                out.extend_from_slice(&micros.to_be_bytes());
            })
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            let parts = interval_parts(array);
            Box::new(move |row, out| {
                let parts = parts(row);
                out.extend_from_slice(&parts.micros.to_be_bytes());
                out.extend_from_slice(&parts.days.to_be_bytes());
                out.extend_from_slice(&parts.months.to_be_bytes());
            })
        }
        other if is_list(other) => list(array, None)?,
        // Text and JSON are the same in both formats.
        _ => return text_cells(array, TemporalStyle::default()),
    };
    Ok(TextCells { nulls: array.logical_nulls(), write })
}

fn is_list(data_type: &DataType) -> bool {
    let is_list = matches!(
        data_type,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)
    );
    is_list && PgType::from_data_type(data_type).oid != JSON
}

fn by<T: ArrowPrimitiveType, const N: usize>(
    array: &ArrayRef,
    bytes: impl Fn(T::Native) -> [u8; N] + 'static,
) -> WriteValue<'_> {
    let values = array.as_primitive::<T>().values();
    Box::new(move |row, out| out.extend_from_slice(&bytes(values[row])))
}

fn date(days: i64) -> [u8; 4] {
    let (first, last) = (i64::from(i32::MIN), i64::from(i32::MAX));
    let days = if days == last { last } else { (days - EPOCH_DAYS).clamp(first, last) };
    (days as i32).to_be_bytes()
}

/// Writes dimensions, a null flag, the type, then length and first index, then the items. `marked` is the items' field,
/// for types that are marked by metadata.
fn list<'a>(array: &'a ArrayRef, marked: Option<&Field>) -> Result<WriteValue<'a>, ArrowError> {
    let (
        Some(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _),
    ) = (items(array), array.data_type())
    else {
        return text_cells(array, TemporalStyle::default()).map(|cells| cells.write);
    };
    if items(values).is_some() {
        return rectangles(array);
    }
    let item = marked.unwrap_or(item);
    let oid = PgType::of_field(item).oid;
    let is_encoded =
        matches!(item.data_type(), DataType::Dictionary(..) | DataType::RunEndEncoded(..));
    if is_encoded {
        return Ok(Box::new(move |row, out| {
            let of_row = values.slice(items_of(array, row).start, items_of(array, row).len());
            if let Ok(of_row) = plain(&of_row)
                && let Ok(cells) = binary_cells(&of_row)
            {
                write_list(&cells, 0..of_row.len(), oid, out);
            }
        }));
    }
    let cells = binary_column(item, values)?;
    Ok(Box::new(move |row, out| write_list(&cells, items_of(array, row), oid, out)))
}

/// Rows: the number of fields, then the type and value of each.
fn record(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let values = array.as_struct();
    let columns = values.fields().iter().zip(values.columns());
    let columns = columns.map(|(field, column)| match column.data_type() {
        // A row within a row.
        DataType::Struct(_) => {
            let cells = TextCells { nulls: column.logical_nulls(), write: record(column)? };
            Ok((RECORD, cells))
        }
        _ => Ok((PgType::of_field(field).oid, binary_column(field, column)?)),
    });
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    Ok(Box::new(move |row, out| {
        out.extend_from_slice(&(columns.len() as u32).to_be_bytes());
        for (oid, cells) in &columns {
            out.extend_from_slice(&oid.to_be_bytes());
            write_sized(cells, row, out);
        }
    }))
}

/// Arrays of several dimensions.
///
/// # Errors
/// If lists within a list have different lengths.
fn rectangles(array: &ArrayRef) -> Result<WriteValue<'_>, ArrowError> {
    let (mut levels, mut values) = (vec![array], array);
    let mut of = array.data_type();
    while let (Some(inner), Some(item)) = (items(values), item_of(of)) {
        (values, of) = (inner, item.data_type());
        levels.push(values);
    }
    let field = items_field(array.data_type());
    let cells = match field {
        Some(field) => binary_column(field, values)?,
        None => binary_cells(values)?,
    };
    let oid = field.map_or(JSON, |field| PgType::of_field(field).oid);
    levels.pop();
    for row in 0..array.len() {
        if array.is_valid(row) {
            shape(&levels, row)?;
        }
    }
    Ok(Box::new(move |row, out| {
        let Ok((lengths, items)) = shape(&levels, row) else { return };
        let has_nulls = items.clone().any(|item| cells.is_null(item));
        let dimensions = if items.is_empty() { 0 } else { lengths.len() as u32 };
        for field in [dimensions, u32::from(has_nulls), oid] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        if items.is_empty() {
            return;
        }
        for length in &lengths {
            out.extend_from_slice(&(*length as u32).to_be_bytes());
            out.extend_from_slice(&1_u32.to_be_bytes());
        }
        for item in items {
            write_sized(&cells, item, out);
        }
    }))
}

fn item_of(list: &DataType) -> Option<&Field> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item)
        }
        _ => None,
    }
}

/// The field of the innermost items.
fn items_field(list: &DataType) -> Option<&Field> {
    let item = item_of(list)?;
    items_field(item.data_type()).or(Some(item))
}

/// The lengths of an array by dimension, and the range of its innermost items.
fn shape(
    levels: &[&ArrayRef],
    row: usize,
) -> Result<(Vec<usize>, std::ops::Range<usize>), ArrowError> {
    let (mut lengths, mut range) = (Vec::with_capacity(levels.len()), row..row + 1);
    for (depth, level) in levels.iter().enumerate() {
        let first = items_of(level, range.start);
        let mut end = first.start;
        for list in range {
            let items = items_of(level, list);
            let is_null = depth > 0 && level.is_null(list);
            if is_null || items.len() != first.len() || items.start != end {
                let message =
                    "multidimensional arrays must have sub-arrays with matching dimensions";
                return Err(ArrowError::InvalidArgumentError(message.to_owned()));
            }
            end = items.end;
        }
        lengths.push(first.len());
        range = first.start..end;
        if range.is_empty() {
            break;
        }
    }
    Ok((lengths, range))
}

fn write_list(cells: &TextCells<'_>, items: std::ops::Range<usize>, oid: u32, out: &mut Vec<u8>) {
    let has_nulls = items.clone().any(|item| cells.is_null(item));
    let dimensions = u32::from(!items.is_empty());
    for field in [dimensions, u32::from(has_nulls), oid] {
        out.extend_from_slice(&field.to_be_bytes());
    }
    if items.is_empty() {
        return;
    }
    out.extend_from_slice(&(items.len() as u32).to_be_bytes());
    out.extend_from_slice(&1_u32.to_be_bytes());
    for item in items {
        write_sized(cells, item, out);
    }
}

/// Writes a value after its length; -1 is null.
pub(crate) fn write_sized(cells: &TextCells<'_>, row: usize, out: &mut Vec<u8>) {
    if cells.is_null(row) {
        return out.extend_from_slice(&(-1_i32).to_be_bytes());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    cells.write(row, out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn invalid_uuids_are_errors() {
        let bytes = uuid("00000000-0000-0000-0000-0000000000ff").expect("it is one");
        assert_eq!((bytes[0], bytes[15]), (0, 255));
        assert!(uuid("x").is_err() && uuid("").is_err());
    }
}
