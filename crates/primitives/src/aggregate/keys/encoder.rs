//! Keys of any type as bytes that are equal where the keys are.
//!
//! A key is a part of fixed length and the bytes of its strings behind it. In the fixed part each column
//! has a bit that tells nulls, and then its number or the length of its string; what is null is zeros.
//! Types that are neither numbers nor strings are strings of Arrow's row format.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray,
};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;

use crate::aggregate::lane::{self, Lane};
use crate::aggregate::{packing, state};
use crate::{PrimitiveError, hash};

/// Bytes of a number, of a 128-bit one, and of a string's length.
const NUMBER: usize = 8;
const WIDE: usize = 16;
const LENGTH: usize = 4;
/// Bytes of views that hold the string itself.
const INLINE: usize = 12;

/// Turns key columns into bytes and back. Clones share it.
#[derive(Clone)]
pub(in crate::aggregate) struct Encoder(Arc<EncodedFields>);

struct EncodedFields {
    fields: Vec<EncodedField>,
    /// Bytes of the part of fixed length; eight at least.
    fixed: usize,
}

struct EncodedField {
    /// Type of the result: the values' of a dictionary.
    data_type: DataType,
    kind: FieldKind,
    /// Where its number or length is.
    offset: usize,
}

enum FieldKind {
    Number,
    Wide,
    Text,
    Rows(RowConverter),
}

/// A key column of a batch, ready to be encoded block by block.
#[derive(Debug)]
pub(in crate::aggregate) enum KeyColumn {
    Numbers(Lane),
    Texts(Texts),
}

/// Strings as views.
#[derive(Debug)]
pub(in crate::aggregate) struct Texts {
    views: ScalarBuffer<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
}

/// Encoded keys of a block of rows.
#[derive(Debug, Default)]
pub(in crate::aggregate) struct KeyBlock {
    bytes: Vec<u8>,
    /// Where each key starts, and where the last one ends.
    starts: Vec<usize>,
    hashes: Vec<u64>,
    /// Where the next string of each row goes.
    tails: Vec<usize>,
    words: Vec<u64>,
    valid: Vec<u8>,
}

impl Encoder {
    /// An encoder of columns of these types.
    ///
    /// # Errors
    /// [`PrimitiveError::Arrow`] for types that have no equality.
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

    /// The key columns of a batch, to be encoded.
    pub(in crate::aggregate) fn columns(
        &self,
        keys: &[ArrayRef],
    ) -> Result<Vec<KeyColumn>, PrimitiveError> {
        self.0.fields.iter().zip(keys).map(|(field, key)| field.column(key)).collect()
    }

    /// Encodes `len` rows from `start`.
    pub(in crate::aggregate) fn encode(
        &self,
        columns: &[KeyColumn],
        (start, len): (usize, usize),
        to: &mut KeyBlock,
    ) {
        let EncodedFields { fields, fixed } = self.0.as_ref();
        to.lay_out(columns, *fixed, (start, len));
        for (at, (field, column)) in fields.iter().zip(columns).enumerate() {
            match column {
                KeyColumn::Numbers(lane) => to.put_numbers(at, field, lane, (start, len)),
                KeyColumn::Texts(texts) => to.put_texts(at, field, texts, start),
            }
        }
        to.hash();
    }

    /// The columns of these keys.
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
            FieldKind::Text => KeyColumn::Texts(Texts::of(key)),
            FieldKind::Rows(converter) => {
                let rows = converter.convert_columns(std::slice::from_ref(key))?;
                KeyColumn::Texts(Texts::of(&(Arc::new(rows.try_into_binary()?) as ArrayRef)))
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
        texts: impl Iterator<Item = Option<&'a [u8]>>,
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
            _ => {
                let mut builder = BinaryViewBuilder::new();
                texts.for_each(|text| builder.append_option(text));
                let binary = builder.finish();
                match self.data_type {
                    T::BinaryView => Arc::new(binary),
                    _ => Arc::new(binary.to_string_view()?),
                }
            }
        })
    }
}

impl Texts {
    /// Strings or bytes of any kind; others have none.
    fn of(array: &ArrayRef) -> Self {
        use DataType as T;
        let views = match array.data_type() {
            T::Utf8View => array.as_string_view().to_owned().to_binary_view(),
            T::BinaryView => array.as_binary_view().to_owned(),
            T::Utf8 => StringViewArray::from(array.as_string::<i32>()).to_binary_view(),
            T::LargeUtf8 => StringViewArray::from(array.as_string::<i64>()).to_binary_view(),
            T::LargeBinary => array.as_binary::<i64>().into(),
            _ => array.as_binary::<i32>().into(),
        };
        let (views, buffers, nulls) = views.into_parts();
        Self { views, buffers: buffers.to_vec(), nulls }
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

impl KeyBlock {
    /// Number of keys.
    pub(in crate::aggregate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of a key.
    pub(in crate::aggregate) fn key(&self, row: usize) -> &[u8] {
        &self.bytes[self.starts[row]..self.starts[row + 1]]
    }

    /// Hash of each key.
    pub(in crate::aggregate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Room for the keys of a block, all zeros.
    fn lay_out(&mut self, columns: &[KeyColumn], fixed: usize, (start, len): (usize, usize)) {
        self.starts.clear();
        self.starts.resize(len + 1, fixed);
        for column in columns {
            let KeyColumn::Texts(texts) = column else { continue };
            for (row, (length, view)) in
                self.starts.iter_mut().zip(&texts.views[start..start + len]).enumerate()
            {
                let length_of = if texts.is_null(start + row) { 0 } else { *view as u32 };
                *length += length_of as usize;
            }
        }
        let mut end = 0;
        for length in &mut self.starts {
            end += std::mem::replace(length, end);
        }
        self.tails.clear();
        self.tails.extend(self.starts[..len].iter().map(|start| start + fixed));
        self.bytes.clear();
        self.bytes.resize(self.starts[len], 0);
    }

    fn put_numbers(
        &mut self,
        at: usize,
        field: &EncodedField,
        lane: &Lane,
        (start, len): (usize, usize),
    ) {
        let Self { bytes, starts, words, valid, .. } = self;
        let valid = lane.valid(start, len, valid);
        let is_null = |row: usize| valid.is_some_and(|valid| valid[row] == 0);
        if let FieldKind::Wide = field.kind {
            for (row, value) in lane.wide(start, len).iter().enumerate() {
                let key = &mut bytes[starts[row]..];
                match is_null(row) {
                    true => key[at / 8] |= 1 << (at % 8),
                    false => key[field.offset..][..WIDE].copy_from_slice(&value.to_le_bytes()),
                }
            }
            return;
        }
        for (row, word) in lane.words(start, len, words).iter().enumerate() {
            let key = &mut bytes[starts[row]..];
            match is_null(row) {
                true => key[at / 8] |= 1 << (at % 8),
                false => key[field.offset..][..NUMBER].copy_from_slice(&word.to_le_bytes()),
            }
        }
    }

    fn put_texts(&mut self, at: usize, field: &EncodedField, texts: &Texts, start: usize) {
        let len = self.tails.len();
        for (row, view) in texts.views[start..start + len].iter().enumerate() {
            if texts.is_null(start + row) {
                self.bytes[self.starts[row] + at / 8] |= 1 << (at % 8);
                continue;
            }
            let length = *view as u32;
            let place = self.starts[row] + field.offset;
            self.bytes[place..place + LENGTH].copy_from_slice(&length.to_le_bytes());
            let length = length as usize;
            let tail = self.tails[row];
            self.tails[row] += length;
            let to = &mut self.bytes[tail..tail + length];
            if length <= INLINE {
                to.copy_from_slice(&view.to_le_bytes()[LENGTH..LENGTH + length]);
            } else {
                let (buffer, offset) = ((view >> 64) as u32, (view >> 96) as u32);
                to.copy_from_slice(&texts.buffers[buffer as usize][offset as usize..][..length]);
            }
        }
    }

    fn hash(&mut self) {
        let Self { bytes, starts, hashes, .. } = self;
        hashes.clear();
        hashes.extend(starts.windows(2).map(|place| hash_bytes(&bytes[place[0]..place[1]])));
    }
}

/// The first eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..NUMBER].try_into().expect("eight bytes"))
}

/// Hash of a key's bytes, eight at a time; the last eight overlap those before. Keys of one encoder
/// that are as long as each other are told apart by their bytes, and others by their length.
fn hash_bytes(key: &[u8]) -> u64 {
    let hash = hash::word(key.len() as u64);
    let hash = key.chunks_exact(NUMBER).map(word).fold(hash, hash::then);
    match key.len() % NUMBER {
        0 => hash,
        _ => hash::then(hash, word(&key[key.len() - NUMBER..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow_array::{
        BinaryViewArray, Decimal128Array, Decimal256Array, Float64Array, Int8Array, Int64Array,
    };

    fn round_trip(columns: &[ArrayRef]) {
        let types: Vec<DataType> = columns.iter().map(|it| it.data_type().clone()).collect();
        let encoder = Encoder::new(&types).unwrap();
        let ready = encoder.columns(columns).unwrap();
        let mut block = KeyBlock::default();
        for (start, len) in [(0, 4), (1, 3), (3, 1), (2, 0)] {
            encoder.encode(&ready, (start, len), &mut block);
            assert_eq!(block.len(), len);
            let keys: Vec<&[u8]> = (0..len).map(|row| block.key(row)).collect();
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
        encoder.encode(&columns, (0, 6), &mut block);
        let same = [[0, 2], [1, 5]];
        for (one, other) in (0..6).flat_map(|one| (0..6).map(move |other| (one, other))) {
            let equal = one == other || same.contains(&[one.min(other), one.max(other)]);
            assert_eq!(block.key(one) == block.key(other), equal, "{one}, {other}");
            assert_eq!(block.hashes()[one] == block.hashes()[other], equal, "{one}, {other}");
        }
    }
}
