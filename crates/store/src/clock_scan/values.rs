//! The values of a column of a block as tests read them, without decoding.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};

use crate::table::StoredColumn;

/// A column of a block.
#[derive(Debug)]
pub(super) struct BlockColumn<'a> {
    pub(super) values: BlockValues<'a>,
    pub(super) nulls: Option<&'a NullBuffer>,
}

/// Its values; those of null rows are meaningless.
#[derive(Debug)]
pub(super) enum BlockValues<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I128(&'a [i128]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    Bool(&'a BooleanBuffer),
    Codes8(&'a [u8], &'a StringViewArray),
    Codes16(&'a [u16], &'a StringViewArray),
    Text(&'a StringViewArray),
    /// Of a type that supports only tests for NULL.
    Other,
}

/// Calls a closure-like macro argument with the slice of numbers and the function that turns one of them into a key.
macro_rules! with_numbers {
    ($values:expr, |$slice:ident, $key:ident| $body:expr, $otherwise:expr) => {{
        use $crate::clock_scan::values::BlockValues as V;
        match $values {
            V::I8($slice) => {
                let $key = |value: i8| i64::from(value);
                $body
            }
            V::I16($slice) => {
                let $key = |value: i16| i64::from(value);
                $body
            }
            V::I32($slice) => {
                let $key = |value: i32| i64::from(value);
                $body
            }
            V::I64($slice) => {
                let $key = |value: i64| value;
                $body
            }
            V::U8($slice) => {
                let $key = |value: u8| i64::from(value);
                $body
            }
            V::U16($slice) => {
                let $key = |value: u16| i64::from(value);
                $body
            }
            V::U32($slice) => {
                let $key = |value: u32| i64::from(value);
                $body
            }
            V::U64($slice) => {
                let $key = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
                $body
            }
            V::I128($slice) => {
                let $key = $crate::clock_scan::values::saturated;
                $body
            }
            V::F32($slice) => {
                let $key =
                    |value: f32| $crate::clock_scan::query::stored_float_key(f64::from(value));
                $body
            }
            V::F64($slice) => {
                let $key = $crate::clock_scan::query::stored_float_key;
                $body
            }
            _ => $otherwise,
        }
    }};
}
pub(super) use with_numbers;

/// A wide number as a key: tests have no bound at the ends of the keys, so the ends represent all numbers beyond them.
pub(super) fn saturated(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value > 0 { i64::MAX } else { i64::MIN })
}

impl<'a> BlockColumn<'a> {
    pub(super) fn new(column: &'a StoredColumn) -> Self {
        let array = column.rows();
        let values = match column {
            StoredColumn::Plain(array) | StoredColumn::Narrow(array) => plain(array),
            StoredColumn::Dictionary { codes, values } => match values.as_string_view_opt() {
                Some(values) => coded(codes, values),
                None => BlockValues::Other,
            },
        };
        Self { values, nulls: array.nulls().filter(|nulls| nulls.null_count() > 0) }
    }

    /// Bytes of a stored value.
    pub(super) fn value_bytes(&self) -> usize {
        match &self.values {
            BlockValues::I8(_) | BlockValues::U8(_) | BlockValues::Codes8(..) => 1,
            BlockValues::Bool(_) => 1,
            BlockValues::I16(_) | BlockValues::U16(_) | BlockValues::Codes16(..) => 2,
            BlockValues::I32(_) | BlockValues::U32(_) | BlockValues::F32(_) => 4,
            BlockValues::I64(_) | BlockValues::U64(_) | BlockValues::F64(_) => 8,
            BlockValues::I128(_) | BlockValues::Text(_) | BlockValues::Other => 16,
        }
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// The key of a row. Returns None for NULL, and if values have no keys.
    pub(super) fn key(&self, row: usize) -> Option<i64> {
        if self.is_null(row) {
            return None;
        }
        if let BlockValues::Bool(bits) = &self.values {
            return Some(i64::from(bits.value(row)));
        }
        with_numbers!(&self.values, |values, key| Some(key(values[row])), None)
    }

    /// The string of a row. Returns None for NULL, and if values are not strings.
    pub(super) fn text(&self, row: usize) -> Option<&'a str> {
        if self.is_null(row) {
            return None;
        }
        match &self.values {
            BlockValues::Codes8(codes, values) => Some(values.value(codes[row].into())),
            BlockValues::Codes16(codes, values) => Some(values.value(codes[row].into())),
            BlockValues::Text(values) => Some(values.value(row)),
            _ => None,
        }
    }
}

fn coded<'a>(codes: &'a ArrayRef, values: &'a StringViewArray) -> BlockValues<'a> {
    match codes.data_type() {
        DataType::UInt8 => BlockValues::Codes8(codes.as_primitive::<UInt8Type>().values(), values),
        _ => BlockValues::Codes16(codes.as_primitive::<UInt16Type>().values(), values),
    }
}

fn plain(array: &ArrayRef) -> BlockValues<'_> {
    macro_rules! numbers {
        ($variant:ident, $arrow:ty) => {
            BlockValues::$variant(array.as_primitive::<$arrow>().values())
        };
    }
    match array.data_type() {
        DataType::Int8 => numbers!(I8, Int8Type),
        DataType::Int16 => numbers!(I16, Int16Type),
        DataType::Int32 => numbers!(I32, Int32Type),
        DataType::Int64 => numbers!(I64, Int64Type),
        DataType::UInt8 => numbers!(U8, UInt8Type),
        DataType::UInt16 => numbers!(U16, UInt16Type),
        DataType::UInt32 => numbers!(U32, UInt32Type),
        DataType::UInt64 => numbers!(U64, UInt64Type),
        DataType::Float32 => numbers!(F32, Float32Type),
        DataType::Float64 => numbers!(F64, Float64Type),
        DataType::Date32 => numbers!(I32, Date32Type),
        DataType::Date64 => numbers!(I64, Date64Type),
        DataType::Timestamp(TimeUnit::Second, _) => numbers!(I64, TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => numbers!(I64, TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(I64, TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers!(I64, TimestampNanosecondType),
        DataType::Decimal128(_, _) => numbers!(I128, Decimal128Type),
        DataType::Boolean => BlockValues::Bool(array.as_boolean().values()),
        DataType::Utf8View => BlockValues::Text(array.as_string_view()),
        _ => BlockValues::Other,
    }
}
