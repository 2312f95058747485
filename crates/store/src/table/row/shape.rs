//! The encoding of the values of a type in a row.

use arrow_cast::can_cast_types;
use arrow_schema::{DataType, Field, FieldRef};
use std::sync::Arc;

/// The encoding of a value in a row.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// No bytes: always NULL.
    Null,
    Boolean,
    /// A fixed number of bytes.
    Fixed(usize),
    /// Preceded by their number.
    Bytes,
    List(Box<Shape>),
    FixedList(usize, Box<Shape>),
    Struct(Vec<Shape>),
}

/// The type in which values of this type are written and read: without dictionaries and runs, which are
/// encodings of the same values.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    let part = |field: &FieldRef| -> FieldRef {
        let plain = plain_type(field.data_type());
        Arc::new(Field::clone(field).with_data_type(plain))
    };
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        DataType::List(item) | DataType::ListView(item) => DataType::List(part(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(part(item))
        }
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(part(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(part(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(part).collect()),
        other => other.clone(),
    }
}

/// Whether values can be converted from one type to the other and back.
pub(super) fn can_convert(one: &DataType, other: &DataType) -> bool {
    one == other || (can_cast_types(one, other) && can_cast_types(other, one))
}

impl Shape {
    /// The shape of a plain type. Returns None if a row cannot hold it.
    pub(super) fn try_from_type(plain: &DataType) -> Option<Self> {
        let of_field = |field: &FieldRef| Self::try_from_type(field.data_type());
        Some(match plain {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Boolean,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Bytes,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Bytes,
            DataType::FixedSizeBinary(width) => Self::Fixed(usize::try_from(*width).ok()?),
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                Self::List(Box::new(of_field(item)?))
            }
            DataType::FixedSizeList(item, length) => {
                Self::FixedList(usize::try_from(*length).ok()?, Box::new(of_field(item)?))
            }
            DataType::Struct(fields) => {
                Self::Struct(fields.iter().map(of_field).collect::<Option<_>>()?)
            }
            other => Self::Fixed(other.primitive_width()?),
        })
    }
}

/// The rest of a row that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

/// Null bits of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presence<'a>(&'a [u8]);

impl Presence<'_> {
    pub(super) fn has(self, at: usize) -> bool {
        self.0[at / 8] & (1 << (at % 8)) != 0
    }
}

impl<'a> Cursor<'a> {
    /// The next bytes. Returns None if there are fewer.
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn presence(&mut self, values: usize) -> Option<Presence<'a>> {
        let bits = self.take(values.div_ceil(8))?;
        let unused = values % 8;
        let is_clean = unused == 0 || bits.last().is_none_or(|last| last >> unused == 0);
        is_clean.then_some(Presence(bits))
    }

    /// A number in LEB128, of at most five bytes.
    pub(super) fn number(&mut self) -> Option<usize> {
        let mut number = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(number).ok().filter(|n| u32::try_from(*n).is_ok());
            }
        }
        None
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    /// Skips a value.
    pub(super) fn skip(&mut self, shape: &Shape) -> Option<()> {
        match shape {
            Shape::Null => return None,
            Shape::Boolean => drop(self.take(1)?),
            Shape::Fixed(width) => drop(self.take(*width)?),
            Shape::Bytes => drop(self.bytes()?),
            Shape::List(item) => {
                let items = self.number()?;
                self.skip_items(items, |_| item)?;
            }
            Shape::FixedList(items, item) => self.skip_items(*items, |_| item)?,
            Shape::Struct(fields) => self.skip_items(fields.len(), |at| &fields[at])?,
        }
        Some(())
    }

    fn skip_items<'s>(&mut self, items: usize, shape: impl Fn(usize) -> &'s Shape) -> Option<()> {
        let presence = self.presence(items)?;
        (0..items).filter(|at| presence.has(*at)).try_for_each(|at| self.skip(shape(at)))
    }
}
