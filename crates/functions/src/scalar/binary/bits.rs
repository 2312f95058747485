//! Single bytes and bits of a BLOB.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, ScalarValue};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, bytes};
use crate::scalar::text::texts::entry;

const PLACE: &[Arguments] = &[Arguments::Are(&[Takes::Bytes, Takes::Whole])];
const VALUE: &[Arguments] = &[Arguments::Are(&[Takes::Bytes, Takes::Whole, Takes::Whole])];

fn integer(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int32)
}

/// Returns the index that a call names, checked against the length.
fn index(call: &Call, row: usize, count: usize) -> Result<usize> {
    let index = call.whole(1).value(row);
    match usize::try_from(index).ok().filter(|index| *index < count) {
        Some(index) => Ok(index),
        None => call.fails_as(
            "2202E",
            format_args!("index {index} out of valid range, 0..{}", count as i64 - 1),
        ),
    }
}

fn get_byte(call: &Call) -> Result<ArrayRef> {
    let values = call.bytes(0);
    call.plain::<Int32Type>(|row| {
        let bytes = values.value(row);
        Ok(Some(i32::from(bytes[index(call, row, bytes.len())?])))
    })
}

/// Bits are numbered from the lowest bit of the first byte, as in PostgreSQL.
fn get_bit(call: &Call) -> Result<ArrayRef> {
    let values = call.bytes(0);
    call.plain::<Int32Type>(|row| {
        let bytes = values.value(row);
        let at = index(call, row, bytes.len() * 8)?;
        Ok(Some(i32::from(bytes[at / 8] >> (at % 8) & 1)))
    })
}

fn set_byte(call: &Call) -> Result<ArrayRef> {
    let (values, new) = (call.bytes(0), call.whole(2));
    call.binaries(|row, out| {
        let bytes = values.value(row);
        let at = index(call, row, bytes.len())?;
        out.extend_from_slice(bytes);
        // As in PostgreSQL, the lowest eight bits.
        out[at] = new.value(row) as u8;
        Ok(true)
    })
}

fn set_bit(call: &Call) -> Result<ArrayRef> {
    let (values, new) = (call.bytes(0), call.whole(2));
    call.binaries(|row, out| {
        let bytes = values.value(row);
        let at = index(call, row, bytes.len() * 8)?;
        out.extend_from_slice(bytes);
        match new.value(row) {
            0 => out[at / 8] &= !(1 << (at % 8)),
            1 => out[at / 8] |= 1 << (at % 8),
            _ => return call.fails_as("22023", "new bit must be 0 or 1"),
        }
        Ok(true)
    })
}

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("get_byte" [], "bytes, index", PLACE, integer, "A byte of a BLOB, counted from 0.",
        "get_byte('abc'::BLOB, 1) = 98", get_byte),
    entry!("set_byte" [], "bytes, index, value", VALUE, bytes,
        "A BLOB with another byte at a place, counted from 0.",
        "set_byte('abc'::BLOB, 1, 120) = 'axc'::BLOB", set_byte),
    entry!("get_bit" [], "bytes, index", PLACE, integer,
        "A bit of a BLOB, counted from the lowest one of its first byte.",
        "get_bit('a'::BLOB, 0) = 1", get_bit),
    entry!("set_bit" [], "bytes, index, value", VALUE, bytes,
        "A BLOB with another bit at a place, counted from the lowest one of its first byte.",
        "set_bit('a'::BLOB, 1, 1) = 'c'::BLOB", set_bit),
]];
