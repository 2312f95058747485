//! Copies Arrow arrays into memory with a home.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use atoll_placement::{Arena, NodeBuffer, PlacementError};
use atoll_topology::{Bytes, NodeId};

use super::copy;
use crate::PrimitiveError;

/// Alignment of every buffer: a cache line, which is also what Arrow recommends.
const ALIGNMENT: usize = 64;

/// Copies the visible values of arrays into one buffer on a node, bypassing the caches; returns its size as well.
pub(crate) fn placed(
    arrays: &[ArrayRef],
    arena: &Arena,
    home: NodeId,
) -> Result<(Vec<ArrayRef>, Bytes), PrimitiveError> {
    let cut: Vec<ArrayData> = arrays.iter().map(cut_array).collect();
    let (arrays, _) = copied(&cut, arena, Some(home), copy::past_caches)?;
    Ok((arrays, Bytes(cut.iter().map(bytes).sum::<usize>() as u64)))
}

/// Copies arrays into one buffer on a node, or under the task's own policy. Each Arrow buffer covers only its part of
/// that memory: a slice of a large buffer would be charged with all of it.
pub fn place_arrays(
    arrays: &[ArrayData],
    arena: &Arena,
    home: Option<NodeId>,
) -> Result<(Vec<ArrayRef>, Arc<NodeBuffer>), PlacementError> {
    copied(arrays, arena, home, |from, to| to.copy_from_slice(from))
}

fn copied(
    arrays: &[ArrayData],
    arena: &Arena,
    home: Option<NodeId>,
    copy: fn(&[u8], &mut [u8]),
) -> Result<(Vec<ArrayRef>, Arc<NodeBuffer>), PlacementError> {
    let bytes: usize = arrays.iter().map(bytes).sum();
    let mut memory = arena.allocate(home, bytes.max(ALIGNMENT))?;
    let mut end = 0;
    arrays.iter().for_each(|data| write(data, memory.as_mut_slice(), &mut end, copy));
    let memory = Arc::new(memory);
    let mut start = 0;
    let arrays = arrays.iter().map(|data| make_array(over(data, &memory, &mut start))).collect();
    Ok((arrays, memory))
}

/// The data of an array without invisible values, and so without an offset.
pub fn trimmed_data(array: &ArrayRef) -> ArrayData {
    cut_array(array)
}

fn cut_array(array: &ArrayRef) -> ArrayData {
    match array.data_type() {
        // Views of short strings may keep buffers of long ones alive.
        DataType::Utf8View => cut(&array.as_string_view().gc().to_data()),
        DataType::BinaryView => cut(&array.as_binary_view().gc().to_data()),
        _ => cut(&array.to_data()),
    }
}

/// The array without invisible values: bits before an offset, values outside of the range of its offsets.
fn cut(data: &ArrayData) -> ArrayData {
    match data.data_type() {
        DataType::Boolean => {
            let bits = BooleanBuffer::new(data.buffers()[0].clone(), data.offset(), data.len());
            rebuilt(data, 0, vec![bits.sliced()], vec![])
        }
        DataType::Utf8 | DataType::Binary => cut_values::<i32>(data),
        DataType::LargeUtf8 | DataType::LargeBinary => cut_values::<i64>(data),
        DataType::List(_) | DataType::Map(..) => cut_child::<i32>(data),
        DataType::LargeList(_) => cut_child::<i64>(data),
        _ => {
            let children = data
                .child_data()
                .iter()
                .map(|child| cut_array(&make_array(child.clone())))
                .collect();
            rebuilt(data, data.offset(), data.buffers().to_vec(), children)
        }
    }
}

fn cut_values<O: ArrowNativeType>(data: &ArrayData) -> ArrayData {
    let (offsets, first, len) = from_zero::<O>(data);
    rebuilt(data, 0, vec![offsets, data.buffers()[1].slice_with_length(first, len)], vec![])
}

fn cut_child<O: ArrowNativeType>(data: &ArrayData) -> ArrayData {
    let (offsets, first, len) = from_zero::<O>(data);
    rebuilt(
        data,
        0,
        vec![offsets],
        vec![cut_array(&make_array(data.child_data()[0].clone()).slice(first, len))],
    )
}

/// Offsets rebased to zero, their original start, and the length they cover.
fn from_zero<O: ArrowNativeType>(data: &ArrayData) -> (Buffer, usize, usize) {
    if data.buffers()[0].is_empty() {
        return (Buffer::from_vec(vec![O::default()]), 0, 0);
    }
    let offsets = &data.buffer::<O>(0)[..=data.len()];
    let (first, last) = (offsets[0].as_usize(), offsets[data.len()].as_usize());
    let moved = offsets.iter().map(|offset| O::usize_as(offset.as_usize() - first));
    (Buffer::from_vec(moved.collect::<Vec<O>>()), first, last - first)
}

fn rebuilt(
    data: &ArrayData,
    offset: usize,
    buffers: Vec<Buffer>,
    children: Vec<ArrayData>,
) -> ArrayData {
    let builder = ArrayData::builder(data.data_type().clone())
        .len(data.len())
        .offset(offset)
        .nulls(data.nulls().cloned())
        .buffers(buffers)
        .child_data(children);
    // SAFETY: the array is valid, and only values that no row refers to are cut from its buffers and children; offsets
    // are reduced by the number of values cut in front of them.
    unsafe { builder.build_unchecked() }
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT)
}

/// Space that an array needs.
fn bytes(data: &ArrayData) -> usize {
    let own: usize = data.buffers().iter().map(|buffer| aligned(buffer.len())).sum();
    let nulls = data.nulls().map_or(0, |nulls| aligned(nulls.len().div_ceil(8)));
    own + nulls + data.child_data().iter().map(bytes).sum::<usize>()
}

/// Writes the buffers of an array one after another.
fn write(data: &ArrayData, memory: &mut [u8], end: &mut usize, copy: fn(&[u8], &mut [u8])) {
    let mut put = |bytes: &[u8]| {
        copy(bytes, &mut memory[*end..*end + bytes.len()]);
        *end += aligned(bytes.len());
    };
    if let Some(nulls) = data.nulls() {
        put(&nulls.inner().sliced().as_slice()[..data.len().div_ceil(8)]);
    }
    data.buffers().iter().for_each(|buffer| put(buffer));
    data.child_data().iter().for_each(|child| write(child, memory, end, copy));
}

/// The array over the written buffers.
fn over(data: &ArrayData, memory: &Arc<NodeBuffer>, start: &mut usize) -> ArrayData {
    let mut next = |len: usize| {
        let part = buffer(memory, *start, len);
        *start += aligned(len);
        part
    };
    let bits = data.nulls().map(|_| next(data.len().div_ceil(8)));
    let nulls = bits.map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, data.len())));
    let buffers: Vec<Buffer> = data.buffers().iter().map(|buffer| next(buffer.len())).collect();
    let children = data.child_data().iter().map(|child| over(child, memory, start)).collect();
    let builder = ArrayData::builder(data.data_type().clone())
        .len(data.len())
        .offset(data.offset())
        .nulls(nulls)
        .buffers(buffers)
        .child_data(children);
    // SAFETY: type, length, offset and the contents of every buffer are those of a valid array.
    unsafe { builder.build_unchecked() }
}

fn buffer(memory: &Arc<NodeBuffer>, offset: usize, len: usize) -> Buffer {
    let bytes = &memory.as_slice()[offset..offset + len];
    // SAFETY: the range lies within the memory, which the buffer keeps alive through the clone of
    // its Arc, and which is not written again: `copied` gave up the only mutable reference.
    unsafe {
        Buffer::from_custom_allocation(NonNull::from(bytes).cast(), len, Arc::clone(memory) as _)
    }
}
