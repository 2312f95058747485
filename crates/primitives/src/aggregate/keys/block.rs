//! Keys of a block of rows, hashed, compared and copied from their columns.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::encoder::{EncodedField, FieldKind};
use super::repeats::{self, Repeats};
use crate::aggregate::lane::Lane;
use crate::kernel::stream::prefetch;
use crate::{hash, kernel::words};

/// Bytes of a number, of a 128-bit one, and of a string's length.
pub(super) const NUMBER: usize = 8;
pub(super) const WIDE: usize = 16;
pub(super) const LENGTH: usize = 4;
/// Bytes of a view, and of a string stored inline.
const VIEW: usize = 16;
const INLINE: usize = 12;
/// Prefetch distance for the bytes of long strings, in rows: they need not lie in the order of the rows.
const AHEAD: usize = 16;
/// Length up to which strings are compared word by word: a call costs more.
const BY_WORDS: usize = 64;

/// Encoded keys with their hashes.
pub(in crate::aggregate) trait EncodedKeys {
    /// Number of keys.
    fn len(&self) -> usize;
    /// Hash of a key.
    fn hash(&self, at: usize) -> u64;
    /// Bytes of a key.
    fn bytes(&self, at: usize) -> usize;
    /// Whether a key equals these bytes, which have its length.
    fn is_same(&self, at: usize, key: &[u8]) -> bool;
    /// Copies a key to these bytes, which have its length.
    fn write(&self, at: usize, to: &mut [u8]);

    /// The key of each row if rows share keys; else row and key numbers are equal.
    fn of_rows(&self) -> Option<&[u32]> {
        None
    }
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

/// Scratch space for the keys of a block of rows.
#[derive(Debug, Default)]
pub(in crate::aggregate) struct KeyBlock {
    /// The fixed-length parts, one after another.
    fixed: Vec<u8>,
    hashes: Vec<u64>,
    words: Vec<u64>,
    valid: Vec<u8>,
    repeats: Repeats,
}

/// Keys of a block of rows, whose strings stay in the columns.
#[derive(Debug)]
pub(in crate::aggregate) struct RowKeys<'a> {
    fixed: &'a [u8],
    /// Bytes of a fixed-length part.
    width: usize,
    hashes: &'a [u64],
    texts: Vec<RowTexts<'a>>,
    of_rows: Option<&'a [u32]>,
}

/// Strings of a column, and the offset of their lengths in the fixed-length part.
#[derive(Debug)]
struct RowTexts<'a> {
    views: &'a [u128],
    buffers: &'a [Buffer],
    offset: usize,
}

impl Texts {
    /// Strings or bytes of any type; the column must have such a type.
    pub(super) fn from_array(array: &ArrayRef) -> Self {
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

/// Hash of more than [`INLINE`] bytes, sixteen at a time; the last block overlaps the one before.
#[inline(always)]
fn hash_long(text: &[u8], before: u64) -> u64 {
    let length = text.len();
    if length <= 2 * NUMBER {
        return hash::then_pair(before, word(text), word(&text[length - NUMBER..]));
    }
    let pair = |hash, at: &[u8]| hash::then_pair(hash, word(at), word(&at[NUMBER..]));
    let full = text[..length - 1].chunks_exact(2 * NUMBER).fold(before, pair);
    pair(full, &text[length - 2 * NUMBER..])
}

impl KeyBlock {
    /// The keys of a range of rows, one for each.
    pub(super) fn encode<'a>(
        &'a mut self,
        fields: &[EncodedField],
        columns: &'a [KeyColumn],
        width: usize,
        (start, len): (usize, usize),
    ) -> RowKeys<'a> {
        self.fixed.clear();
        self.fixed.resize(width * len, 0);
        let mut texts = Vec::new();
        for (at, (field, column)) in fields.iter().zip(columns).enumerate() {
            match column {
                KeyColumn::Numbers(lane) => self.put_numbers(at, field, width, lane, (start, len)),
                KeyColumn::Texts(column) => {
                    let (views, offset) = (&column.views[start..start + len], field.offset);
                    let is_null = |row: usize| column.is_null(start + row);
                    put_lengths(&mut self.fixed, width, (at, offset), views, is_null);
                    texts.push(RowTexts { views, buffers: &column.buffers, offset });
                }
            }
        }
        hash_all(&self.fixed, width, &texts, &mut self.hashes);
        RowKeys { fixed: &self.fixed, width, hashes: &self.hashes, texts, of_rows: None }
    }

    /// The keys of a range of rows; rows with the same string may share one.
    pub(super) fn encode_once<'a>(
        &'a mut self,
        fields: &[EncodedField],
        columns: &'a [KeyColumn],
        width: usize,
        (start, len): (usize, usize),
    ) -> RowKeys<'a> {
        let ([field], [KeyColumn::Texts(column)]) = (fields, columns) else {
            return self.encode(fields, columns, width, (start, len));
        };
        let is_null = |row: usize| column.is_null(start + row);
        if !self.repeats.find(&column.views[start..start + len], is_null) {
            return self.encode(fields, columns, width, (start, len));
        }
        let (views, offset) = (self.repeats.views(), field.offset);
        self.fixed.clear();
        self.fixed.resize(width * views.len(), 0);
        let is_null = |key: usize| repeats::is_null(views[key]);
        put_lengths(&mut self.fixed, width, (0, offset), views, is_null);
        let texts = vec![RowTexts { views, buffers: &column.buffers, offset }];
        hash_all(&self.fixed, width, &texts, &mut self.hashes);
        let of_rows = Some(self.repeats.keys());
        RowKeys { fixed: &self.fixed, width, hashes: &self.hashes, texts, of_rows }
    }

    fn put_numbers(
        &mut self,
        at: usize,
        field: &EncodedField,
        width: usize,
        lane: &Lane,
        (start, len): (usize, usize),
    ) {
        let Self { fixed, words, valid, .. } = self;
        let valid = lane.valid(start, len, valid);
        let is_null = |row: usize| valid.is_some_and(|valid| valid[row] == 0);
        let keys = fixed.chunks_exact_mut(width).enumerate();
        if let FieldKind::Wide = field.kind {
            for ((row, key), value) in keys.zip(lane.wide(start, len)) {
                match is_null(row) {
                    true => key[at / 8] |= 1 << (at % 8),
                    false => key[field.offset..][..WIDE].copy_from_slice(&value.to_le_bytes()),
                }
            }
            return;
        }
        for ((row, key), word) in keys.zip(lane.words(start, len, words)) {
            match is_null(row) {
                true => key[at / 8] |= 1 << (at % 8),
                false => key[field.offset..][..NUMBER].copy_from_slice(&word.to_le_bytes()),
            }
        }
    }
}

/// Writes the lengths of strings to the fixed-length parts, or the null bit `at`.
fn put_lengths(
    fixed: &mut [u8],
    width: usize,
    (at, offset): (usize, usize),
    views: &[u128],
    is_null: impl Fn(usize) -> bool,
) {
    for (row, (key, view)) in fixed.chunks_exact_mut(width).zip(views).enumerate() {
        match is_null(row) {
            true => key[at / 8] |= 1 << (at % 8),
            false => key[offset..][..LENGTH].copy_from_slice(&(*view as u32).to_le_bytes()),
        }
    }
}

/// Hashes keys.
fn hash_all(fixed: &[u8], width: usize, texts: &[RowTexts<'_>], hashes: &mut Vec<u64>) {
    hashes.clear();
    hashes.extend(fixed.chunks_exact(width).map(hash_fixed));
    for text in texts {
        for (at, (key, hash)) in fixed.chunks_exact(width).zip(&mut *hashes).enumerate() {
            text.prefetch(at + AHEAD);
            *hash = text.hash(at, length(key, text.offset), *hash);
        }
    }
}

impl RowTexts<'_> {
    /// The string of a key, which has this length.
    #[inline(always)]
    fn text(&self, at: usize, length: usize) -> &[u8] {
        if length <= INLINE {
            return &words::bytes_of(self.views)[at * VIEW + LENGTH..][..length];
        }
        let (buffer, offset) = place(self.views[at]);
        &self.buffers[buffer][offset..][..length]
    }

    /// Prefetches the bytes of a long string.
    #[inline(always)]
    fn prefetch(&self, at: usize) {
        let Some(view) = self.views.get(at).filter(|view| **view as u32 as usize > INLINE) else {
            return;
        };
        let (buffer, offset) = place(*view);
        if let Some(buffer) = self.buffers.get(buffer) {
            prefetch(buffer.as_ptr().wrapping_add(offset));
        }
    }

    /// Hash of the string of a key, given the hash of the preceding parts. Short strings are hashed as they lie in
    /// their views, which are padded with zeros.
    #[inline(always)]
    fn hash(&self, at: usize, length: usize, before: u64) -> u64 {
        match length {
            0 => before,
            1..=INLINE => {
                let view = self.views[at];
                hash::then_pair(before, view as u64, (view >> 64) as u64)
            }
            _ => hash_long(self.text(at, length), before),
        }
    }
}

/// The buffer of a long string, and its offset there.
#[inline(always)]
fn place(view: u128) -> (usize, usize) {
    ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize)
}

impl RowKeys<'_> {
    /// Hash of each key.
    pub(in crate::aggregate) fn hashes(&self) -> &[u64] {
        self.hashes
    }

    #[inline(always)]
    fn fixed(&self, at: usize) -> &[u8] {
        &self.fixed[at * self.width..][..self.width]
    }
}

impl EncodedKeys for RowKeys<'_> {
    fn len(&self) -> usize {
        self.hashes.len()
    }

    #[inline(always)]
    fn hash(&self, at: usize) -> u64 {
        self.hashes[at]
    }

    #[inline(always)]
    fn bytes(&self, at: usize) -> usize {
        let (fixed, mut bytes) = (self.fixed(at), self.width);
        for text in &self.texts {
            bytes += length(fixed, text.offset);
        }
        bytes
    }

    #[inline(always)]
    fn is_same(&self, at: usize, key: &[u8]) -> bool {
        let fixed = self.fixed(at);
        let (own, mut rest) = key.split_at(self.width);
        let mut same = is_same(own, fixed);
        // A loop, because `Iterator::all` with a closure of this size is not inlined.
        for text in &self.texts {
            let text = text.text(at, length(fixed, text.offset));
            let (own, behind) = rest.split_at(text.len());
            rest = behind;
            same &= is_same(own, text);
        }
        same
    }

    #[inline(always)]
    fn write(&self, at: usize, to: &mut [u8]) {
        let fixed = self.fixed(at);
        let (own, mut rest) = to.split_at_mut(self.width);
        own.copy_from_slice(fixed);
        for text in &self.texts {
            let text = text.text(at, length(fixed, text.offset));
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(text.len());
            own.copy_from_slice(text);
            rest = behind;
        }
    }

    fn of_rows(&self) -> Option<&[u32]> {
        self.of_rows
    }
}

/// Whether byte strings of the same length are equal.
#[inline(always)]
pub(in crate::aggregate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let length = one.len();
    if length != other.len() || !(NUMBER..=BY_WORDS).contains(&length) {
        return one == other;
    }
    let words = one.chunks_exact(NUMBER).zip(other.chunks_exact(NUMBER));
    let last = length - NUMBER;
    words.fold(word(&one[last..]) ^ word(&other[last..]), |all, (one, other)| {
        all | (word(one) ^ word(other))
    }) == 0
}

/// The length of a string in a fixed-length part.
#[inline(always)]
fn length(fixed: &[u8], offset: usize) -> usize {
    u32::from_le_bytes(fixed[offset..offset + LENGTH].try_into().expect("four bytes")) as usize
}

/// The first eight bytes as a number.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..NUMBER].try_into().expect("eight bytes"))
}

/// Hash of a fixed-length part, eight bytes at a time; the last eight overlap those before.
#[inline(always)]
fn hash_fixed(part: &[u8]) -> u64 {
    let hash = part.chunks_exact(NUMBER).map(word).fold(0, hash::then);
    match part.len() % NUMBER {
        0 => hash,
        _ => hash::then(hash, word(&part[part.len() - NUMBER..])),
    }
}
