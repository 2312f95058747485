//! Arrays built from the values of rows.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray,
    LargeStringArray, NullArray, PrimitiveArray, StringArray, downcast_primitive, make_array,
};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, NullBufferBuilder, ScalarBuffer,
};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, FieldRef};

use super::shape::Cursor;

/// An array that is being filled, with one value per row.
#[derive(Debug)]
pub(super) struct Sink {
    data_type: DataType,
    nulls: NullBufferBuilder,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Null,
    Boolean(BooleanBufferBuilder),
    Fixed { width: usize, bytes: MutableBuffer },
    Bytes { bytes: Vec<u8>, ends: Vec<usize> },
    List { ends: Vec<usize>, items: Box<Sink> },
    FixedList { length: usize, items: Box<Sink> },
    Struct(Vec<Sink>),
}

impl Sink {
    /// An empty array of a plain type that has a shape.
    pub(super) fn new(data_type: &DataType, rows: usize) -> Self {
        let items = |field: &FieldRef| Box::new(Self::new(field.data_type(), 0));
        let values = match data_type {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Boolean(BooleanBufferBuilder::new(rows)),
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                Values::List { ends: Vec::with_capacity(rows), items: items(item) }
            }
            DataType::FixedSizeList(item, length) => {
                Values::FixedList { length: *length as usize, items: items(item) }
            }
            DataType::Struct(fields) => {
                Values::Struct(fields.iter().map(|f| Self::new(f.data_type(), rows)).collect())
            }
            DataType::FixedSizeBinary(width) => fixed(*width as usize, rows),
            other => match other.primitive_width() {
                Some(width) => fixed(width, rows),
                None => Values::Bytes { bytes: Vec::new(), ends: Vec::with_capacity(rows) },
            },
        };
        Self { data_type: data_type.clone(), nulls: NullBufferBuilder::new(rows), values }
    }

    /// Takes the next value. Returns None if the bytes are invalid.
    pub(super) fn push(&mut self, from: &mut Cursor<'_>) -> Option<()> {
        match &mut self.values {
            Values::Null => return None,
            Values::Boolean(bits) => bits.append(match from.take(1)?[0] {
                0 => false,
                1 => true,
                _ => return None,
            }),
            Values::Fixed { width, bytes } => bytes.extend_from_slice(from.take(*width)?),
            Values::Bytes { bytes, ends } => {
                bytes.extend(from.bytes()?);
                ends.push(bytes.len());
            }
            Values::List { ends, items } => {
                let count = from.number()?;
                items.push_items(count, from)?;
                ends.push(items.len());
            }
            Values::FixedList { length, items } => items.push_items(*length, from)?,
            Values::Struct(fields) => {
                let presence = from.presence(fields.len())?;
                for (at, field) in fields.iter_mut().enumerate() {
                    field.push_if(presence.has(at), from)?;
                }
            }
        }
        self.nulls.append_non_null();
        Some(())
    }

    /// Takes a NULL.
    pub(super) fn push_null(&mut self) {
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(bits) => bits.append(false),
            Values::Fixed { width, bytes } => bytes.extend_zeros(*width),
            Values::Bytes { bytes, ends } => ends.push(bytes.len()),
            Values::List { ends, items } => ends.push(items.len()),
            Values::FixedList { length, items } => (0..*length).for_each(|_| items.push_null()),
            Values::Struct(fields) => fields.iter_mut().for_each(Self::push_null),
        }
        self.nulls.append_null();
    }

    /// Takes the next value if there is one, else NULL.
    pub(super) fn push_if(&mut self, is_there: bool, from: &mut Cursor<'_>) -> Option<()> {
        if is_there {
            self.push(from)?;
        } else {
            self.push_null();
        }
        Some(())
    }

    fn push_items(&mut self, count: usize, from: &mut Cursor<'_>) -> Option<()> {
        let presence = from.presence(count)?;
        (0..count).try_for_each(|at| self.push_if(presence.has(at), from))
    }

    fn len(&self) -> usize {
        self.nulls.len()
    }

    /// The array. Returns an error if bytes are not text, or if a non-nullable part contains NULL.
    pub(super) fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        let rows = self.len();
        let nulls = self.nulls.finish();
        let data = ArrayData::builder(self.data_type.clone()).len(rows);
        let data = match self.values {
            Values::Null => return Ok(Arc::new(NullArray::new(rows))),
            Values::Boolean(mut bits) => {
                return Ok(Arc::new(BooleanArray::new(bits.finish(), nulls)));
            }
            Values::Bytes { bytes, ends } => {
                return bytes_array(&self.data_type, &bytes, &ends, nulls.as_ref());
            }
            Values::Fixed { bytes, .. } if self.data_type.is_primitive() => {
                return Ok(primitive_array(&self.data_type, bytes, nulls));
            }
            Values::Fixed { bytes, .. } => data.add_buffer(bytes.into()),
            Values::List { ends, items } => {
                let offsets = match self.data_type {
                    DataType::LargeList(_) => offsets::<i64>(&ends)?,
                    _ => offsets::<i32>(&ends)?,
                };
                data.add_buffer(offsets).add_child_data(items.finish()?.to_data())
            }
            Values::FixedList { items, .. } => data.add_child_data(items.finish()?.to_data()),
            Values::Struct(fields) => {
                let fields = fields.into_iter().map(|field| Ok(field.finish()?.to_data()));
                data.child_data(fields.collect::<Result<_, ArrowError>>()?)
            }
        };
        Ok(make_array(data.nulls(nulls).build()?))
    }
}

fn fixed(width: usize, rows: usize) -> Values {
    Values::Fixed { width, bytes: MutableBuffer::with_capacity(width * rows) }
}

fn primitive_array(
    data_type: &DataType,
    bytes: MutableBuffer,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    macro_rules! array {
        ($type:ty) => {{
            let values = ScalarBuffer::from(Buffer::from(bytes));
            let array = PrimitiveArray::<$type>::new(values, nulls);
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    downcast_primitive! {
        data_type => (array),
        other => unreachable!("{other} is not a primitive type"),
    }
}

fn offsets<O: TryFrom<usize> + Default + arrow_buffer::ArrowNativeType>(
    ends: &[usize],
) -> Result<Buffer, ArrowError> {
    let offset = |end: &usize| O::try_from(*end).map_err(|_| ArrowError::OffsetOverflowError(*end));
    let ends = ends.iter().map(offset);
    let all = std::iter::once(Ok(O::default())).chain(ends).collect::<Result<Vec<O>, _>>()?;
    Ok(Buffer::from_vec(all))
}

fn bytes_array(
    data_type: &DataType,
    bytes: &[u8],
    ends: &[usize],
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let mut start = 0;
    let values = ends.iter().enumerate().map(|(row, end)| {
        let value = &bytes[start..*end];
        start = *end;
        nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(value)
    });
    let is_small = i32::try_from(bytes.len()).is_ok();
    Ok(match data_type {
        DataType::Utf8View => Arc::new(values.collect::<BinaryViewArray>().to_string_view()?),
        DataType::BinaryView => Arc::new(values.collect::<BinaryViewArray>()),
        DataType::LargeUtf8 => {
            Arc::new(LargeStringArray::try_from_binary(values.collect::<LargeBinaryArray>())?)
        }
        DataType::LargeBinary => Arc::new(values.collect::<LargeBinaryArray>()),
        _ if !is_small => return Err(ArrowError::OffsetOverflowError(bytes.len())),
        DataType::Utf8 => Arc::new(StringArray::try_from_binary(values.collect::<BinaryArray>())?),
        _ => Arc::new(values.collect::<BinaryArray>()),
    })
}
