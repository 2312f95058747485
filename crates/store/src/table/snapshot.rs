//! The contents of a table at one moment: pinned when a query is planned, never changed afterwards.

use std::sync::{Arc, OnceLock};

use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;

use super::bounds::{Bounds, merge};
use super::chains::RisingColumn;
use super::chunk::{BLOCK_ROWS, Chunk, whole_number_at};
use super::deleted::DeletedRows;
use super::row_ids::RowIds;

/// The chunks of a table in the order of its rows.
#[derive(Debug)]
pub struct TableSnapshot {
    /// Types as stored.
    pub schema: SchemaRef,
    /// Chunks, shared with older and newer snapshots.
    pub chunks: Vec<Arc<Chunk>>,
    /// For each chunk its deleted rows; `None` if there are none.
    pub deleted: Vec<Option<Arc<DeletedRows>>>,
    /// Number of existing rows.
    pub rows: usize,
    /// Ids of the rows of each chunk.
    ids: Vec<RowIds>,
    /// Columns whose values never fall along a few chains of chunks, computed on demand.
    rising: OnceLock<Vec<RisingColumn>>,
    /// For each column, computed on demand.
    bounds: Vec<OnceLock<Option<Bounds>>>,
}

/// A chunk of a snapshot.
#[derive(Debug)]
pub(super) struct SnapshotPart {
    pub(super) chunk: Arc<Chunk>,
    pub(super) deleted: Option<Arc<DeletedRows>>,
    pub(super) ids: RowIds,
}

impl TableSnapshot {
    /// A snapshot of these parts, in order.
    pub(super) fn of_parts(schema: SchemaRef, parts: Vec<SnapshotPart>) -> Self {
        let ids = parts.iter().map(|part| part.ids.clone()).collect();
        let parts = parts.into_iter().map(|part| (part.chunk, part.deleted));
        let (chunks, deleted) = parts.unzip();
        Self { ids, ..Self::with_deleted(schema, chunks, deleted) }
    }

    /// A snapshot of these chunks.
    pub fn new(schema: SchemaRef, chunks: Vec<Arc<Chunk>>) -> Self {
        let deleted = vec![None; chunks.len()];
        Self::with_deleted(schema, chunks, deleted)
    }

    fn with_deleted(
        schema: SchemaRef,
        chunks: Vec<Arc<Chunk>>,
        deleted: Vec<Option<Arc<DeletedRows>>>,
    ) -> Self {
        let all: usize = chunks.iter().map(|chunk| chunk.rows).sum();
        let gone: usize = deleted.iter().flatten().map(|deleted| deleted.count()).sum();
        let rows = all - gone;
        let bounds = schema.fields().iter().map(|_| OnceLock::new()).collect();
        let (ids, rising) = (Vec::new(), OnceLock::new());
        Self { schema, chunks, deleted, rows, ids, rising, bounds }
    }

    /// Ids of the rows of a chunk, of a table whose rows have ids: the snapshot is the view of a
    /// [`TableVersion`](super::TableVersion).
    pub fn row_ids(&self, chunk: usize) -> &RowIds {
        &self.ids[chunk]
    }

    /// Columns whose values never fall from the first row to the last.
    pub fn rising(&self) -> impl Iterator<Item = usize> + '_ {
        let whole = self.rising_columns().iter().filter(|rising| rising.is_whole());
        whole.map(|rising| rising.column)
    }

    /// Columns whose values never fall along a few chains of chunks, those with the fewest chains first.
    pub fn rising_columns(&self) -> &[RisingColumn] {
        self.rising.get_or_init(|| {
            let columns = 0..self.schema.fields().len();
            let rising =
                columns.filter_map(|column| RisingColumn::from_chunks(&self.chunks, column));
            let mut rising: Vec<RisingColumn> = rising.collect();
            rising.sort_by_key(|rising| rising.chains.len());
            rising
        })
    }

    /// Number of deleted rows of its chunks.
    pub fn deleted_rows(&self) -> usize {
        self.deleted.iter().flatten().map(|deleted| deleted.count()).sum()
    }

    /// Whether rows of its chunks are deleted: statistics of chunks are then bounds, not exact.
    pub fn has_deleted(&self) -> bool {
        self.deleted.iter().any(Option::is_some)
    }

    /// The existing rows of a block. Returns None if all rows exist.
    pub fn live(&self, chunk: usize, block: usize) -> Option<&BooleanBuffer> {
        self.deleted[chunk].as_ref()?.live(block)
    }

    /// Size of its chunks in memory, in bytes, copies included.
    pub fn memory_bytes(&self) -> usize {
        let copies = self.chunks.iter().flat_map(|chunk| &chunk.copies);
        copies.map(|copy| copy.memory.len()).sum()
    }

    /// Number of existing rows of a chunk.
    pub fn live_rows(&self, chunk: usize) -> usize {
        let gone = self.deleted[chunk].as_ref().map_or(0, |deleted| deleted.count());
        self.chunks[chunk].rows - gone
    }

    /// The value of a rising column at a row of some chunks, counting existing rows only.
    pub fn whole_number_at(&self, column: usize, chunks: &[usize], mut row: usize) -> Option<i64> {
        for number in chunks.iter().copied() {
            let (chunk, rows) = (&self.chunks[number], self.live_rows(number));
            if row >= rows {
                row -= rows;
                continue;
            }
            for (at, block) in chunk.copies.first()?.blocks.iter().enumerate() {
                let rows = BLOCK_ROWS.min(chunk.rows - at * BLOCK_ROWS);
                let live = self.live(number, at);
                let there = live.map_or(rows, BooleanBuffer::count_set_bits);
                if row < there {
                    let row = live.map_or(Some(row), |live| live.set_indices().nth(row))?;
                    return whole_number_at(&block[column], row);
                }
                row -= there;
            }
        }
        None
    }

    /// Smallest and largest value of a column, deleted rows included. Returns None without values, and for types
    /// without an order.
    pub fn bounds(&self, column: usize) -> Option<&Bounds> {
        self.bounds[column].get_or_init(|| self.merged_bounds(column)).as_ref()
    }

    fn merged_bounds(&self, column: usize) -> Option<Bounds> {
        let stats = || self.chunks.iter().map(|chunk| &chunk.stats[column]);
        // A chunk of a type without an order has values but no bounds: then the column has none.
        let is_known = self.chunks.iter().all(|chunk| {
            let stats = &chunk.stats[column];
            stats.bounds.is_some() || stats.nulls == chunk.rows
        });
        is_known.then(|| merge(stats().filter_map(|stats| stats.bounds.as_ref())))?
    }
}
