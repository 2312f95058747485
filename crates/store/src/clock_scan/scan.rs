//! The pass of one worker over its chunks.

use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::StringViewArray;
use arrow_array::cast::AsArray;
use arrow_buffer::BooleanBuffer;

use super::batch::{ColumnIndex, QueryBatch};
use super::candidates::{Candidates, keep_live, keep_passing};
use super::gather::{Gather, QueryRows};
use super::query::QueryNumber;
use super::text_index::CodeQueries;
use super::times::{ScanPart, ScanTimes, nanoseconds};
use super::values::{BlockColumn, BlockValues};
use crate::table::{BLOCK_ROWS, Chunk, StoredColumn, TableError, TableSnapshot, Zone};

type Result<T> = std::result::Result<T, TableError>;

/// Statistics of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounts {
    /// Rows of the blocks examined.
    pub rows: u64,
    /// Bytes of the columns under which queries are filed, in blocks that their zones did not exclude.
    pub bytes: u64,
    /// Pairs of a query and a row that its index found.
    pub candidates: u64,
    /// Those pairs that passed all tests.
    pub matches: u64,
    /// Bytes of the values gathered for queries.
    pub gathered: u64,
    /// Time by part.
    pub times: ScanTimes,
}

impl AddAssign for ScanCounts {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.candidates += other.candidates;
        self.matches += other.matches;
        self.gathered += other.gathered;
        self.times += other.times;
    }
}

/// The pass of one worker over its chunks.
#[derive(Debug)]
pub struct BatchScan {
    batch: Arc<QueryBatch>,
    /// Rows that each query may still get; the pass has given it up if there are none left.
    left: Vec<usize>,
    gather: Gather,
    counts: ScanCounts,
    /// Rows whose values hit, of one column of one block.
    hits: Vec<u32>,
    /// Candidates that the indexes found in a block.
    candidates: Candidates,
    /// Pairs of a chunk. A query is filed under one test, so each pair occurs once, and the rows of a query
    /// rise.
    pairs: Vec<(QueryNumber, u32)>,
}

/// A column under which queries are filed, with the matches in the chunk's dictionary.
struct ChunkIndex<'b> {
    index: &'b ColumnIndex,
    codes: Option<CodeQueries>,
}

impl BatchScan {
    /// A pass that gathers at most this many rows for one query: it gives up queries with more.
    pub fn new(batch: Arc<QueryBatch>, rows_max: usize) -> Self {
        let limit = |limit: usize| limit.min(rows_max.saturating_add(1));
        let left = batch.queries.iter().map(|query| limit(query.limit)).collect();
        let gather = Gather::new(Arc::clone(&batch), rows_max);
        let candidates = Candidates::new(batch.len());
        let (counts, hits, pairs) = Default::default();
        Self { batch, left, gather, counts, hits, candidates, pairs }
    }

    /// Stops a query whose client is gone.
    pub fn give_up(&mut self, query: usize) {
        self.left[query] = 0;
    }

    /// Scans a chunk, in one of its copies.
    ///
    /// # Errors
    /// If the rows that were found cannot be decoded.
    pub fn chunk(&mut self, snapshot: &TableSnapshot, number: usize, copy: usize) -> Result<()> {
        let chunk = &snapshot.chunks[number];
        let Some(copy) = chunk.copies.get(copy) else { return Ok(()) };
        let begun = Instant::now();
        let batch = Arc::clone(&self.batch);
        let indexes: Vec<ChunkIndex<'_>> =
            batch.indexes.iter().map(|index| ChunkIndex::new(index, &copy.blocks)).collect();
        self.counts.times.text += nanoseconds(begun.elapsed());
        self.pairs.clear();
        for (at, block) in copy.blocks.iter().enumerate() {
            let live = snapshot.live(number, at);
            if live.is_some_and(|live| live.count_set_bits() == 0) {
                continue;
            }
            BlockScan { scan: self, chunk, block, at, live, columns: Columns::new(block) }
                .run(&indexes);
        }
        self.counts.matches += self.pairs.len() as u64;
        let found = Instant::now();
        self.keep_within_limits();
        self.gather.take(snapshot, number, &copy.blocks, &self.pairs)?;
        self.counts.times.gathering += nanoseconds(found.elapsed());
        self.counts.times.all += nanoseconds(begun.elapsed());
        Ok(())
    }

    /// Drops the rows beyond the limits of queries.
    fn keep_within_limits(&mut self) {
        let left = &mut self.left;
        self.pairs.retain(|(query, _)| {
            let left = &mut left[*query as usize];
            let wanted = *left > 0;
            *left -= usize::from(wanted);
            wanted
        });
    }

    /// The rows of each query, in the order of the batch, and the statistics.
    ///
    /// # Errors
    /// If rows cannot be assembled.
    pub fn finish(self) -> Result<(Vec<QueryRows>, ScanCounts)> {
        let begun = Instant::now();
        let mut counts = self.counts;
        let (rows, gathered) = self.gather.finish()?;
        counts.gathered = gathered;
        counts.times += self.candidates.clock.times;
        let took = nanoseconds(begun.elapsed());
        counts.times.gathering += took;
        counts.times.all += took;
        Ok((rows, counts))
    }
}

impl ColumnIndex {
    /// Whether queries may match rows of a block.
    fn may_find(&self, codes: Option<&CodeQueries>, zone: Option<Zone>) -> bool {
        let text = codes.map_or(!self.text.is_empty(), |codes| !codes.is_empty());
        text || !self.nulls.is_empty() || self.numbers.meets(zone)
    }
}

impl<'b> ChunkIndex<'b> {
    fn new(index: &'b ColumnIndex, blocks: &[Vec<StoredColumn>]) -> Self {
        let dictionary = blocks.first().and_then(|block| dictionary(&block[index.column]));
        Self { index, codes: dictionary.map(|values| index.text.ask(values)) }
    }
}

fn dictionary(column: &StoredColumn) -> Option<&StringViewArray> {
    match column {
        StoredColumn::Dictionary { values, .. } => values.as_string_view_opt(),
        _ => None,
    }
}

/// The columns of a block, made readable on demand.
struct Columns<'a> {
    block: &'a [StoredColumn],
    made: Vec<Option<BlockColumn<'a>>>,
}

impl<'a> Columns<'a> {
    fn new(block: &'a [StoredColumn]) -> Self {
        Self { block, made: block.iter().map(|_| None).collect() }
    }

    fn get(&mut self, column: usize) -> &BlockColumn<'a> {
        let stored = &self.block[column];
        self.made[column].get_or_insert_with(|| BlockColumn::new(stored))
    }
}

struct BlockScan<'s> {
    scan: &'s mut BatchScan,
    chunk: &'s Chunk,
    block: &'s [StoredColumn],
    at: usize,
    live: Option<&'s BooleanBuffer>,
    columns: Columns<'s>,
}

impl BlockScan<'_> {
    fn run(mut self, indexes: &[ChunkIndex<'_>]) {
        let Some(rows) = self.block.first().map(|column| column.rows().len()) else { return };
        self.scan.counts.rows += rows as u64;
        self.scan.candidates.clock.begin();
        for ChunkIndex { index, codes } in indexes {
            let zone = self.chunk.zones[self.at][index.column];
            if !index.may_find(codes.as_ref(), zone) {
                continue;
            }
            let column = self.columns.get(index.column);
            self.scan.counts.bytes += self.chunk.block_bytes[self.at][index.column] as u64;
            let BatchScan { hits, candidates, .. } = &mut *self.scan;
            let part = match (&column.values, codes) {
                (BlockValues::Codes8(..) | BlockValues::Codes16(..), Some(codes)) => {
                    codes.look_up(column, hits, candidates);
                    ScanPart::Text
                }
                (BlockValues::Text(_), _) => {
                    index.text.look_up(column, hits, candidates);
                    ScanPart::Text
                }
                _ => {
                    index.numbers.look_up(column, zone, hits, candidates);
                    ScanPart::Numbers
                }
            };
            candidates.clock.end(part);
            if !index.nulls.is_empty() {
                null_rows(column).for_each(|row| candidates.add(row as u32, &index.nulls));
            }
        }
        let batch = Arc::clone(&self.scan.batch);
        for query in &batch.unfiled {
            self.scan.candidates.add_all(*query, rows as u32);
        }
        self.prove(&batch);
    }

    /// Keeps the candidates whose row exists and passes the other tests of the query.
    fn prove(mut self, batch: &QueryBatch) {
        let first = (self.at * BLOCK_ROWS) as u32;
        let BatchScan { left, counts, candidates, pairs, .. } = &mut *self.scan;
        candidates.drain(|query, rows| {
            counts.candidates += rows.len() as u64;
            if left[query as usize] == 0 {
                return;
            }
            if let Some(live) = self.live {
                keep_live(rows, live);
            }
            for (column, test) in &batch.queries[query as usize].rest {
                if rows.is_empty() {
                    return;
                }
                keep_passing(rows, self.columns.get(*column), test);
            }
            pairs.extend(rows.iter().map(|row| (query, first + row)));
        });
        candidates.clock.end(ScanPart::Proving);
    }
}

fn null_rows<'c>(column: &'c BlockColumn<'_>) -> impl Iterator<Item = usize> + 'c {
    let nulls = column.nulls.into_iter();
    nulls.flat_map(|nulls| (0..nulls.len()).filter(|row| nulls.is_null(*row)))
}
