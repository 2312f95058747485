//! Packs several key columns into one 64-bit word.
//!
//! Each column takes as many bits as its values need: those of its type, or fewer if the range of its values is known.
//! Null has a code of its own. Words are equal exactly if the keys are.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::lane::{self, Lane};
use super::state;
use crate::PrimitiveError;

/// Least and largest value of a column, as words (sign-extended integers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Least value.
    pub min: i128,
    /// Largest value.
    pub max: i128,
}

impl KeyRange {
    /// Word of the least value and distance of the largest; None if a word does not hold them.
    fn base_and_span(self, data_type: &DataType) -> Option<(u64, u128)> {
        let Self { min, max } = self;
        let fits = |value: i128| match data_type {
            DataType::UInt64 => u64::try_from(value).is_ok(),
            _ => i64::try_from(value).is_ok(),
        };
        let whole = lane::is_fixed(data_type) && !lane::is_float(data_type);
        let span = u128::try_from(max.checked_sub(min)?).ok()?;
        (whole && fits(min) && fits(max)).then_some((min as u64, span))
    }
}

/// How key columns are packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    fields: Vec<Field>,
    bits: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    data_type: DataType,
    nullable: bool,
    /// The word of the least value.
    base: u64,
    /// Width of a code. If nulls may occur, null is 0; the least value comes next.
    bits: u32,
    shift: u32,
    /// Strings: maximum length to pack; 0 for numbers.
    text: u32,
}

/// Range assumed for a nullable 64-bit column of unknown range: null needs a code too. Other values are outside.
const LIKELY: KeyRange = KeyRange { min: -(1 << 62), max: (1 << 62) - 1 };

/// A key outside of its expected range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outside;

impl Packing {
    /// Packs columns of these types (with whether they have nulls, and their range if known); returns None if they do
    /// not fit 64 bits.
    pub(super) fn new(columns: &[(DataType, bool, Option<KeyRange>)]) -> Option<Self> {
        let mut shift = 0;
        let mut fields = Vec::with_capacity(columns.len());
        for (data_type, nullable, range) in columns {
            let (base, span) = match range {
                Some(range) => range.base_and_span(data_type)?,
                None => declared(data_type)?,
            };
            let codes = span + 1 + u128::from(*nullable);
            let bits = u128::BITS - (codes - 1).leading_zeros();
            let (data_type, nullable) = (data_type.clone(), *nullable);
            fields.push(Field { data_type, nullable, base, bits, shift, text: 0 });
            shift += bits;
        }
        (shift <= u64::BITS).then_some(Self { fields, bits: shift })
    }

    /// Packs columns of rows that have not arrived, any of which may be null or outside of the expected range: strings
    /// are assumed to be short, and numbers of unknown range to be in a likely one. Returns None if even such columns
    /// do not fit 64 bits.
    pub(super) fn expecting(columns: &[(DataType, bool, Option<KeyRange>)]) -> Option<Self> {
        let is_text = |data_type: &DataType| *data_type == DataType::Utf8View;
        let numbers: Vec<_> = columns
            .iter()
            .filter(|(data_type, ..)| !is_text(data_type))
            .map(|(data_type, nullable, range)| {
                let whole = declared(data_type).is_none_or(|(_, span)| span == u64::MAX.into());
                let range = range.or((*nullable && whole).then_some(LIKELY));
                (data_type.clone(), *nullable, range)
            })
            .collect();
        let mut packing = Self::new(&numbers)?;
        let texts = columns.len() - numbers.len();
        if texts == 0 {
            return Some(packing);
        }
        // This many bytes of each string, and one for its length + 1; 0 is null.
        let bytes = ((u64::BITS - packing.bits) / texts as u32 / 8).min(8).checked_sub(1)?;
        for (at, (data_type, ..)) in columns.iter().enumerate().filter(|(_, it)| is_text(&it.0)) {
            let (bits, shift) = ((bytes + 1) * 8, packing.bits);
            let data_type = data_type.clone();
            let field = Field { data_type, nullable: true, base: 0, bits, shift, text: bytes };
            packing.fields.insert(at, field);
            packing.bits += bits;
        }
        (bytes > 0).then_some(packing)
    }

    /// Words are less than two to this power.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }

    /// Whether a word is a column's value less a base: then blocks are read in place.
    fn only(&self) -> Option<&Field> {
        match &self.fields[..] {
            [field] if !field.nullable && field.base == 0 && field.bits == u64::BITS => Some(field),
            _ => None,
        }
    }

    /// Words of a block of rows.
    pub(super) fn pack<'a>(
        &self,
        lanes: &'a [Lane],
        start: usize,
        len: usize,
        scratch: &'a mut PackScratch,
    ) -> Result<&'a [u64], Outside> {
        if self.only().is_some() {
            // An unexpected null has no code.
            return match lanes[0].valid(start, len, &mut scratch.valid) {
                None => Ok(lanes[0].words(start, len, &mut scratch.packed)),
                Some(_) => Err(Outside),
            };
        }
        let PackScratch { packed, column, valid } = scratch;
        packed.clear();
        packed.resize(len, 0);
        let mut outside = false;
        for (field, lane) in self.fields.iter().zip(lanes) {
            let valid = lane.valid(start, len, valid);
            if field.text > 0 {
                outside |= !lane.text(start, len, field.text, column);
                field.add(column, valid, packed);
                continue;
            }
            let words = lane.words(start, len, column);
            outside |= valid.is_some() && !field.nullable;
            outside |= !lane.fits_words(start, len);
            outside |= !field.add(words, valid, packed);
        }
        if outside { Err(Outside) } else { Ok(packed) }
    }

    /// The key columns of these words.
    pub(super) fn unpack(&self, words: &[u64]) -> Result<Vec<ArrayRef>, PrimitiveError> {
        self.fields.iter().map(|field| field.unpack(words)).collect()
    }
}

/// Scratch space for a block of words.
#[derive(Debug, Default)]
pub(super) struct PackScratch {
    packed: Vec<u64>,
    column: Vec<u64>,
    valid: Vec<u8>,
}

impl Field {
    /// Adds the codes of a block to its words; returns false if a value is outside.
    fn add(&self, words: &[u64], valid: Option<&[u8]>, packed: &mut [u64]) -> bool {
        let (base, shift) = (self.base, self.shift);
        // One more, for a string's length.
        let first = u64::from(self.nullable) << (8 * self.text);
        if self.bits == 0 {
            return words.iter().all(|word| *word == base);
        }
        let mut all = 0;
        match valid {
            None => {
                for (to, word) in packed.iter_mut().zip(words) {
                    let code = word.wrapping_sub(base).wrapping_add(first);
                    all |= code;
                    *to |= code << shift;
                }
            }
            Some(valid) => {
                for ((to, word), valid) in packed.iter_mut().zip(words).zip(valid) {
                    let code = word.wrapping_sub(base).wrapping_add(first);
                    let code = code & u64::from(*valid).wrapping_neg();
                    all |= code;
                    *to |= code << shift;
                }
            }
        }
        self.bits == u64::BITS || all >> self.bits == 0
    }

    fn unpack(&self, words: &[u64]) -> Result<ArrayRef, PrimitiveError> {
        let mask = if self.bits == u64::BITS { u64::MAX } else { (1 << self.bits) - 1 };
        let code = |word: &u64| if self.bits == 0 { 0 } else { word >> self.shift & mask };
        let nulls: Option<NullBuffer> =
            self.nullable.then(|| words.iter().map(|word| code(word) != 0).collect());
        if self.text > 0 {
            return Ok(self.unpack_text(words.iter().map(code)));
        }
        let value = |word: &u64| match (self.nullable, code(word)) {
            (true, 0) => 0,
            (nullable, code) => code.wrapping_sub(u64::from(nullable)).wrapping_add(self.base),
        };
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        state::array(
            &self.data_type,
            words.len(),
            values(&self.data_type, words.iter().map(value)),
            nulls,
        )
    }
}

impl Field {
    fn unpack_text(&self, codes: impl Iterator<Item = u64>) -> ArrayRef {
        let mut texts = StringViewBuilder::new();
        for code in codes {
            match (code >> (8 * self.text)).checked_sub(1) {
                None => texts.append_null(),
                Some(length) => {
                    let bytes = code.to_le_bytes();
                    texts.append_value(String::from_utf8_lossy(&bytes[..length as usize]));
                }
            }
        }
        Arc::new(texts.finish())
    }
}

/// Words as values of a type.
pub(super) fn values(data_type: &DataType, words: impl Iterator<Item = u64>) -> Buffer {
    use DataType as T;
    match data_type {
        T::Boolean => BooleanBuffer::from_iter(words.map(|word| word == 1)).into_inner(),
        T::Int8 | T::UInt8 => words.map(|word| word as u8).collect(),
        T::Int16 | T::UInt16 => words.map(|word| word as u16).collect(),
        T::Int32 | T::UInt32 | T::Date32 | T::Time32(_) | T::Decimal32(..) | T::Float32 => {
            words.map(|word| word as u32).collect()
        }
        T::Decimal128(..) => words.map(|word| i128::from(word as i64)).collect(),
        _ => words.collect(),
    }
}

/// Word of the least value of a type, and the distance of its largest; None for types that do not fit a word.
fn declared(data_type: &DataType) -> Option<(u64, u128)> {
    use DataType as T;
    let signed = |bits: u32| (((-1_i64) << (bits - 1)) as u64, (1_u128 << bits) - 1);
    let unsigned = |bits: u32| (0, (1_u128 << bits) - 1);
    Some(match data_type {
        T::Boolean => unsigned(1),
        T::Int8 => signed(8),
        T::Int16 => signed(16),
        T::Int32 | T::Date32 | T::Time32(_) | T::Decimal32(..) => signed(32),
        T::UInt8 => unsigned(8),
        T::UInt16 => unsigned(16),
        T::UInt32 | T::Float32 => unsigned(32),
        T::Decimal128(..) => return None,
        other if lane::is_fixed(other) => unsigned(64),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Date32Array, Int8Array, Int64Array, StringViewArray};

    fn round_trip(columns: Vec<ArrayRef>, ranges: &[Option<KeyRange>]) -> Vec<ArrayRef> {
        let described: Vec<_> = columns
            .iter()
            .zip(ranges)
            .map(|(array, range)| (array.data_type().clone(), array.null_count() > 0, *range))
            .collect();
        let packing = Packing::new(&described).unwrap();
        let lanes: Vec<Lane> = columns.iter().map(|array| Lane::new(array).unwrap()).collect();
        let mut scratch = PackScratch::default();
        let words = packing.pack(&lanes, 0, columns[0].len(), &mut scratch).unwrap().to_vec();
        packing.unpack(&words).unwrap()
    }

    #[test]
    fn keys_come_back_as_they_went_in() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int8Array::from(vec![Some(-128), None, Some(127), Some(0)])),
            Arc::new(Date32Array::from(vec![i32::MIN, -1, 0, i32::MAX])),
        ];
        assert_eq!(round_trip(columns.clone(), &[None, None]), columns);
        let wide: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(-5), None, Some(1_000_000)])),
            Arc::new(Int64Array::from(vec![7, 7, 7])),
        ];
        let ranges =
            [Some(KeyRange { min: -5, max: 1_000_000 }), Some(KeyRange { min: 7, max: 7 })];
        assert_eq!(round_trip(wide.clone(), &ranges), wide);
        let whole: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![i64::MIN, -1, i64::MAX]))];
        assert_eq!(round_trip(whole.clone(), &[None]), whole);
    }

    #[test]
    fn a_value_outside_of_its_range_is_an_error() {
        let range = Some(KeyRange { min: 10, max: 20 });
        let packing = Packing::new(&[(DataType::Int64, false, range)]).unwrap();
        let mut scratch = PackScratch::default();
        for (values, outside) in [([10, 20], false), ([9, 10], true), ([20, 26], true)] {
            let lanes = [Lane::new(&Int64Array::from(values.to_vec())).unwrap()];
            assert_eq!(packing.pack(&lanes, 0, 2, &mut scratch).is_err(), outside, "{values:?}");
        }
        let lanes = [Lane::new(&Int64Array::from(vec![Some(10), None])).unwrap()];
        assert_eq!(packing.pack(&lanes, 0, 2, &mut scratch), Err(Outside));
        let whole = Packing::new(&[(DataType::Int64, false, None)]).unwrap();
        assert_eq!(whole.pack(&lanes, 0, 2, &mut scratch), Err(Outside));
    }

    #[test]
    fn short_strings_round_trip_and_long_ones_are_errors() {
        let texts = |values: Vec<Option<&str>>| Arc::new(StringViewArray::from(values)) as ArrayRef;
        let columns = [
            texts(vec![Some("R"), None, Some(""), Some("\u{e9}")]),
            texts(vec![Some("abc"), Some("F"), None, Some("a\0")]),
        ];
        let described = vec![(DataType::Utf8View, true, None); 2];
        let packing = Packing::expecting(&described).unwrap();
        let lanes: Vec<Lane> = columns.iter().map(|array| Lane::key(array).unwrap()).collect();
        let mut scratch = PackScratch::default();
        let words = packing.pack(&lanes, 0, 4, &mut scratch).unwrap().to_vec();
        assert_eq!(packing.unpack(&words).unwrap(), columns);
        let long = [Lane::key(&texts(vec![Some("abcd")])).unwrap(), lanes[0].clone()];
        assert_eq!(packing.pack(&long, 0, 1, &mut scratch), Err(Outside));
    }

    #[test]
    fn columns_that_need_more_than_64_bits_are_not_packed() {
        assert!(Packing::new(&[(DataType::Int64, true, None)]).is_none());
        assert!(Packing::new(&vec![(DataType::Int32, false, None); 2]).is_some());
        assert!(Packing::new(&vec![(DataType::Int32, true, None); 2]).is_none());
        assert!(Packing::new(&[(DataType::Utf8, false, None)]).is_none());
    }
}
