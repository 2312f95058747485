//! Encodes keys of any type as bytes; equal keys have equal bytes.
//!
//! A key is a fixed-length part followed by the bytes of its strings. In the fixed part each column has a null bit,
//! then its number or the length of its string; a null has zeros. Types that are neither numbers nor strings are
//! encoded as strings in Arrow's row format. Only the keys of groups are stored this way: for rows, only the fixed part
//! is built and the strings stay in the columns.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{Array, cast::AsArray};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, LargeBinaryArray, LargeStringArray, StringArray,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};

use super::block::{KeyBlock, KeyColumn, LENGTH, NUMBER, RowKeys, Texts, WIDE};
use crate::PrimitiveError;
use crate::aggregate::lane::{self, Lane};
use crate::aggregate::{packing, state};

/// Minimum size of a block of output strings, bytes.
const TEXT_BYTES_MIN: usize = 1 << 10;

/// Encodes key columns and decodes them. Clones share it.
#[derive(Clone)]
pub(in crate::aggregate) struct Encoder(Arc<EncodedFields>);

struct EncodedFields {
    fields: Vec<EncodedField>,
    /// Bytes of the fixed-length part; at least eight.
    fixed: usize,
}

pub(super) struct EncodedField {
    /// Type of the result; for a dictionary, its value type.
    data_type: DataType,
    pub(super) kind: FieldKind,
    /// Offset of its number or length.
    pub(super) offset: usize,
}

pub(super) enum FieldKind {
    Number,
    Wide,
    Text,
    Rows(RowConverter),
}

impl Encoder {
    /// Creates an encoder for columns of these types.
    ///
    /// # Errors
    /// [`PrimitiveError::Arrow`] for types without equality.
    pub(in crate::aggregate) fn new(types: &[DataType]) -> Result<Self, PrimitiveError> {
        let mut fixed = types.len().div_ceil(8).next_multiple_of(LENGTH);
        let mut fields = Vec::with_capacity(types.len());
        for data_type in types {
            let data_type = match data_type {
                DataType::Dictionary(_, values) => values.as_ref().clone(),
                other => other.clone(),
            };
            let (kind, bytes) = match &data_type {
                DataType::Decimal128(..) => (FieldKind::Wide, WIDE),
                DataType::Boolean => (FieldKind::Number, NUMBER),
                number if lane::is_fixed(number) => (FieldKind::Number, NUMBER),
                text if is_text(text) => (FieldKind::Text, LENGTH),
                other => {
                    let converter = RowConverter::new(vec![SortField::new(other.clone())])?;
                    (FieldKind::Rows(converter), LENGTH)
                }
            };
            fields.push(EncodedField { data_type, kind, offset: fixed });
            fixed += bytes;
        }
        Ok(Self(Arc::new(EncodedFields { fields, fixed: fixed.max(NUMBER) })))
    }

    /// Prepares the key columns of a batch for encoding.
    pub(in crate::aggregate) fn columns(
        &self,
        keys: &[ArrayRef],
    ) -> Result<Vec<KeyColumn>, PrimitiveError> {
        self.0.fields.iter().zip(keys).map(|(field, key)| field.column(key)).collect()
    }

    /// Returns the keys of `len` rows from `start`; writes hashes and fixed-length parts to `block`.
    pub(in crate::aggregate) fn encode<'a>(
        &self,
        columns: &'a [KeyColumn],
        range: (usize, usize),
        block: &'a mut KeyBlock,
    ) -> RowKeys<'a> {
        block.encode(&self.0.fields, columns, self.0.fixed, range)
    }

    /// Likewise, but rows with the same string may share a key.
    pub(in crate::aggregate) fn encode_once<'a>(
        &self,
        columns: &'a [KeyColumn],
        range: (usize, usize),
        block: &'a mut KeyBlock,
    ) -> RowKeys<'a> {
        block.encode_once(&self.0.fields, columns, self.0.fixed, range)
    }

    /// Decodes keys to columns.
    pub(in crate::aggregate) fn decode(
        &self,
        keys: &[&[u8]],
    ) -> Result<Vec<ArrayRef>, PrimitiveError> {
        let mut tails = vec![self.0.fixed; keys.len()];
        let fields = self.0.fields.iter().enumerate();
        fields.map(|(at, field)| field.decode(at, keys, &mut tails)).collect()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

fn is_text(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::Utf8View | T::Utf8 | T::LargeUtf8 | T::BinaryView | T::Binary | T::LargeBinary
    )
}

impl EncodedField {
    fn column(&self, key: &ArrayRef) -> Result<KeyColumn, PrimitiveError> {
        if let Some(dictionary) = key.as_any_dictionary_opt() {
            let values = arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?;
            return self.column(&values);
        }
        Ok(match &self.kind {
            FieldKind::Number | FieldKind::Wide => match Lane::key(key) {
                Some(lane) => KeyColumn::Numbers(lane),
                None => unreachable!("{} is read as numbers", key.data_type()),
            },
            FieldKind::Text => KeyColumn::Texts(Texts::from_array(key)),
            FieldKind::Rows(converter) => {
                let rows = converter.convert_columns(std::slice::from_ref(key))?;
                KeyColumn::Texts(Texts::from_array(
                    &(Arc::new(rows.try_into_binary()?) as ArrayRef),
                ))
            }
        })
    }

    fn decode(
        &self,
        at: usize,
        keys: &[&[u8]],
        tails: &mut [usize],
    ) -> Result<ArrayRef, PrimitiveError> {
        let is_null = |key: &&[u8]| key[at / 8] >> (at % 8) & 1 == 1;
        let nulls: NullBuffer = keys.iter().map(|key| !is_null(key)).collect();
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let number = |key: &&[u8]| word(&key[self.offset..]);
        match &self.kind {
            FieldKind::Number if self.data_type == DataType::Boolean => {
                let values = keys.iter().map(|key| number(key) == 1).collect();
                Ok(Arc::new(BooleanArray::new(values, nulls)))
            }
            FieldKind::Number => {
                let values = packing::values(&self.data_type, keys.iter().map(number));
                state::array(&self.data_type, keys.len(), values, nulls)
            }
            FieldKind::Wide => {
                let wide = |key: &&[u8]| {
                    let high = word(&key[self.offset + NUMBER..]);
                    (i128::from(high as i64) << 64) | i128::from(number(key))
                };
                let values: Buffer = keys.iter().map(wide).collect();
                state::array(&self.data_type, keys.len(), values, nulls)
            }
            FieldKind::Text | FieldKind::Rows(_) => {
                let text = |(key, tail): (&&[u8], &mut usize)| -> Option<(usize, usize)> {
                    let length = &key[self.offset..][..LENGTH];
                    let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
                    let start = std::mem::replace(tail, *tail + length as usize);
                    (!is_null(key)).then_some((start, *tail))
                };
                let places: Vec<_> = keys.iter().zip(tails).map(text).collect();
                let texts = keys
                    .iter()
                    .zip(places)
                    .map(|(key, place)| place.map(|(start, end)| &key[start..end]));
                self.texts(texts)
            }
        }
    }

    fn texts<'a>(
        &self,
        texts: impl Iterator<Item = Option<&'a [u8]>> + Clone,
    ) -> Result<ArrayRef, PrimitiveError> {
        use DataType as T;
        if let FieldKind::Rows(converter) = &self.kind {
            let parser = converter.parser();
            let rows = texts.map(|text| parser.parse(text.unwrap_or_default()));
            return Ok(Arc::clone(&converter.convert_rows(rows)?[0]));
        }
        Ok(match self.data_type {
            T::Utf8 => Arc::new(StringArray::try_from_binary(BinaryArray::from_iter(texts))?),
            T::LargeUtf8 => {
                let binary = LargeBinaryArray::from_iter(texts);
                Arc::new(LargeStringArray::try_from_binary(binary)?)
            }
            T::Binary => Arc::new(BinaryArray::from_iter(texts)),
            T::LargeBinary => Arc::new(LargeBinaryArray::from_iter(texts)),
            T::BinaryView => {
                let mut views = BinaryViewBuilder::new().with_fixed_block_size(block_of(&texts));
                texts.for_each(|text| views.append_option(text));
                Arc::new(views.finish())
            }
            _ => {
                let mut views = StringViewBuilder::new().with_fixed_block_size(block_of(&texts));
                for text in texts {
                    let text = text.map(std::str::from_utf8).transpose();
                    let is_none = |error| ArrowError::InvalidArgumentError(format!("{error}"));
                    views.append_option(text.map_err(is_none)?);
                }
                Arc::new(views.finish())
            }
        })
    }
}

/// Bytes of one block that holds the strings.
fn block_of<'a>(texts: &(impl Iterator<Item = Option<&'a [u8]>> + Clone)) -> u32 {
    let bytes: usize = texts.clone().flatten().map(<[u8]>::len).sum();
    u32::try_from(bytes.max(TEXT_BYTES_MIN)).unwrap_or(i32::MAX as u32).min(i32::MAX as u32)
}

/// The first eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..NUMBER].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow_array::{
        BinaryViewArray, Decimal128Array, Decimal256Array, Float64Array, Int8Array, Int64Array,
        StringViewArray,
    };

    use crate::aggregate::keys::EncodedKeys;

    fn written(rows: &RowKeys<'_>, row: usize) -> Vec<u8> {
        let mut key = vec![0; rows.bytes(row)];
        rows.write(row, &mut key);
        assert!(rows.is_same(row, &key));
        key
    }

    fn round_trip(columns: &[ArrayRef]) {
        let types: Vec<DataType> = columns.iter().map(|it| it.data_type().clone()).collect();
        let encoder = Encoder::new(&types).unwrap();
        let ready = encoder.columns(columns).unwrap();
        let mut block = KeyBlock::default();
        for (start, len) in [(0, 4), (1, 3), (3, 1), (2, 0)] {
            let rows = encoder.encode(&ready, (start, len), &mut block);
            assert_eq!(rows.len(), len);
            let keys: Vec<Vec<u8>> = (0..len).map(|row| written(&rows, row)).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let found = encoder.decode(&keys).unwrap();
            for (found, column) in found.iter().zip(columns) {
                assert_eq!(found, &column.slice(start, len), "{types:?}");
            }
        }
    }

    #[test]
    fn keys_of_all_types_come_back_as_they_went_in() {
        let long = "a string of more than twelve bytes";
        let texts = vec![Some("short"), None, Some(long), Some("")];
        let bytes = texts.iter().map(|text| text.map(str::as_bytes));
        let wide = vec![Some(1_i128 << 100), None, Some(-1), Some(0)];
        let decimals = Decimal128Array::from(wide.clone());
        let all: Vec<ArrayRef> = vec![
            Arc::new(Int8Array::from(vec![Some(-1), None, Some(0), Some(127)])),
            Arc::new(StringViewArray::from(texts.clone())),
            Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, i64::MAX])),
            Arc::new(decimals),
            Arc::new(StringArray::from(texts.clone())),
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(BinaryArray::from_iter(bytes.clone())),
            Arc::new(LargeBinaryArray::from_iter(bytes.clone())),
            Arc::new(BinaryViewArray::from_iter(bytes)),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Arc::new(Decimal256Array::from(vec![None, Some(1.into()), Some(2.into()), None])),
        ];
        round_trip(&all);
        for column in all {
            round_trip(&[column]);
        }
    }

    #[test]
    fn keys_are_equal_where_their_values_are() {
        let texts = StringViewArray::from(vec!["ab", "a", "ab", "", "ab\0", "a"]);
        let numbers = Float64Array::from(vec![0.0, 1.0, -0.0, 1.0, 0.0, 1.0]);
        let encoder = Encoder::new(&[DataType::Utf8View, DataType::Float64]).unwrap();
        let columns = encoder.columns(&[Arc::new(texts) as _, Arc::new(numbers) as _]).unwrap();
        let mut block = KeyBlock::default();
        let rows = encoder.encode(&columns, (0, 6), &mut block);
        let same = [[0, 2], [1, 5]];
        for (one, other) in (0..6).flat_map(|one| (0..6).map(move |other| (one, other))) {
            let equal = one == other || same.contains(&[one.min(other), one.max(other)]);
            let key = written(&rows, other);
            assert_eq!(written(&rows, one) == key, equal, "{one}, {other}");
            let is_same = rows.bytes(one) == key.len() && rows.is_same(one, &key);
            assert_eq!(is_same, equal, "{one}, {other}");
            assert_eq!(rows.hash(one) == rows.hash(other), equal, "{one}, {other}");
        }
    }
}
