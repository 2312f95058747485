//! The layout of an array's part of the body.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::{ArrayData, BufferSpec, layout};
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::data_file::ALIGNMENT;

/// Maximum nesting of arrays that are read: deeper than any type that is read.
const DEPTH_MAX: usize = 80;

/// The sizes of an array's buffers, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrayLayout {
    len: usize,
    has_nulls: bool,
    buffers: Vec<usize>,
    parts: Vec<ArrayLayout>,
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

impl ArrayLayout {
    /// The layout of an array without an offset.
    pub(super) fn from_data(data: &ArrayData) -> Self {
        Self {
            len: data.len(),
            has_nulls: data.nulls().is_some(),
            buffers: data.buffers().iter().map(Buffer::len).collect(),
            parts: data.child_data().iter().map(Self::from_data).collect(),
        }
    }

    /// Writes everything but the number of entries.
    pub(super) fn encode(&self, encoder: &mut Encoder) {
        encoder.flag(self.has_nulls);
        encoder.list(self.buffers.iter(), |encoder, bytes| encoder.count(*bytes));
        encoder.list(self.parts.iter(), |encoder, part| {
            encoder.count(part.len);
            part.encode(encoder);
        });
    }

    /// Reads the layout of an array with this number of entries.
    pub(super) fn decode(decoder: &mut Decoder<'_>, len: usize) -> Result<Self, DecodeError> {
        Self::decode_at(decoder, len, 0)
    }

    fn decode_at(decoder: &mut Decoder<'_>, len: usize, depth: usize) -> Result<Self, DecodeError> {
        if depth > DEPTH_MAX {
            return Err(decoder.error("parts", format!("nested more than {DEPTH_MAX} deep")));
        }
        let has_nulls = decoder.flag("nulls")?;
        let buffers = decoder.list("buffers", |decoder| decoder.size("bytes of a buffer"))?;
        let parts = decoder.list("parts", |decoder| {
            let len = decoder.size("entries of a part")?;
            Self::decode_at(decoder, len, depth + 1)
        })?;
        Ok(Self { len, has_nulls, buffers, parts })
    }

    /// Bytes that it takes in the body. Returns None if they do not fit 64 bits.
    pub(super) fn bytes(&self) -> Option<usize> {
        let nulls = if self.has_nulls { self.len.div_ceil(8) } else { 0 };
        let own = self.buffers.iter().chain([&nulls]).try_fold(0_usize, |sum, bytes| {
            sum.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?)
        });
        self.parts.iter().try_fold(own?, |sum, part| sum.checked_add(part.bytes()?))
    }

    /// The array over its part of the body, with everything verified that the engine relies on.
    pub(super) fn build(&self, of: &DataType, part: &Bytes) -> Result<ArrayRef, ArrowError> {
        if matches!(of, DataType::Union(..) | DataType::RunEndEncoded(..)) {
            return Err(ArrowError::NotYetImplemented(format!("a column of type {of}")));
        }
        let data = self.data(of, part, &mut 0)?;
        Ok(make_array(data))
    }

    fn data(&self, of: &DataType, part: &Bytes, at: &mut usize) -> Result<ArrayData, ArrowError> {
        let mut next = |bytes: usize| {
            let buffer = match bytes {
                0 => MutableBuffer::new(0).into(),
                _ => Buffer::from(part.slice(*at..*at + bytes)),
            };
            *at += padded(bytes);
            buffer
        };
        let nulls = self.has_nulls.then(|| next(self.len.div_ceil(8)));
        let buffers = self.buffers.iter().map(|bytes| next(*bytes)).collect();
        self.check_widths(of)?;
        let types = part_types(of);
        if types.len() != self.parts.len() {
            let reason = format!("{} parts of a column of type {of}", self.parts.len());
            return Err(ArrowError::InvalidArgumentError(reason));
        }
        let parts = self.parts.iter().zip(types);
        let parts =
            parts.map(|(layout, of)| layout.data(of, part, at)).collect::<Result<_, _>>()?;
        ArrayData::try_new(of.clone(), self.len, nulls, 0, buffers, parts)
    }

    /// Refuses buffers that end within a value: Arrow checks only that they are long enough.
    fn check_widths(&self, of: &DataType) -> Result<(), ArrowError> {
        for (spec, bytes) in layout(of).buffers.iter().zip(&self.buffers) {
            if let BufferSpec::FixedWidth { byte_width, .. } = spec
                && *byte_width > 0
                && !bytes.is_multiple_of(*byte_width)
            {
                let reason = format!("a buffer of {bytes} bytes for values of {byte_width}");
                return Err(ArrowError::InvalidArgumentError(reason));
            }
        }
        Ok(())
    }
}

/// The types of the arrays within an array.
fn part_types(of: &DataType) -> Vec<&DataType> {
    match of {
        DataType::List(part)
        | DataType::LargeList(part)
        | DataType::FixedSizeList(part, _)
        | DataType::Map(part, _) => vec![part.data_type()],
        DataType::Struct(parts) => parts.iter().map(|part| part.data_type()).collect(),
        DataType::Dictionary(_, values) => vec![values],
        _ => vec![],
    }
}

/// Hands out the bytes of an array in the order of its layout, padding included.
pub(super) fn for_each_buffer(data: &ArrayData, put: &mut dyn FnMut(&[u8])) {
    static ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];
    let mut padded = |bytes: &[u8]| {
        put(bytes);
        put(&ZEROS[..bytes.len().next_multiple_of(ALIGNMENT) - bytes.len()]);
    };
    if let Some(nulls) = data.nulls() {
        padded(&nulls.inner().sliced().as_slice()[..data.len().div_ceil(8)]);
    }
    data.buffers().iter().for_each(|buffer| padded(buffer));
    data.child_data().iter().for_each(|part| for_each_buffer(part, put));
}
