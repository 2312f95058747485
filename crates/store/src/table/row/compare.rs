//! Keys of one table as keys of another one, whose columns may have other widths: the comparison of foreign keys.

use arrow_array::ArrayRef;
use arrow_cast::cast;
use arrow_schema::DataType;

use super::super::error::TableError;
use super::super::float::canonical;
use super::read::Sink;
use super::shape::{Cursor, plain_type};
use super::{Key, RowCodec};

/// The encoding of a whole number in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WholeNumber {
    bytes: usize,
    is_signed: bool,
}

/// Whether columns of two types can be compared as keys: they are encoded the same, or both are
/// whole numbers.
pub fn is_comparable(one: &DataType, other: &DataType) -> bool {
    let (one, other) = (plain_type(one), plain_type(other));
    let is_bytes = |plain: &DataType| {
        matches!(plain, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    };
    let has_same_bytes = match (&one, &other) {
        (DataType::Decimal128(_, one), DataType::Decimal128(_, other)) => one == other,
        (one, other) if one.is_string() && other.is_string() => true,
        (one, other) if is_bytes(one) && is_bytes(other) => true,
        (one, other) => one == other,
    };
    has_same_bytes
        || (WholeNumber::try_from_type(&one).is_some()
            && WholeNumber::try_from_type(&other).is_some())
}

impl WholeNumber {
    fn try_from_type(plain: &DataType) -> Option<Self> {
        let (bytes, is_signed) = match plain {
            DataType::Int8 => (1, true),
            DataType::Int16 => (2, true),
            DataType::Int32 => (4, true),
            DataType::Int64 => (8, true),
            DataType::UInt8 => (1, false),
            DataType::UInt16 => (2, false),
            DataType::UInt32 => (4, false),
            DataType::UInt64 => (8, false),
            _ => return None,
        };
        Some(Self { bytes, is_signed })
    }

    fn read(self, bytes: &[u8]) -> i128 {
        let is_negative = self.is_signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        wide[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
        i128::from_le_bytes(wide)
    }

    /// The bytes of a number. Returns None if it does not fit.
    fn write(self, number: i128) -> Option<[u8; 16]> {
        let bits = self.bytes * 8 - usize::from(self.is_signed);
        let smallest = if self.is_signed { -(1_i128 << bits) } else { 0 };
        let fits = (smallest..1_i128 << bits).contains(&number);
        fits.then(|| number.to_le_bytes())
    }
}

impl RowCodec {
    /// Whether equal keys of these columns and of columns of another table have the same bytes.
    pub(crate) fn has_same_keys(&self, columns: &[usize], other: &Self, others: &[usize]) -> bool {
        let number = |codec: &Self, at: usize| WholeNumber::try_from_type(&codec.columns[at].plain);
        let mut pairs = columns.iter().zip(others);
        pairs.all(|(own, theirs)| number(self, *own) == number(other, *theirs))
    }

    /// A key of these columns as a key of columns of another table. Returns None if no key there is equal to it.
    pub(crate) fn key_as(
        &self,
        key: &Key,
        columns: &[usize],
        other: &Self,
        others: &[usize],
    ) -> Option<Key> {
        let mut cursor = Cursor(key.as_bytes());
        let mut bytes = Vec::with_capacity(key.as_bytes().len() + 8);
        for (own, theirs) in columns.iter().zip(others) {
            let (own, theirs) = (&self.columns[*own], &other.columns[*theirs]);
            let before = cursor.0;
            cursor.skip(&own.shape)?;
            let value = &before[..before.len() - cursor.0.len()];
            match (
                WholeNumber::try_from_type(&own.plain),
                WholeNumber::try_from_type(&theirs.plain),
            ) {
                (Some(from), Some(into)) if from != into => {
                    let written = into.write(from.read(value))?;
                    bytes.extend_from_slice(&written[..into.bytes]);
                }
                _ => bytes.extend_from_slice(value),
            }
        }
        Some(Key::from_bytes(&bytes))
    }

    /// The values of keys of these columns, an array for each of them.
    ///
    /// # Errors
    /// [`TableError::DamagedRow`] if one is not a key of these columns.
    pub(crate) fn decode_keys(
        &self,
        columns: &[usize],
        keys: &[&Key],
    ) -> Result<Vec<ArrayRef>, TableError> {
        let cursors = keys.iter().map(|key| Cursor(key.as_bytes()));
        let mut cursors: Vec<Cursor<'_>> = cursors.collect();
        let mut arrays = Vec::with_capacity(columns.len());
        for at in columns {
            let column = &self.columns[*at];
            let mut sink = Sink::new(&column.plain, cursors.len());
            for (row, cursor) in cursors.iter_mut().enumerate() {
                sink.push(cursor).ok_or_else(|| self.damaged(row, *at))?;
            }
            let plain = sink.finish()?;
            let plain = if column.has_floats { canonical(&plain)? } else { plain };
            let is_plain = column.logical == column.plain;
            arrays.push(if is_plain { plain } else { cast(&plain, &column.logical)? });
        }
        Ok(arrays)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field, Schema};

    use super::super::KeyBuilder;
    use super::*;

    fn codec(types: &[DataType]) -> RowCodec {
        let field = |of: &DataType| Field::new("c", of.clone(), true);
        RowCodec::new(&Arc::new(Schema::new(types.iter().map(field).collect::<Vec<_>>()))).unwrap()
    }

    #[test]
    fn keys_of_whole_numbers_become_keys_of_other_widths() {
        let narrow = codec(&[DataType::Utf8View, DataType::Int16]);
        let wide = codec(&[DataType::Utf8View, DataType::Int64]);
        let unsigned = codec(&[DataType::Utf8View, DataType::UInt32]);
        let both = [0, 1];
        assert!(!narrow.has_same_keys(&both, &wide, &both));
        assert!(narrow.has_same_keys(&both, &narrow, &both));
        let key = |number: &[u8]| {
            let mut builder = KeyBuilder::default();
            builder.bytes(b"text");
            builder.fixed(number);
            builder.finish()
        };
        for number in [0_i16, 1, -1, i16::MIN, i16::MAX] {
            let (short, long) = (key(&number.to_le_bytes()), key(&i64::from(number).to_le_bytes()));
            assert_eq!(narrow.key_as(&short, &both, &wide, &both), Some(long.clone()));
            assert_eq!(wide.key_as(&long, &both, &narrow, &both), Some(short.clone()));
            let as_unsigned = narrow.key_as(&short, &both, &unsigned, &both);
            assert_eq!(as_unsigned.is_some(), number >= 0, "{number}");
        }
        for number in [i64::from(i16::MAX) + 1, i64::MIN] {
            assert_eq!(wide.key_as(&key(&number.to_le_bytes()), &both, &narrow, &both), None);
        }
    }

    #[test]
    fn only_equal_types_and_whole_numbers_are_compared() {
        assert!(is_comparable(&DataType::Int32, &DataType::Int64));
        assert!(is_comparable(&DataType::Decimal128(10, 2), &DataType::Decimal128(38, 2)));
        assert!(!is_comparable(&DataType::Decimal128(10, 2), &DataType::Decimal128(10, 3)));
        assert!(is_comparable(&DataType::Utf8, &DataType::Utf8View));
        assert!(!is_comparable(&DataType::Int32, &DataType::Utf8View));
        assert!(!is_comparable(&DataType::Int32, &DataType::Float64));
    }
}
