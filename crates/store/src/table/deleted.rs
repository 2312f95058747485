//! Rows that are deleted: chunks never change, so a snapshot says which of their rows are still there.
//!
//! | type | what |
//! |---|---|
//! | [`DeletedRows`] | the rows of one chunk that are gone, block by block |
//! | [`Deletion`] | the rows of a snapshot that a statement is about to delete |

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::chunk::{BLOCK_ROWS, Chunk};
use super::snapshot::TableSnapshot;

/// Where a row is in a snapshot: the number of its chunk, and its number in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPosition(u64);

impl RowPosition {
    /// The position of a row of a chunk.
    pub fn new(chunk: usize, row: usize) -> Self {
        Self((chunk as u64) << 32 | row as u64)
    }

    /// The position in one number.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The position that [`bits`](Self::bits) gave.
    pub fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Number of the chunk.
    pub fn chunk(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Number of the row in the chunk.
    pub fn row(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// The rows of one chunk that are deleted.
#[derive(Clone, Debug)]
pub struct DeletedRows {
    /// Of each block the rows that are there; none where all are.
    live: Vec<Option<BooleanBuffer>>,
    /// Rows of the chunk.
    rows: usize,
    count: usize,
}

impl DeletedRows {
    /// The rows whose bit is set, of all rows of a chunk.
    fn new(deleted: &BooleanBuffer) -> Self {
        let blocks = (0..deleted.len()).step_by(BLOCK_ROWS).map(|start| {
            let block = deleted.slice(start, BLOCK_ROWS.min(deleted.len() - start));
            (block.count_set_bits() > 0).then(|| !&block)
        });
        Self { live: blocks.collect(), rows: deleted.len(), count: deleted.count_set_bits() }
    }

    /// No deleted rows yet of a chunk of so many rows.
    pub fn none(rows: usize) -> Self {
        Self { live: vec![None; rows.div_ceil(BLOCK_ROWS)], rows, count: 0 }
    }

    /// The same and these rows, which are rising numbers of rows of the chunk; only the blocks that they
    /// are in are copied.
    pub fn with(&self, more: &[u32]) -> Self {
        let mut live = self.live.clone();
        let block_of = |row: &u32| *row as usize / BLOCK_ROWS;
        let mut count = self.count;
        for rows in more.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let block = block_of(&rows[0]);
            let len = BLOCK_ROWS.min(self.rows - block * BLOCK_ROWS);
            let before = live[block].take();
            let mut bits = BooleanBufferBuilder::new(len);
            match &before {
                Some(before) => bits.append_buffer(before),
                None => bits.append_n(len, true),
            }
            for row in rows {
                let row = *row as usize % BLOCK_ROWS;
                count += usize::from(bits.get_bit(row));
                bits.set_bit(row, false);
            }
            live[block] = Some(bits.finish());
        }
        Self { live, rows: self.rows, count }
    }

    /// Numbers of the deleted rows in the chunk, rising.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        let in_block = |(block, live): (usize, &Option<BooleanBuffer>)| {
            let gone = live.as_ref().map(|live| !live);
            let first = block * BLOCK_ROWS;
            let rows: Vec<u32> = gone
                .iter()
                .flat_map(|gone| gone.set_indices())
                .map(|row| (first + row) as u32)
                .collect();
            rows
        };
        self.live.iter().enumerate().flat_map(in_block)
    }

    /// The rows of a block that are there; none where all are.
    pub fn live(&self, block: usize) -> Option<&BooleanBuffer> {
        self.live[block].as_ref()
    }

    /// Number of deleted rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether a row of the chunk is deleted.
    pub fn is_deleted(&self, row: usize) -> bool {
        self.live[row / BLOCK_ROWS].as_ref().is_some_and(|live| !live.value(row % BLOCK_ROWS))
    }
}

/// Rows of a snapshot that a statement is about to delete, each once.
#[derive(Debug)]
pub struct Deletion {
    snapshot: Arc<TableSnapshot>,
    chunks: BTreeMap<usize, BooleanBufferBuilder>,
    count: usize,
}

impl Deletion {
    /// No rows yet of this snapshot.
    pub fn new(snapshot: Arc<TableSnapshot>) -> Self {
        Self { snapshot, chunks: BTreeMap::new(), count: 0 }
    }

    /// Adds a row that the snapshot has; false where it was added before.
    pub fn add(&mut self, position: RowPosition) -> bool {
        let chunk = &self.snapshot.chunks[position.chunk()];
        let rows = self.chunks.entry(position.chunk()).or_insert_with(|| {
            let mut rows = BooleanBufferBuilder::new(chunk.rows);
            rows.append_n(chunk.rows, false);
            rows
        });
        let is_new = !rows.get_bit(position.row());
        rows.set_bit(position.row(), true);
        self.count += usize::from(is_new);
        is_new
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The chunks with rows to delete: each as it is in the snapshot, and the rows that are gone then.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (ChunkState, DeletedRows)> {
        self.chunks.iter().map(|(at, rows)| {
            let before = &self.snapshot.deleted[*at];
            let mut deleted = BooleanBufferBuilder::new(rows.len());
            (0..rows.len()).for_each(|row| {
                let was = before.as_ref().is_some_and(|before| before.is_deleted(row));
                deleted.append(was || rows.get_bit(row));
            });
            let state = (Arc::clone(&self.snapshot.chunks[*at]), before.clone());
            (state, DeletedRows::new(&deleted.finish()))
        })
    }
}

/// A chunk, and which of its rows are deleted.
pub(super) type ChunkState = (Arc<Chunk>, Option<Arc<DeletedRows>>);
