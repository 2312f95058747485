//! Key columns that fit 64 bits.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::DataType;

/// Key columns of one part whose concatenated values fit a word. Words are equal exactly if keys are; the words of one
/// integer column have its order, as signed numbers.
#[derive(Clone, Debug)]
pub(in crate::join) enum WordKeys {
    /// One 64-bit column, unchanged.
    Plain(ScalarBuffer<u64>),
    /// Concatenated columns, the first in the lowest bits.
    Packed(Vec<KeyField>),
}

/// A column, by width.
#[derive(Clone, Debug)]
pub(in crate::join) enum KeyField {
    Signed8(ScalarBuffer<i8>),
    Signed16(ScalarBuffer<i16>),
    Signed32(ScalarBuffer<i32>),
    Unsigned8(ScalarBuffer<u8>),
    Unsigned16(ScalarBuffer<u16>),
    Unsigned32(ScalarBuffer<u32>),
    Word(ScalarBuffer<u64>),
    Float32(ScalarBuffer<f32>),
    Float64(ScalarBuffer<f64>),
}

impl WordKeys {
    /// Whether keys of these types fit a word.
    pub(in crate::join) fn fit(types: &[DataType]) -> bool {
        let widths = types.iter().map(|data_type| match data_type {
            DataType::Float16 => None,
            other => other.primitive_width().filter(|bytes| *bytes <= 8),
        });
        let bytes: Option<usize> = widths.sum();
        !types.is_empty() && bytes.is_some_and(|bytes| bytes <= 8)
    }

    /// The keys of a part, whose types must [fit](Self::fit).
    pub(in crate::join) fn from_columns(columns: &[ArrayRef]) -> Self {
        let mut fields: Vec<KeyField> = columns.iter().map(KeyField::from_column).collect();
        match (fields.len(), fields.pop()) {
            (1, Some(KeyField::Word(words))) => Self::Plain(words),
            (_, last) => Self::Packed(fields.into_iter().chain(last).collect()),
        }
    }

    /// Bytes of a row's key.
    pub(in crate::join) fn width(&self) -> usize {
        match self {
            Self::Plain(_) => 8,
            Self::Packed(fields) => fields.iter().map(KeyField::width).sum(),
        }
    }

    /// Writes the words of rows from `start` on.
    pub(in crate::join) fn read(&self, start: usize, words: &mut [u64]) {
        match self {
            Self::Plain(column) => words.copy_from_slice(&column[start..start + words.len()]),
            Self::Packed(fields) => {
                words.fill(0);
                let mut shift = 0;
                let alone = fields.len() == 1;
                for field in fields {
                    field.add(start, shift, alone, words);
                    shift += 8 * field.width() as u32;
                }
            }
        }
    }
}

impl KeyField {
    fn from_column(column: &ArrayRef) -> Self {
        let data = column.to_data();
        let (buffer, start, len) = (data.buffers()[0].clone(), data.offset(), data.len());
        fn cut<T: arrow_buffer::ArrowNativeType>(
            buffer: Buffer,
            start: usize,
            len: usize,
        ) -> ScalarBuffer<T> {
            ScalarBuffer::new(buffer, start, len)
        }
        let data_type = column.data_type();
        let signed = !data_type.is_unsigned_integer();
        match (data_type, data_type.primitive_width(), signed) {
            (DataType::Float32, ..) => Self::Float32(cut(buffer, start, len)),
            (DataType::Float64, ..) => Self::Float64(cut(buffer, start, len)),
            (_, Some(1), true) => Self::Signed8(cut(buffer, start, len)),
            (_, Some(2), true) => Self::Signed16(cut(buffer, start, len)),
            (_, Some(4), true) => Self::Signed32(cut(buffer, start, len)),
            (_, Some(1), false) => Self::Unsigned8(cut(buffer, start, len)),
            (_, Some(2), false) => Self::Unsigned16(cut(buffer, start, len)),
            (_, Some(4), false) => Self::Unsigned32(cut(buffer, start, len)),
            _ => Self::Word(cut(buffer, start, len)),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Signed8(_) | Self::Unsigned8(_) => 1,
            Self::Signed16(_) | Self::Unsigned16(_) => 2,
            Self::Signed32(_) | Self::Unsigned32(_) | Self::Float32(_) => 4,
            Self::Word(_) | Self::Float64(_) => 8,
        }
    }

    /// Adds the column's bits to words, shifted by `shift`; a single column keeps its sign.
    fn add(&self, start: usize, shift: u32, alone: bool, words: &mut [u64]) {
        match self {
            Self::Signed8(column) if alone => add(column, start, 0, words, |value| value as u64),
            Self::Signed16(column) if alone => add(column, start, 0, words, |value| value as u64),
            Self::Signed32(column) if alone => add(column, start, 0, words, |value| value as u64),
            Self::Signed8(column) => add(column, start, shift, words, |value| value as u8 as u64),
            Self::Signed16(column) => add(column, start, shift, words, |value| value as u16 as u64),
            Self::Signed32(column) => add(column, start, shift, words, |value| value as u32 as u64),
            Self::Unsigned8(column) => add(column, start, shift, words, u64::from),
            Self::Unsigned16(column) => add(column, start, shift, words, u64::from),
            Self::Unsigned32(column) => add(column, start, shift, words, u64::from),
            Self::Word(column) => add(column, start, shift, words, |value| value),
            Self::Float32(column) => {
                add(column, start, shift, words, |value| u64::from(one_zero_32(value).to_bits()));
            }
            Self::Float64(column) => {
                add(column, start, shift, words, |value| one_zero(value).to_bits())
            }
        }
    }
}

#[inline(always)]
fn add<T: Copy>(
    column: &[T],
    start: usize,
    shift: u32,
    words: &mut [u64],
    bits: impl Fn(T) -> u64,
) {
    for (word, value) in words.iter_mut().zip(&column[start..]) {
        *word |= bits(*value) << shift;
    }
}

/// Canonicalizes zeros and NaNs, so that they are equal as keys.
pub(super) fn one_zero(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

fn one_zero_32(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}
