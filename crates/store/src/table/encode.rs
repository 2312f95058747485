//! From logical arrays to the narrowest column that holds them.

use std::sync::Arc;

use arrow_arith::aggregate::{max, min};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, StringViewArray, UInt8Array, UInt16Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::concat;
use hashbrown::HashMap;

use super::column::StoredColumn;
use super::compact::compact_array;
use super::exact_cast::exact_cast;
use super::float::canonical;

/// Most distinct strings for which a chunk keeps a dictionary: codes stay within 16 bits, and the
/// dictionary within the caches.
const DICTIONARY_MAX: usize = 4096;

/// A chunk keeps a dictionary only if each value occurs this many times on average.
const DICTIONARY_ROWS_PER_VALUE: usize = 8;

/// The types in which a table stores the result of a query: strings of any kind as views,
/// dictionaries unpacked (the values determine the encoding, not the type).
pub fn stored_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let stored = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::Dictionary(_, values) => match values.as_ref() {
                DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
                other => other.clone(),
            },
            other => other.clone(),
        };
        Field::new(field.name(), stored, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The schema with the declared columns NOT NULL and all others nullable, even if the first rows have
/// no NULL: later rows may have some.
pub fn declared_schema(schema: &Schema, not_null: &[bool]) -> SchemaRef {
    let fields = schema.fields().iter().enumerate().map(|(column, field)| {
        let is_not_null = not_null.get(column).copied().unwrap_or(false);
        Field::new(field.name(), nullable_parts(field.data_type()), !is_not_null)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn nullable_parts(data_type: &DataType) -> DataType {
    let part = |field: &FieldRef| {
        let data_type = nullable_parts(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true))
    };
    match data_type {
        DataType::List(item) => DataType::List(part(item)),
        DataType::LargeList(item) => DataType::LargeList(part(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(part(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(part).collect()),
        other => other.clone(),
    }
}

/// Encodes one column of a chunk, given as its batches, and cuts it into blocks. Floats are converted
/// to their canonical form, which scans rely on.
pub(super) fn encode(
    parts: &[ArrayRef],
    stored: &DataType,
    block_rows: usize,
) -> Result<Vec<StoredColumn>, ArrowError> {
    let parts = parts.iter().map(|part| exact_cast(part, stored)).collect::<Result<Vec<_>, _>>()?;
    let whole = concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>())?;
    let whole = canonical(&whole)?;
    if let Some(narrow) = narrow(&whole) {
        return Ok(blocks(&narrow, block_rows).map(StoredColumn::Narrow).collect());
    }
    if let Some((codes, values)) = dictionary(&whole) {
        let column =
            |codes: ArrayRef| StoredColumn::Dictionary { codes, values: Arc::clone(&values) };
        return Ok(blocks(&codes, block_rows).map(column).collect());
    }
    // Reading one block keeps no other block's text alive.
    Ok(blocks(&whole, block_rows).map(|block| StoredColumn::Plain(compact_array(&block))).collect())
}

fn blocks(whole: &ArrayRef, block_rows: usize) -> impl Iterator<Item = ArrayRef> {
    let rows = whole.len();
    (0..rows).step_by(block_rows).map(move |start| whole.slice(start, block_rows.min(rows - start)))
}

/// Whole numbers in fewer bits, if the values allow it.
fn narrow(array: &ArrayRef) -> Option<ArrayRef> {
    macro_rules! from {
        ($wide:ty) => {
            narrow_from::<$wide>(array.as_primitive(), |value| i64::try_from(value).ok())
        };
    }
    match array.data_type() {
        DataType::Int16 => from!(Int16Type),
        DataType::Int32 => from!(Int32Type),
        DataType::Int64 => from!(Int64Type),
        DataType::UInt16 => from!(UInt16Type),
        DataType::UInt32 => from!(UInt32Type),
        DataType::UInt64 => from!(UInt64Type),
        DataType::Date32 => from!(Date32Type),
        DataType::Date64 => from!(Date64Type),
        DataType::Timestamp(TimeUnit::Second, _) => from!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => from!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => from!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => from!(TimestampNanosecondType),
        DataType::Decimal128(_, _) => from!(Decimal128Type),
        _ => None,
    }
}

fn narrow_from<W: ArrowPrimitiveType>(
    wide: &PrimitiveArray<W>,
    exact: impl Fn(W::Native) -> Option<i64>,
) -> Option<ArrayRef>
where
    W::Native: PartialOrd,
{
    let (low, high) = match (min(wide), max(wide)) {
        (Some(low), Some(high)) => (exact(low)?, exact(high)?),
        _ => (0, 0),
    };
    let width = size_of::<W::Native>();
    let fits = |low_max: i64, high_max: i64| low >= low_max && high <= high_max;
    // The slot of a null may hold anything; it is set to zero because its value is never read.
    macro_rules! to {
        ($narrow:ty, $native:ty) => {
            Arc::new(PrimitiveArray::<$narrow>::new(
                wide.values().iter().map(|v| exact(*v).unwrap_or(0) as $native).collect(),
                wide.nulls().cloned(),
            ))
        };
    }
    if width > 1 && fits(i8::MIN.into(), i8::MAX.into()) {
        Some(to!(Int8Type, i8))
    } else if width > 2 && fits(i16::MIN.into(), i16::MAX.into()) {
        Some(to!(Int16Type, i16))
    } else if width > 4 && fits(i32::MIN.into(), i32::MAX.into()) {
        Some(to!(Int32Type, i32))
    } else if width > 8 {
        Some(to!(Int64Type, i64))
    } else {
        None
    }
}

/// Codes and values of repeating strings. Returns None if they do not repeat enough.
fn dictionary(array: &ArrayRef) -> Option<(ArrayRef, ArrayRef)> {
    let strings = array.as_string_view_opt()?;
    let most = DICTIONARY_MAX.min(strings.len() / DICTIONARY_ROWS_PER_VALUE);
    let mut seen: HashMap<&str, u16> = HashMap::new();
    let mut codes: Vec<Option<u16>> = Vec::with_capacity(strings.len());
    for value in strings {
        let Some(value) = value else {
            codes.push(None);
            continue;
        };
        let next = seen.len();
        let code = *seen.entry(value).or_insert(next as u16);
        if seen.len() > most {
            return None;
        }
        codes.push(Some(code));
    }
    let mut values = vec![""; seen.len()];
    for (value, code) in &seen {
        values[usize::from(*code)] = value;
    }
    let few = values.len() <= usize::from(u8::MAX) + 1;
    let codes: ArrayRef = if few {
        Arc::new(codes.iter().map(|code| code.map(|c| c as u8)).collect::<UInt8Array>())
    } else {
        Arc::new(codes.into_iter().collect::<UInt16Array>())
    };
    Some((codes, Arc::new(StringViewArray::from_iter_values(values))))
}
