//! Values of arrays as bytes of rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, StringArray, StringViewArray, downcast_primitive_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::super::column::StoredColumn;

/// The values of a column, ready to be written one by one.
#[derive(Debug)]
pub(in crate::table) struct Source<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

#[derive(Debug)]
enum Values<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Fixed { bytes: &'a [u8], width: usize },
    Narrow { numbers: &'a ArrayRef, width: usize },
    Coded { codes: &'a ArrayRef, values: Box<Source<'a>> },
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    List { offsets: &'a [i32], items: Box<Source<'a>> },
    LargeList { offsets: &'a [i64], items: Box<Source<'a>> },
    FixedList { length: usize, items: Box<Source<'a>> },
    Struct(Vec<Source<'a>>),
}

fn fixed<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Values<'_> {
    Values::Fixed { bytes: array.values().inner().as_slice(), width: size_of::<T::Native>() }
}

impl<'a> Source<'a> {
    /// The values of an array of a plain type, floats in their canonical form.
    pub(in crate::table) fn new(array: &'a ArrayRef) -> Self {
        Self::from_array(array.as_ref())
    }

    fn from_array(array: &'a dyn Array) -> Self {
        let boxed = |items: &'a dyn Array| Box::new(Self::from_array(items));
        let values = downcast_primitive_array!(
            array => fixed(array),
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Utf8 => Values::Utf8(array.as_string()),
            DataType::LargeUtf8 => Values::LargeUtf8(array.as_string()),
            DataType::Utf8View => Values::Utf8View(array.as_string_view()),
            DataType::Binary => Values::Binary(array.as_binary()),
            DataType::LargeBinary => Values::LargeBinary(array.as_binary()),
            DataType::BinaryView => Values::BinaryView(array.as_binary_view()),
            DataType::FixedSizeBinary(width) => {
                let bytes = array.as_fixed_size_binary().value_data();
                Values::Fixed { bytes, width: *width as usize }
            },
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Values::List { offsets: list.value_offsets(), items: boxed(list.values()) }
            },
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                Values::LargeList { offsets: list.value_offsets(), items: boxed(list.values()) }
            },
            DataType::Map(_, _) => {
                let map = array.as_map();
                Values::List { offsets: map.value_offsets(), items: boxed(map.entries()) }
            },
            DataType::FixedSizeList(_, length) => {
                let list = array.as_fixed_size_list();
                Values::FixedList { length: *length as usize, items: boxed(list.values()) }
            },
            DataType::Struct(_) => {
                let fields = array.as_struct().columns().iter();
                Values::Struct(fields.map(|field| Self::from_array(field.as_ref())).collect())
            },
            DataType::Null => Values::Null,
            other => unreachable!("no row codec is made for {other}"),
        );
        Self { nulls: array.nulls(), values }
    }

    /// The values of a column of a block whose logical type is plain.
    pub(in crate::table) fn stored(column: &'a StoredColumn, logical: &DataType) -> Self {
        match column {
            StoredColumn::Plain(array) => Self::new(array),
            StoredColumn::Narrow(numbers) => {
                let width = logical.primitive_width().expect("only numbers are stored narrow");
                Self { nulls: numbers.nulls(), values: Values::Narrow { numbers, width } }
            }
            StoredColumn::Dictionary { codes, values } => Self {
                nulls: codes.nulls(),
                values: Values::Coded { codes, values: Box::new(Self::new(values)) },
            },
        }
    }

    /// Whether the row has a value.
    pub(in crate::table) fn has(&self, row: usize) -> bool {
        !matches!(self.values, Values::Null) && self.nulls.is_none_or(|nulls| nulls.is_valid(row))
    }

    /// Writes the value of a row that has one.
    pub(in crate::table) fn write(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            Values::Null => {}
            Values::Boolean(array) => out.push(array.value(row).into()),
            Values::Fixed { bytes, width } => out.extend(&bytes[row * width..][..*width]),
            Values::Narrow { numbers, width } => write_whole(narrow_at(numbers, row), *width, out),
            Values::Coded { codes, values } => values.write(code_at(codes, row), out),
            Values::Utf8(array) => write_bytes(array.value(row).as_bytes(), out),
            Values::LargeUtf8(array) => write_bytes(array.value(row).as_bytes(), out),
            Values::Utf8View(array) => write_bytes(array.value(row).as_bytes(), out),
            Values::Binary(array) => write_bytes(array.value(row), out),
            Values::LargeBinary(array) => write_bytes(array.value(row), out),
            Values::BinaryView(array) => write_bytes(array.value(row), out),
            Values::List { offsets, items } => {
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                items.write_list(start, end, out);
            }
            Values::LargeList { offsets, items } => {
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                items.write_list(start, end, out);
            }
            Values::FixedList { length, items } => {
                let first = row * length;
                write_present(*length, |at| (items.as_ref(), first + at), out);
            }
            Values::Struct(fields) => write_present(fields.len(), |at| (&fields[at], row), out),
        }
    }

    fn write_list(&self, start: usize, end: usize, out: &mut Vec<u8>) {
        write_number(end - start, out);
        write_present(end - start, |at| (self, start + at), out);
    }
}

/// Writes the null bits of this many values, and the values.
pub(super) fn write_present<'s>(
    count: usize,
    value: impl Fn(usize) -> (&'s Source<'s>, usize),
    out: &mut Vec<u8>,
) {
    let presence = out.len();
    out.resize(presence + count.div_ceil(8), 0);
    for at in 0..count {
        let (source, row) = value(at);
        if source.has(row) {
            out[presence + at / 8] |= 1 << (at % 8);
            source.write(row, out);
        }
    }
}

/// A number in LEB128.
pub(super) fn write_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes, preceded by their number.
pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_number(bytes.len(), out);
    out.extend(bytes);
}

/// A whole number in this many bytes, at most 16.
fn write_whole(value: i64, width: usize, out: &mut Vec<u8>) {
    out.extend(&i128::from(value).to_le_bytes()[..width]);
}

fn narrow_at(numbers: &ArrayRef, row: usize) -> i64 {
    match numbers.data_type() {
        DataType::Int8 => numbers.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => numbers.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => numbers.as_primitive::<Int32Type>().value(row).into(),
        _ => numbers.as_primitive::<Int64Type>().value(row),
    }
}

fn code_at(codes: &ArrayRef, row: usize) -> usize {
    match codes.data_type() {
        DataType::UInt8 => codes.as_primitive::<UInt8Type>().value(row).into(),
        _ => codes.as_primitive::<UInt16Type>().value(row).into(),
    }
}
