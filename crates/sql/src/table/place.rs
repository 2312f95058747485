//! Moving a chunk's columns into memory with a home.
//!
//! All buffers of a chunk lie in one [`NodeBuffer`], each column of each block as an Arrow buffer
//! of its own over its part of it. Slicing one large Arrow buffer instead would charge every reader
//! the whole of it, which misleads join choice and spilling.

use std::ptr::NonNull;
use std::sync::Arc;

use atoll_placement::{Arena, NodeBuffer};
use atoll_topology::NodeId;
use datafusion::arrow::array::{Array, ArrayData, ArrayRef, make_array};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::common::{DataFusionError, Result};

use super::column::Column;
use crate::lab;

/// Alignment of every buffer: a cache line, which is also what Arrow recommends.
const ALIGNMENT: usize = 64;

/// Copies the columns of a chunk (blocks × columns) to a node, or under the task's own policy.
pub(crate) fn place(
    blocks: &[Vec<Column>],
    arena: &Arena,
    home: Option<NodeId>,
) -> Result<(Vec<Vec<Column>>, Arc<NodeBuffer>)> {
    let arrays = distinct_arrays(blocks);
    let data: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
    let bytes: usize = data.iter().map(data_bytes).sum();
    let mut memory = arena
        .allocate(home, bytes.max(ALIGNMENT))
        .map_err(|error| DataFusionError::ResourcesExhausted(error.to_string()))?;
    let mut end = 0;
    let extents: Vec<Extents> =
        data.iter().map(|data| copy_data(data, memory.as_mut_slice(), &mut end)).collect();
    lab::holds_a_table(memory.as_slice());
    let memory = Arc::new(memory);
    let placed: Vec<ArrayRef> = data
        .iter()
        .zip(extents)
        .map(|(data, extents)| make_array(over(data, &mut extents.into_iter(), &memory)))
        .collect();
    Ok((rebuild(blocks, &arrays, &placed), memory))
}

/// Where the buffers of one array lie in the chunk's memory: (offset, length), in visiting order.
type Extents = Vec<(usize, usize)>;

/// Every array of the chunk once: a dictionary is shared by its blocks.
fn distinct_arrays(blocks: &[Vec<Column>]) -> Vec<ArrayRef> {
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        for column in block {
            arrays.push(Arc::clone(column.rows()));
            if let (Column::Dictionary { values, .. }, 0) = (column, index) {
                arrays.push(Arc::clone(values));
            }
        }
    }
    arrays
}

fn rebuild(blocks: &[Vec<Column>], old: &[ArrayRef], new: &[ArrayRef]) -> Vec<Vec<Column>> {
    let find = |array: &ArrayRef| {
        let at = old.iter().position(|candidate| Arc::ptr_eq(candidate, array));
        Arc::clone(&new[at.expect("every array of the chunk was placed")])
    };
    let column = |column: &Column| match column {
        Column::Plain(array) => Column::Plain(find(array)),
        Column::Narrow(array) => Column::Narrow(find(array)),
        Column::Dictionary { codes, values } => {
            Column::Dictionary { codes: find(codes), values: find(values) }
        }
    };
    blocks.iter().map(|block| block.iter().map(column).collect()).collect()
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT)
}

fn null_bits(data: &ArrayData) -> Option<Buffer> {
    data.nulls().map(|nulls| nulls.inner().sliced())
}

fn data_bytes(data: &ArrayData) -> usize {
    let own: usize = data.buffers().iter().map(|buffer| aligned(buffer.len())).sum();
    let nulls = data.nulls().map_or(0, |nulls| aligned(nulls.len().div_ceil(8)));
    own + nulls + data.child_data().iter().map(data_bytes).sum::<usize>()
}

fn copy_data(data: &ArrayData, memory: &mut [u8], end: &mut usize) -> Extents {
    let mut extents = Vec::new();
    let mut copy = |bytes: &[u8]| {
        memory[*end..*end + bytes.len()].copy_from_slice(bytes);
        extents.push((*end, bytes.len()));
        *end += aligned(bytes.len());
    };
    if let Some(bits) = null_bits(data) {
        copy(&bits.as_slice()[..data.len().div_ceil(8)]);
    }
    data.buffers().iter().for_each(|buffer| copy(buffer));
    for child in data.child_data() {
        extents.extend(copy_data(child, memory, end));
    }
    extents
}

/// The same array over the copied buffers.
fn over(
    data: &ArrayData,
    extents: &mut impl Iterator<Item = (usize, usize)>,
    memory: &Arc<NodeBuffer>,
) -> ArrayData {
    let mut next = || {
        let (offset, len) = extents.next().expect("one extent for every buffer");
        buffer(memory, offset, len)
    };
    let nulls = data.nulls().map(|_| NullBuffer::new(BooleanBuffer::new(next(), 0, data.len())));
    let buffers: Vec<Buffer> = data.buffers().iter().map(|_| next()).collect();
    let children = data.child_data().iter().map(|child| over(child, extents, memory)).collect();
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
    // its Arc, and which nobody writes again: place() gave up the only mutable reference.
    unsafe {
        Buffer::from_custom_allocation(NonNull::from(bytes).cast(), len, Arc::clone(memory) as _)
    }
}
