//! Values of SQL as words in their order.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};

use super::OrderWords;

/// NULL is above all values.
const NULL: u64 = u64::MAX;

/// The sign bit of a number.
const SIGN: u64 = 1 << 63;

/// The columns of an index whose values are in its words.
pub(in crate::table::version) fn indexed_columns(columns: &[usize]) -> &[usize] {
    &columns[..columns.len().min(2)]
}

/// Whether an ordered index may have columns of this type: its values have words.
pub fn is_indexable(data_type: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal128, Float32, Float64, Int8, Int16,
        Int32, Int64, LargeBinary, LargeUtf8, Time32, Time64, Timestamp, UInt8, UInt16, UInt32,
        UInt64, Utf8, Utf8View,
    };
    matches!(
        data_type,
        Binary
            | BinaryView
            | Boolean
            | Date32
            | Date64
            | Decimal128(..)
            | Float32
            | Float64
            | Int8
            | Int16
            | Int32
            | Int64
            | LargeBinary
            | LargeUtf8
            | Time32(_)
            | Time64(_)
            | Timestamp(..)
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Utf8
            | Utf8View
    )
}

/// The words of rows of one or two columns of [indexable](is_indexable) types: rows that SQL sorts before others do not
/// have larger words. One column of text or decimals takes both words, others one.
///
/// # Errors
/// A type that is not ordered.
pub fn order_words(columns: &[ArrayRef]) -> Result<Vec<OrderWords>, ArrowError> {
    match columns {
        [only] => pairs(only),
        [first, second, ..] => {
            let (first, second) = (pairs(first)?, pairs(second)?);
            Ok(first.iter().zip(&second).map(|(first, second)| [first[0], second[0]]).collect())
        }
        [] => Ok(Vec::new()),
    }
}

/// Two words of each value; the first alone is in the order of the values, too.
fn pairs(array: &ArrayRef) -> Result<Vec<OrderWords>, ArrowError> {
    macro_rules! numbers {
        ($type:ty) => {
            numbers::<$type>(array, |value| i64::from(value) as u64 ^ SIGN)
        };
    }
    Ok(match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            rows(array, |row| [values.value(row).into(), 0])
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers::<UInt64Type>(array, |value| value),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Date64 => numbers!(Date64Type),
        DataType::Time32(TimeUnit::Second) => numbers!(Time32SecondType),
        DataType::Time32(_) => numbers!(Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => numbers!(Time64MicrosecondType),
        DataType::Time64(_) => numbers!(Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => numbers!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => numbers!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers!(TimestampNanosecondType),
        DataType::Float32 => numbers::<Float32Type>(array, |value| float_word(value.into())),
        DataType::Float64 => numbers::<Float64Type>(array, float_word),
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            rows(array, |row| decimal_words(values.value(row)))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(array, &DataType::Utf8View)?;
            let texts = texts.as_string_view();
            rows(array, |row| text_words(texts.value(row).as_bytes()))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = cast(array, &DataType::BinaryView)?;
            let bytes = bytes.as_binary_view();
            rows(array, |row| text_words(bytes.value(row)))
        }
        other => {
            let problem = format!("an index cannot have a column of type {other}");
            return Err(ArrowError::NotYetImplemented(problem));
        }
    })
}

fn rows(array: &ArrayRef, words: impl Fn(usize) -> OrderWords) -> Vec<OrderWords> {
    let words = |row| match array.is_null(row) {
        true => [NULL; 2],
        false => {
            let words = words(row);
            words.min([NULL - 1, u64::MAX])
        }
    };
    (0..array.len()).map(words).collect()
}

fn numbers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    word: impl Fn(T::Native) -> u64,
) -> Vec<OrderWords> {
    let values = array.as_primitive::<T>().values();
    rows(array, |row| [word(values[row]), 0])
}

/// NaN is above all numbers, and −0.0 equals 0.0.
fn float_word(value: f64) -> u64 {
    if value.is_nan() {
        return NULL;
    }
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The value within 64 bits, then its lower half.
fn decimal_words(value: i128) -> OrderWords {
    let near = value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let first = near as u64 ^ SIGN;
    let is_exact = first > 0 && first < NULL - 1;
    let above = (value - i128::from(i64::MAX)).clamp(0, u64::MAX.into()) as u64;
    let below = (value - i128::from(i64::MIN)).clamp(-i128::from(u64::MAX), 0);
    let second = if value > 0 { above } else { (below + i128::from(u64::MAX)) as u64 };
    [first, if is_exact { 0 } else { second }]
}

/// The first sixteen bytes.
fn text_words(bytes: &[u8]) -> OrderWords {
    let mut first = [0; 16];
    let count = bytes.len().min(16);
    first[..count].copy_from_slice(&bytes[..count]);
    let both = u128::from_be_bytes(first);
    [(both >> u64::BITS) as u64, both as u64]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray,
        UInt64Array,
    };

    use super::*;

    fn assert_in_order(array: ArrayRef) {
        let words = order_words(&[Arc::clone(&array)]).unwrap();
        assert!(words.is_sorted(), "{array:?}: {words:x?}");
        assert_eq!(words.last(), Some(&[NULL; 2]), "NULL is last and above all values");
        assert!(words.iter().rev().skip(1).all(|words| words[0] < NULL), "{array:?}: {words:x?}");
        let two = order_words(&[Arc::clone(&array), array]).unwrap();
        assert!(two.is_sorted());
    }

    #[test]
    fn words_are_in_the_order_of_values() {
        let ints = [i64::MIN, -1, 0, 1, i64::MAX];
        assert_in_order(Arc::new(ints.map(Some).into_iter().chain([None]).collect::<Int64Array>()));
        let whole = [0, 1, u64::MAX - 1, u64::MAX];
        assert_in_order(Arc::new(
            whole.map(Some).into_iter().chain([None]).collect::<UInt64Array>(),
        ));
        let floats =
            [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 2.0, f64::INFINITY, f64::NAN];
        assert_in_order(Arc::new(
            floats.map(Some).into_iter().chain([None]).collect::<Float64Array>(),
        ));
        let texts =
            ["", "\0", "a", "a\0", "aaaaaaaabbbbbbbbc", "aaaaaaaabbbbbbbbd", "ä", "\u{10ffff}"];
        assert_in_order(Arc::new(
            texts.map(Some).into_iter().chain([None]).collect::<StringArray>(),
        ));
        let bytes: [&[u8]; 3] = [&[], &[0xff; 8], &[0xff; 20]];
        assert_in_order(Arc::new(
            bytes.map(Some).into_iter().chain([None]).collect::<BinaryArray>(),
        ));
        assert_in_order(Arc::new(BooleanArray::from(vec![Some(false), Some(true), None])));
        let near = [i128::from(i64::MIN), -1, 0, 1, i128::from(i64::MAX)];
        let mut decimals: Vec<i128> = near.iter().flat_map(|it| [it - 1, *it, it + 1]).collect();
        decimals.extend([i128::MIN / 4, i128::MAX / 4, 3 << 64, -3 << 64]);
        decimals.sort_unstable();
        let decimals = decimals.into_iter().map(Some).chain([None]);
        assert_in_order(Arc::new(decimals.collect::<Decimal128Array>()));
    }

    #[test]
    fn zeros_have_the_same_words() {
        let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0]));
        let words = order_words(&[zeros]).unwrap();
        assert_eq!(words[0], words[1]);
    }
}
