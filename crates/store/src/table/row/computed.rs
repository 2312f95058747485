//! Keys that are more than columns: of functions of columns, and only of rows for which a condition holds.
//!
//! The indexes of a table name such a key by a number behind those of its columns.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringViewArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use md5::{Digest, Md5};

use super::codec::Column;
use super::condition::RowCondition;
use super::shape::Cursor;
use super::write::{Source, write_bytes};
use super::{Key, Row, RowCodec};
use crate::table::column::StoredColumn;
use crate::table::error::TableError;

type Result<T> = std::result::Result<T, TableError>;

/// A function of one column, of the column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFunction {
    /// `lower(column)`
    Lower,
    /// `upper(column)`
    Upper,
    /// Functions of texts, each of the result of the one before; one alone is neither `lower` nor `upper`.
    Texts(Box<[TextFunction]>),
    /// `coalesce(column, value)`; the value is encoded as in a key of this column.
    Coalesce(Box<[u8]>),
}

/// A function from a text to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFunction {
    /// `lower(text)`
    Lower,
    /// `upper(text)`
    Upper,
    /// `trim(text)`, or `ltrim(text)` and `rtrim(text)` of one end: without blanks.
    Trim {
        /// At the start.
        start: bool,
        /// At the end.
        end: bool,
    },
    /// `substr(text, start, count)`, and `left(text, count)`.
    Substring {
        /// The first character, from 1.
        start: u64,
        /// How many characters at most; all to the end if None.
        count: Option<u64>,
    },
    /// `md5(text)`
    Md5,
}

impl TextFunction {
    /// The function of a text.
    fn of(self, text: &str) -> String {
        match self {
            Self::Lower => text.to_lowercase(),
            Self::Upper => text.to_uppercase(),
            Self::Trim { start, end } => {
                let text = if start { text.trim_start_matches(' ') } else { text };
                let text = if end { text.trim_end_matches(' ') } else { text };
                text.to_owned()
            }
            Self::Substring { start, count } => {
                let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                let skipped = size(start.saturating_sub(1));
                text.chars().skip(skipped).take(count.map_or(usize::MAX, size)).collect()
            }
            Self::Md5 => {
                Md5::digest(text.as_bytes()).iter().fold(String::new(), |mut out, byte| {
                    // Writing to a text does not fail.
                    let _ = write!(out, "{byte:02x}");
                    out
                })
            }
        }
    }
}

impl KeyFunction {
    /// These functions of texts, each of the result of the one before.
    pub fn of_text_functions(functions: Vec<TextFunction>) -> Option<Self> {
        match functions[..] {
            [] => None,
            [TextFunction::Lower] => Some(Self::Lower),
            [TextFunction::Upper] => Some(Self::Upper),
            _ => Some(Self::Texts(functions.into())),
        }
    }

    /// The functions of texts that it consists of; None if it is not one of texts.
    fn text_functions(&self) -> Option<&[TextFunction]> {
        match self {
            Self::Lower => Some(&[TextFunction::Lower]),
            Self::Upper => Some(&[TextFunction::Upper]),
            Self::Texts(functions) => Some(functions),
            Self::Coalesce(_) => None,
        }
    }

    /// Whether it is a function of texts alone, which an ordered index can have.
    pub fn is_of_text(&self) -> bool {
        self.text_functions().is_some()
    }

    /// The function of texts.
    ///
    /// # Errors
    /// If the values are of another type than text, or the function takes other types.
    pub(crate) fn of_texts(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        let Some(functions) = self.text_functions() else {
            let problem = "an ordered index is of columns and functions of texts".to_owned();
            return Err(ArrowError::NotYetImplemented(problem).into());
        };
        let plain = cast(texts, &DataType::Utf8View)?;
        let others =
            plain.as_string_view().iter().map(|text| text.map(|text| of_all(functions, text)));
        let others: StringViewArray = others.collect();
        Ok(cast(&others, texts.data_type())?)
    }

    /// Writes the function of a value. Returns None if it is NULL.
    fn write(&self, value: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
        match (self, self.text_functions()) {
            (Self::Coalesce(other), _) => out.extend_from_slice(value.unwrap_or(other)),
            (_, functions) => {
                let text = std::str::from_utf8(Cursor(value?).bytes()?).ok()?;
                write_bytes(of_all(functions.unwrap_or_default(), text).as_bytes(), out);
            }
        }
        Some(())
    }
}

fn of_all(functions: &[TextFunction], text: &str) -> String {
    functions.iter().fold(text.to_owned(), |text, function| function.of(&text))
}

/// A key that is more than columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComputedKey {
    /// The columns, each with its function.
    pub(crate) parts: Vec<(usize, Option<KeyFunction>)>,
    /// Other rows have no key.
    pub(crate) condition: Option<RowCondition>,
    /// Whether rows with NULLs have keys too. A key then ends in one bit for each part, set if that is NULL.
    pub(crate) has_nulls: bool,
}

impl ComputedKey {
    /// The columns that it reads.
    fn columns(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = self.parts.iter().map(|(column, _)| *column).collect();
        if let Some(condition) = &self.condition {
            condition.add_columns(&mut columns);
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The key of a row with these values. Returns None if the condition does not hold, or a part is NULL where rows
    /// with NULLs have no keys.
    fn key<'v>(
        &self,
        codec: &RowCodec,
        value_of: &impl Fn(usize) -> Option<&'v [u8]>,
    ) -> Option<Key> {
        let condition = self.condition.as_ref();
        if condition.is_some_and(|condition| condition.holds(codec, value_of) != Some(true)) {
            return None;
        }
        let (mut bytes, mut nulls) = (Vec::new(), NullBits::new(self.parts.len()));
        for (place, (column, function)) in self.parts.iter().enumerate() {
            let value = value_of(*column);
            let written = match function {
                Some(function) => function.write(value, &mut bytes),
                None => value.map(|value| bytes.extend_from_slice(value)),
            };
            match written {
                Some(()) => {}
                None if self.has_nulls => nulls.set(place),
                None => return None,
            }
        }
        if self.has_nulls {
            bytes.extend_from_slice(&nulls.0);
        }
        Some(Key(bytes.into()))
    }
}

/// A bit for each part of a key, set if that is NULL.
pub(super) struct NullBits(Vec<u8>);

impl NullBits {
    fn new(parts: usize) -> Self {
        Self(vec![0; parts.div_ceil(8)])
    }

    fn set(&mut self, place: usize) {
        self.0[place / 8] |= 1 << (place % 8);
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.0.get(place / 8).is_some_and(|bits| bits & 1 << (place % 8) != 0)
    }
}

impl Key {
    /// The key of `NULLS NOT DISTINCT` with the values of this key of so many columns, none of which is NULL.
    pub fn among_nulls(&self, columns: usize) -> Self {
        Self([self.as_bytes(), &NullBits::new(columns).0].concat().into())
    }

    /// The values of such a key, and which of its columns are NULL.
    pub(super) fn split_nulls(&self, columns: usize) -> Option<(&[u8], NullBits)> {
        let end = self.0.len().checked_sub(columns.div_ceil(8))?;
        let (values, nulls) = self.0.split_at(end);
        Some((values, NullBits(nulls.to_vec())))
    }
}

impl RowCodec {
    /// The same with these keys, the first of which has the number behind those of the columns.
    pub(crate) fn with_computed(mut self, computed: Vec<Option<ComputedKey>>) -> Self {
        self.computed = computed;
        self
    }

    /// The key that a list of columns names instead of columns.
    pub(super) fn computed_of(&self, columns: &[usize]) -> Option<&ComputedKey> {
        let [column] = columns else { return None };
        self.computed.get(column.checked_sub(self.columns.len())?)?.as_ref()
    }

    pub(super) fn computed_key(&self, row: &Row, computed: &ComputedKey) -> Option<Key> {
        let values = self.values(row)?;
        computed.key(self, &|column| values.get(column).copied().flatten())
    }

    pub(super) fn computed_key_stored(
        &self,
        block: &[StoredColumn],
        row: usize,
        computed: &ComputedKey,
    ) -> Result<Option<Key>> {
        let columns = computed.columns();
        let value = |at: &usize| -> Result<Option<Vec<u8>>> {
            let mut bytes = Vec::new();
            let is_there = self.columns[*at].write_stored(&block[*at], row, &mut bytes)?;
            Ok(is_there.then_some(bytes))
        };
        let values = columns.iter().map(value).collect::<Result<Vec<_>>>()?;
        let value_of = |column| values[columns.binary_search(&column).ok()?].as_deref();
        Ok(computed.key(self, &value_of))
    }

    /// Calls `take` with the keys of the first rows of a block, and their rows.
    pub(super) fn each_computed_key_stored(
        &self,
        block: &[StoredColumn],
        rows: usize,
        computed: &ComputedKey,
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let columns = computed.columns();
        let decoded = columns.iter().map(|at| self.columns[*at].decoded(&block[*at], rows));
        let decoded = decoded.collect::<Result<Vec<_>>>()?;
        let sources = columns.iter().zip(&decoded);
        let sources = sources.map(|(at, decoded)| self.columns[*at].source(&block[*at], decoded));
        let sources: Vec<Source<'_>> = sources.collect();
        let mut values: Vec<Option<Vec<u8>>> = vec![None; columns.len()];
        for row in 0..rows {
            for (source, value) in sources.iter().zip(&mut values) {
                let mut bytes = value.take().unwrap_or_default();
                bytes.clear();
                *value = source.has(row).then(|| {
                    source.write(row, &mut bytes);
                    bytes
                });
            }
            let value_of = |column| values[columns.binary_search(&column).ok()?].as_deref();
            if let Some(key) = computed.key(self, &value_of) {
                take(row, key.as_bytes());
            }
        }
        Ok(())
    }
}

impl Column {
    /// The first rows of a column of a block, if they have to be decoded to be read.
    pub(super) fn decoded(&self, stored: &StoredColumn, rows: usize) -> Result<Option<ArrayRef>> {
        let whole = crate::table::column::Selection::Range { offset: 0, len: rows };
        match self.is_plain() {
            true => Ok(None),
            false => self.prepared(&stored.decode(&self.logical, &whole)?).map(Some),
        }
    }

    /// The values of a column of a block.
    pub(super) fn source<'a>(
        &self,
        stored: &'a StoredColumn,
        decoded: &'a Option<ArrayRef>,
    ) -> Source<'a> {
        match decoded {
            Some(decoded) => Source::new(decoded),
            None => Source::stored(stored, &self.logical),
        }
    }
}
