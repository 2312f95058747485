//! Deleted rows: chunks never change, so a snapshot records which of their rows still exist.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::chunk::BLOCK_ROWS;

/// The deleted rows of one chunk.
#[derive(Clone, Debug)]
pub struct DeletedRows {
    /// For each block the existing rows; `None` if all rows exist.
    live: Vec<Option<BooleanBuffer>>,
    /// Number of rows of the chunk.
    rows: usize,
    count: usize,
}

impl DeletedRows {
    /// A chunk with this number of rows, none deleted.
    pub fn none(rows: usize) -> Self {
        Self { live: vec![None; rows.div_ceil(BLOCK_ROWS)], rows, count: 0 }
    }

    /// The same with these rows deleted too, which are row numbers of the chunk in rising order; only blocks with such
    /// rows are copied.
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

    /// Numbers of the deleted rows in the chunk, in rising order.
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

    /// The existing rows of a block. Returns None if all rows exist.
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
