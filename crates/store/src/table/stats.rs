//! Statistics of a chunk: computed from its columns in memory, loaded or read from a file.

use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::{DataType, Schema};
use atoll_topology::NodeId;

use super::bounds::bounds;
use super::chunk::{Chunk, ChunkCopy, ColumnStats, rising, zone};
use super::column::StoredColumn;
use super::error::TableError;

impl Chunk {
    /// A chunk with these copies, at least one.
    pub(crate) fn new(
        schema: &Schema,
        rows: usize,
        owner: Option<NodeId>,
        copies: Vec<ChunkCopy>,
    ) -> Result<Self, TableError> {
        let blocks = &copies[0].blocks;
        let of_column = |(at, field): (usize, &Arc<arrow_schema::Field>)| {
            let column: Vec<StoredColumn> = blocks.iter().map(|block| block[at].clone()).collect();
            column_stats(&column, field.data_type())
        };
        let stats = schema.fields().iter().enumerate().map(of_column).collect::<Result<_, _>>()?;
        let zones = blocks.iter().map(|block| block.iter().map(zone).collect()).collect();
        let block_bytes =
            blocks.iter().map(|block| block.iter().map(StoredColumn::bytes).collect());
        let block_bytes = block_bytes.collect();
        Ok(Self { rows, owner, copies, stats, zones, block_bytes })
    }
}

fn column_stats(blocks: &[StoredColumn], logical: &DataType) -> Result<ColumnStats, TableError> {
    let (mut bytes, mut distinct) = (0, None);
    for (index, block) in blocks.iter().enumerate() {
        bytes += block.bytes();
        if let (StoredColumn::Dictionary { values, .. }, 0) = (block, index) {
            bytes += StoredColumn::Plain(Arc::clone(values)).bytes();
            distinct = Some(values.len());
        }
    }
    Ok(ColumnStats {
        bounds: bounds(blocks, logical)?,
        nulls: blocks.iter().map(|block| block.rows().null_count()).sum(),
        bytes,
        distinct,
        rising: rising(blocks.iter()),
        encoding: blocks.first().map_or_else(String::new, encoding),
    })
}

fn encoding(column: &StoredColumn) -> String {
    match column {
        StoredColumn::Plain(_) => "plain".to_owned(),
        StoredColumn::Narrow(array) => format!("narrow {}", array.data_type()),
        StoredColumn::Dictionary { codes, .. } => format!("dictionary {}", codes.data_type()),
    }
}
