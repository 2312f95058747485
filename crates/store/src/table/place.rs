//! Moving a chunk's columns into memory with a home.
//!
//! All buffers of a chunk lie in one [`NodeBuffer`], each column of each block as an Arrow buffer
//! of its own over its part of it. Slicing one large Arrow buffer instead would charge every reader
//! the whole of it, which misleads join choice and spilling.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use atoll_placement::{Arena, NodeBuffer, verify_pages_sampled};
use atoll_primitives::{place_arrays, trimmed_data};
use atoll_topology::NodeId;

use super::chunk::ChunkCopy;
use super::column::StoredColumn;
use super::error::TableError;
use super::lab;

impl ChunkCopy {
    /// Copies the columns of a chunk (blocks × columns) to a node, or under the task's own policy.
    pub(crate) fn place(
        blocks: &[Vec<StoredColumn>],
        arena: &Arena,
        wanted: Option<NodeId>,
    ) -> Result<Self, TableError> {
        let (blocks, memory) = place(blocks, arena, wanted)?;
        Ok(Self::over(memory, wanted, blocks, arena))
    }

    /// The copy whose columns are in this memory.
    pub(crate) fn over(
        memory: Arc<NodeBuffer>,
        wanted: Option<NodeId>,
        blocks: Vec<Vec<StoredColumn>>,
        arena: &Arena,
    ) -> Self {
        lab::holds_a_table(memory.as_slice());
        let found = memory.home().or_else(|| most_pages(arena, &memory));
        Self { wanted, found, memory, blocks }
    }
}

/// Copies the columns of a chunk (blocks × columns) to a node, or under the task's own policy.
fn place(
    blocks: &[Vec<StoredColumn>],
    arena: &Arena,
    home: Option<NodeId>,
) -> Result<(Vec<Vec<StoredColumn>>, Arc<NodeBuffer>), TableError> {
    let arrays = distinct_arrays(blocks);
    let data: Vec<ArrayData> = arrays.iter().map(stored_data).collect();
    let (placed, memory) = place_arrays(&data, arena, home)?;
    Ok((rebuild(blocks, &arrays, &placed), memory))
}

/// Pages looked up to find where a chunk without a requested home was placed.
const PAGES_LOOKED_UP: u64 = 16;

fn most_pages(arena: &Arena, memory: &NodeBuffer) -> Option<NodeId> {
    let report =
        verify_pages_sampled(arena.kernel().as_ref(), &[memory.pages()], PAGES_LOOKED_UP).ok()?;
    report.by_node().into_iter().max_by_key(|(_, pages)| *pages).map(|(node, _)| node)
}

/// The contents of an array of a chunk, without values outside the slice: a block cut out of a longer
/// array would otherwise keep all of that.
pub(crate) fn stored_data(array: &ArrayRef) -> ArrayData {
    match array.data_type() {
        // Their text was copied when the block was cut.
        DataType::Utf8View | DataType::BinaryView => array.to_data(),
        _ => trimmed_data(array),
    }
}

/// Every array of the chunk once: a dictionary is shared by its blocks.
fn distinct_arrays(blocks: &[Vec<StoredColumn>]) -> Vec<ArrayRef> {
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        for column in block {
            arrays.push(Arc::clone(column.rows()));
            if let (StoredColumn::Dictionary { values, .. }, 0) = (column, index) {
                arrays.push(Arc::clone(values));
            }
        }
    }
    arrays
}

fn rebuild(
    blocks: &[Vec<StoredColumn>],
    old: &[ArrayRef],
    new: &[ArrayRef],
) -> Vec<Vec<StoredColumn>> {
    let find = |array: &ArrayRef| {
        let at = old.iter().position(|candidate| Arc::ptr_eq(candidate, array));
        Arc::clone(&new[at.expect("every array of the chunk was placed")])
    };
    let column = |column: &StoredColumn| match column {
        StoredColumn::Plain(array) => StoredColumn::Plain(find(array)),
        StoredColumn::Narrow(array) => StoredColumn::Narrow(find(array)),
        StoredColumn::Dictionary { codes, values } => {
            StoredColumn::Dictionary { codes: find(codes), values: find(values) }
        }
    };
    blocks.iter().map(|block| block.iter().map(column).collect()).collect()
}
