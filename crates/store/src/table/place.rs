//! Moving a chunk's columns into memory with a home.
//!
//! All buffers of a chunk lie in one [`NodeBuffer`], each column of each block as an Arrow buffer
//! of its own over its part of it. Slicing one large Arrow buffer instead would charge every reader
//! the whole of it, which misleads join choice and spilling.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_data::ArrayData;
use atoll_placement::{Arena, NodeBuffer};
use atoll_primitives::place_arrays;
use atoll_topology::NodeId;

use super::column::StoredColumn;
use super::error::TableError;
use super::lab;

/// Copies the columns of a chunk (blocks × columns) to a node, or under the task's own policy.
pub(super) fn place(
    blocks: &[Vec<StoredColumn>],
    arena: &Arena,
    home: Option<NodeId>,
) -> Result<(Vec<Vec<StoredColumn>>, Arc<NodeBuffer>), TableError> {
    let arrays = distinct_arrays(blocks);
    let data: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
    let (placed, memory) = place_arrays(&data, arena, home)?;
    lab::holds_a_table(memory.as_slice());
    Ok((rebuild(blocks, &arrays, &placed), memory))
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
