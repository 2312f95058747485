//! Maps values to words of the same order.

use std::ops::Range;

use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;

use crate::PrimitiveError;

/// The column to sort by, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortBy {
    /// Position of the column: an integer, float, date, time, or decimal of up to 64 bits or precision 18.
    pub column: usize,
    /// Sorts from the greatest to the least.
    pub descending: bool,
    /// Puts nulls before all values instead of after them.
    pub nulls_first: bool,
    /// Whether rows of equal values keep their order.
    pub stable: bool,
}

impl SortBy {
    /// From the least value to the greatest, then nulls; rows of equal values in any order.
    pub fn column(column: usize) -> Self {
        Self { column, descending: false, nulls_first: false, stable: false }
    }
}

/// An integer's word.
#[inline(always)]
pub fn integer_word(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

/// A float's word, in IEEE 754's total order: −NaN, −∞, …, −0.0, 0.0, …, ∞, NaN.
#[inline(always)]
pub fn float_word(value: f64) -> u64 {
    let bits = value.to_bits();
    bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)
}

/// A column that is read as words.
#[derive(Clone, Debug)]
pub(super) enum OrderedColumn {
    Signed8(ScalarBuffer<i8>),
    Signed16(ScalarBuffer<i16>),
    Signed32(ScalarBuffer<i32>),
    Signed64(ScalarBuffer<i64>),
    Signed128(ScalarBuffer<i128>),
    Unsigned8(ScalarBuffer<u8>),
    Unsigned16(ScalarBuffer<u16>),
    Unsigned32(ScalarBuffer<u32>),
    Unsigned64(ScalarBuffer<u64>),
    Float16(ScalarBuffer<<Float16Type as ArrowPrimitiveType>::Native>),
    Float32(ScalarBuffer<f32>),
    Float64(ScalarBuffer<f64>),
}

impl OrderedColumn {
    pub(super) fn try_from_array(column: &ArrayRef) -> Result<Self, PrimitiveError> {
        let width = column.data_type().primitive_width();
        Ok(match column.data_type() {
            DataType::Float16 => Self::Float16(values::<Float16Type>(column)),
            DataType::Float32 => Self::Float32(values::<Float32Type>(column)),
            DataType::Float64 => Self::Float64(values::<Float64Type>(column)),
            DataType::UInt8 => Self::Unsigned8(values::<UInt8Type>(column)),
            DataType::UInt16 => Self::Unsigned16(values::<UInt16Type>(column)),
            DataType::UInt32 => Self::Unsigned32(values::<UInt32Type>(column)),
            DataType::UInt64 => Self::Unsigned64(values::<UInt64Type>(column)),
            DataType::Decimal128(precision, _) if *precision <= 18 => {
                Self::Signed128(values::<arrow_array::types::Decimal128Type>(column))
            }
            DataType::Interval(_) | DataType::Decimal128(..) => return Err(refused(column)),
            _ if width == Some(1) => Self::Signed8(values::<Int8Type>(column)),
            _ if width == Some(2) => Self::Signed16(values::<Int16Type>(column)),
            _ if width == Some(4) => Self::Signed32(values::<Int32Type>(column)),
            _ if width == Some(8) => Self::Signed64(values::<Int64Type>(column)),
            _ => return Err(refused(column)),
        })
    }

    /// Writes the words of some rows.
    pub(super) fn read(&self, rows: Range<usize>, words: &mut Vec<u64>) {
        words.clear();
        let float = |value: f32| float_word(f64::from(value));
        match self {
            Self::Signed8(column) => {
                words.extend(column[rows].iter().map(|value| integer_word(i64::from(*value))));
            }
            Self::Signed16(column) => {
                words.extend(column[rows].iter().map(|value| integer_word(i64::from(*value))));
            }
            Self::Signed32(column) => {
                words.extend(column[rows].iter().map(|value| integer_word(i64::from(*value))));
            }
            Self::Signed64(column) => {
                words.extend(column[rows].iter().map(|value| integer_word(*value)));
            }
            // Precision 18 fits 64 bits; larger numbers are not values of that type.
            Self::Signed128(column) => {
                words.extend(column[rows].iter().map(|value| integer_word(*value as i64)));
            }
            Self::Unsigned8(column) => {
                words.extend(column[rows].iter().map(|value| u64::from(*value)))
            }
            Self::Unsigned16(column) => {
                words.extend(column[rows].iter().map(|value| u64::from(*value)));
            }
            Self::Unsigned32(column) => {
                words.extend(column[rows].iter().map(|value| u64::from(*value)));
            }
            Self::Unsigned64(column) => words.extend_from_slice(&column[rows]),
            Self::Float16(column) => {
                words.extend(column[rows].iter().map(|value| float(value.to_f32())));
            }
            Self::Float32(column) => words.extend(column[rows].iter().map(|value| float(*value))),
            Self::Float64(column) => {
                words.extend(column[rows].iter().map(|value| float_word(*value)))
            }
        }
    }
}

fn values<T: ArrowPrimitiveType>(column: &ArrayRef) -> ScalarBuffer<T::Native> {
    let data = column.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn refused(column: &ArrayRef) -> PrimitiveError {
    PrimitiveError::Type {
        what: "sort",
        data_type: column.data_type().clone(),
        supported: "integers, floats, dates, times, decimals of precision 18 or less",
    }
}
