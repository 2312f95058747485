//! The join of sides that fit no cache: both are partitioned by the hash of their keys, and each piece's table fits a
//! second-level cache.
//!
//! A piece with much of the probe side, because of a hot key, is shared: its table is built first, and all workers
//! probe it block by block.

use std::sync::Arc;

use atoll_runtime::TaskContext;
use atoll_topology::Bytes;

use super::RunningJoin;
use super::filter::KeyFilter;
use super::hand::{Hand, Hands};
use super::probe::{Probed, Same, probe_block};
use crate::hash;
use crate::join::keys::SideBlock;
use crate::join::kind::UnmatchedRows;
use crate::join::{JoinVariant, Matches};
use crate::kernel::stream::prefetch;
use crate::kernel::table::{JoinTable, PROBE_ROWS, ProbeScratch};
use crate::partition::{FanOut, Partitioner, Pieces};
use crate::work::{Chunks, NumberQueue};
use crate::{Context, PrimitiveError};

/// A piece with more than a worker's rows divided by this is shared.
const SHARE_OF_WORKER: usize = 8;
/// Minimum number of rows of a shared piece.
const SHARED_ROWS_MIN: usize = 1 << 18;
/// Maximum number of probe blocks that a worker takes at once from a shared piece.
const TURN_BLOCKS_MAX: usize = 64;

/// Maximum share of [`Tuning::table_bytes`](crate::Tuning) for a piece's table: the probe rows stream through the same
/// cache.
const TABLE_SHARE: usize = 2;
/// Prefetched cache lines of the next block.
const PREFETCH_LINES: usize = 32;

/// The pieces of both sides, by the worker that partitioned them.
struct DealtSides {
    build: Arc<Vec<Pieces<2>>>,
    probe: Arc<Vec<Pieces<2>>>,
}

impl DealtSides {
    fn build_rows(&self, piece: usize) -> usize {
        self.build.iter().map(|pieces| pieces.rows(piece)).sum()
    }

    fn probe_rows(&self, piece: usize) -> usize {
        self.probe.iter().map(|pieces| pieces.rows(piece)).sum()
    }

    /// Counts the bytes of a piece as read by a task.
    fn count_read(&self, piece: usize, task: &TaskContext) {
        for pieces in self.build.iter().chain(self.probe.iter()) {
            if let Some(home) = pieces.home() {
                task.count_read(home, Bytes(16 * pieces.rows(piece) as u64));
            }
        }
    }

    /// A piece's table.
    fn fill(&self, piece: usize, table: &mut JoinTable) {
        table.fill(|| self.build.iter().flat_map(move |pieces| pieces.blocks(piece)));
    }
}

impl<C: Matches + 'static> RunningJoin<'_, C> {
    /// Joins piece by piece; `rows` rows of the build side have a key.
    pub(super) async fn pieces(
        &mut self,
        same: impl Same,
        rows: usize,
    ) -> Result<JoinVariant, PrimitiveError> {
        let tuning = self.context.tuning();
        let near = (tuning.table_bytes / TABLE_SHARE).max(1);
        let fan_out = FanOut::at_least(JoinTable::bytes(rows).div_ceil(near));
        let fan_out = FanOut::of_bits(fan_out.bits().min(tuning.fan_out_bits_max));
        let build = Arc::new(self.deal_build(fan_out).await?);
        let filter = self.filter(&build, fan_out).await?;
        let (filter, passed) = filter.unzip();
        let probe = Arc::new(self.deal_probe(fan_out, filter).await?);
        let dealt = Arc::new(DealtSides { build, probe });
        let small = self.shared_pieces(&dealt, fan_out, &same).await?;
        self.own_pieces(dealt, small, same).await?;
        Ok(JoinVariant::Pieces { pieces: fan_out.partitions(), passed })
    }

    /// Partitions the probe side; filtered rows have no match.
    async fn deal_probe(
        &mut self,
        fan_out: FanOut,
        filter: Option<Arc<KeyFilter>>,
    ) -> Result<Vec<Pieces<2>>, PrimitiveError> {
        let (side, hands) = (Arc::clone(&self.probe), Arc::clone(&self.hands));
        let chunks = Chunks::new(side.lengths(), self.context.tuning().block_rows);
        let context = self.context.clone();
        let expected = side.rows / self.context.runtime().worker_count();
        let pieces = self.context.on_workers("deal probing side", move |_, task| {
            hands.with(task, |hand| {
                let expected = if filter.is_some() { 0 } else { expected };
                let home = Some(task.node());
                let mut partitioner = Partitioner::<2>::new(&context, home, fan_out, expected)?;
                let mut passing = Passing::default();
                side.read(&chunks, task, |block| {
                    hand.probe_rows(block.without_key.iter().map(|payload| (*payload, false)))?;
                    match &filter {
                        None => deal(&mut partitioner, block),
                        Some(filter) => {
                            let keys = block.keys.chunks(PROBE_ROWS);
                            keys.zip(block.payloads.chunks(PROBE_ROWS)).try_for_each(|rows| {
                                deal_passing(&mut partitioner, rows, filter, &mut passing, hand)
                            })
                        }
                    }
                })?;
                partitioner.finish()
            })
        });
        let pieces = pieces.await?;
        Ok(self.keep(pieces))
    }

    /// Joins the pieces that are too large for one worker; returns the numbers of the others.
    async fn shared_pieces(
        &mut self,
        dealt: &Arc<DealtSides>,
        fan_out: FanOut,
        same: &impl Same,
    ) -> Result<Vec<usize>, PrimitiveError> {
        let workers = self.context.runtime().worker_count();
        let all: usize = dealt.probe.iter().map(Pieces::total_rows).sum::<usize>()
            + dealt.build.iter().map(Pieces::total_rows).sum::<usize>();
        let limit = (all / (workers * SHARE_OF_WORKER)).max(SHARED_ROWS_MIN);
        let is_large = |piece: &usize| {
            workers > 1 && dealt.build_rows(*piece) + dealt.probe_rows(*piece) > limit
        };
        let (large, small): (Vec<usize>, Vec<usize>) =
            (0..fan_out.partitions()).partition(is_large);
        for piece in large {
            self.shared_piece(dealt, piece, same).await?;
        }
        Ok(small)
    }

    /// Joins one piece with all workers.
    async fn shared_piece(
        &mut self,
        dealt: &Arc<DealtSides>,
        piece: usize,
        same: &impl Same,
    ) -> Result<(), PrimitiveError> {
        let (context, marked) = (self.context.clone(), self.hands.marked());
        let rows = dealt.build_rows(piece);
        let of = Arc::clone(dealt);
        let tables = self.context.on_workers("build shared piece", move |worker, task| {
            if worker.index() > 0 {
                return Ok(None);
            }
            let mut table = table_for(&context, task, rows, marked)?;
            of.fill(piece, &mut table);
            Ok(Some(table))
        });
        let tables = tables.await?;
        let Some(table) = self.keep(tables).into_iter().flatten().next() else { return Ok(()) };
        let table = Arc::new(table);
        self.probe_shared(dealt, piece, Arc::clone(&table), same.clone()).await?;
        if marked {
            let hands = Arc::clone(&self.hands);
            let marks = self.context.on_workers("marked rows", move |worker, task| {
                if worker.index() > 0 {
                    Ok(())
                } else {
                    hands.with(task, |hand| give_marked(&table, hand))
                }
            });
            let marks = marks.await?;
            self.keep(marks);
        }
        Ok(())
    }

    async fn probe_shared(
        &mut self,
        dealt: &Arc<DealtSides>,
        piece: usize,
        table: Arc<JoinTable>,
        same: impl Same,
    ) -> Result<(), PrimitiveError> {
        let (of, hands) = (Arc::clone(dealt), Arc::clone(&self.hands));
        let near = table.bytes_filled() <= self.context.tuning().table_bytes;
        let blocks: usize = of.probe.iter().map(|pieces| pieces.blocks(piece).count()).sum();
        let workers = self.context.runtime().worker_count();
        let turn_blocks = (blocks / (workers * SHARE_OF_WORKER)).clamp(1, TURN_BLOCKS_MAX);
        let numbers = NumberQueue::below(blocks.div_ceil(turn_blocks));
        let probe = self.context.on_workers("probe shared piece", move |_, task| {
            hands.with(task, |hand| {
                let mut scratch = ProbeScratch::new();
                let probed = if near { Probed::Near(&table) } else { Probed::Far(&table) };
                while let Some(turn) = numbers.take() {
                    let blocks = of.probe.iter().flat_map(|pieces| pieces.blocks(piece));
                    let blocks = blocks.skip(turn * turn_blocks);
                    for block in blocks.take(turn_blocks) {
                        task.check()?;
                        for start in (0..block.len()).step_by(PROBE_ROWS) {
                            probe_block(probed, block, start, &mut scratch, &same, hand)?;
                        }
                    }
                }
                scratch.flush(|build, probe| hand.pairs(build, probe))
            })
        });
        let probe = probe.await?;
        self.keep(probe);
        Ok(())
    }

    /// Joins pieces, each by one worker.
    async fn own_pieces(
        &mut self,
        dealt: Arc<DealtSides>,
        small: Vec<usize>,
        same: impl Same,
    ) -> Result<(), PrimitiveError> {
        let (context, hands) = (self.context.clone(), Arc::clone(&self.hands));
        let numbers = NumberQueue::below(small.len());
        let join = self.context.on_workers("join pieces", move |_, task| {
            hands.with(task, |hand| {
                let mut own =
                    WorkerJoin { context: &context, table: None, scratch: ProbeScratch::new() };
                while let Some(number) = numbers.take() {
                    task.check()?;
                    own.piece(&dealt, small[number], task, &hands, &same, hand)?;
                }
                own.scratch.flush(|build, probe| hand.pairs(build, probe))
            })
        });
        let join = join.await?;
        self.keep(join);
        Ok(())
    }
}

/// Scratch space of a worker that joins pieces.
struct WorkerJoin<'a> {
    context: &'a Context,
    /// The table of the previous piece, reused if it is large enough.
    table: Option<JoinTable>,
    scratch: ProbeScratch,
}

impl WorkerJoin<'_> {
    fn piece<C: Matches>(
        &mut self,
        dealt: &DealtSides,
        piece: usize,
        task: &TaskContext,
        hands: &Hands<C>,
        same: &impl Same,
        hand: &mut Hand<'_, C>,
    ) -> Result<(), PrimitiveError> {
        let rows = dealt.build_rows(piece);
        if rows == 0 && dealt.probe_rows(piece) == 0 {
            return Ok(());
        }
        if self.table.as_ref().is_none_or(|table| table.room() < rows) {
            self.table = None;
            self.table = Some(table_for(self.context, task, rows + rows / 4, hands.marked())?);
        }
        let Some(table) = &mut self.table else { return Ok(()) };
        dealt.fill(piece, table);
        dealt.count_read(piece, task);
        let table = &*table;
        let near = table.bytes_filled() <= self.context.tuning().table_bytes;
        let probed = if near { Probed::Near(table) } else { Probed::Far(table) };
        let mut blocks = dealt.probe.iter().flat_map(|pieces| pieces.blocks(piece)).peekable();
        while let Some(block) = blocks.next() {
            task.check()?;
            if let Some(next) = blocks.peek() {
                prefetch_start(next);
            }
            for start in (0..block.len()).step_by(PROBE_ROWS) {
                probe_block(probed, block, start, &mut self.scratch, same, hand)?;
            }
        }
        if hands.marked() { give_marked(table, hand) } else { Ok(()) }
    }
}

/// Prefetches the first rows of a block: the hardware prefetches the following ones, because they are read
/// sequentially.
fn prefetch_start(block: &[[u64; 2]]) {
    const ROWS_PER_LINE: usize = 4;
    block.iter().step_by(ROWS_PER_LINE).take(PREFETCH_LINES).for_each(|row| prefetch(row));
}

/// A table for this many rows on the task's node.
fn table_for(
    context: &Context,
    task: &TaskContext,
    rows: usize,
    marked: bool,
) -> Result<JoinTable, PrimitiveError> {
    if rows > JoinTable::ROWS_MAX {
        return Err(PrimitiveError::Shape {
            what: "rows with one hash".into(),
            found: rows.to_string(),
            expected: format!("at most {}", JoinTable::ROWS_MAX),
        });
    }
    Ok(JoinTable::new(context.arena(), Some(task.node()), rows, marked)?)
}

fn give_marked<C: Matches>(
    table: &JoinTable,
    hand: &mut Hand<'_, C>,
) -> Result<(), PrimitiveError> {
    hand.build_rows(table.marked_rows().map(|([_, payload], mark)| (*payload, mark)))
}

#[inline]
fn deal(partitioner: &mut Partitioner<2>, block: SideBlock<'_>) -> Result<(), PrimitiveError> {
    let fan_out = partitioner.fan_out();
    partitioner.extend(block.keys.len(), |row| {
        let key = block.keys[row];
        (fan_out.digit(hash::word(key)), [key, block.payloads[row]])
    })
}

/// Partitions the rows that pass the filter. The others have no match.
#[inline]
fn deal_passing<C: Matches>(
    partitioner: &mut Partitioner<2>,
    (keys, payloads): (&[u64], &[u64]),
    filter: &KeyFilter,
    passing: &mut Passing,
    hand: &mut Hand<'_, C>,
) -> Result<(), PrimitiveError> {
    let fan_out = partitioner.fan_out();
    let count = passing.find(keys, filter);
    partitioner.extend(count, |at| {
        let row = passing.rows[at] as usize;
        (fan_out.digit(passing.hashes[row]), [keys[row], payloads[row]])
    })?;
    if hand.probe_alone() == UnmatchedRows::Unmatched {
        let held_back = passing.hashes.iter().zip(payloads);
        let held_back = held_back.filter(|(hash, _)| !filter.passes(**hash));
        hand.probe_rows(held_back.map(|(_, payload)| (*payload, false)))?;
    }
    Ok(())
}

/// Tests rows of a block against the filter.
#[derive(Debug, Default)]
struct Passing {
    hashes: Vec<u64>,
    rows: Vec<u32>,
}

impl Passing {
    /// Stores all hashes, and the rows that pass; returns their number. It prefetches the words of all rows before it
    /// reads the first.
    fn find(&mut self, keys: &[u64], filter: &KeyFilter) -> usize {
        self.hashes.clear();
        self.hashes.extend(keys.iter().map(|key| hash::word(*key)));
        self.hashes.iter().for_each(|hash| filter.prefetch(*hash));
        self.rows.resize(keys.len(), 0);
        let mut count = 0;
        for (row, hash) in self.hashes.iter().enumerate() {
            self.rows[count] = row as u32;
            count += usize::from(filter.passes(*hash));
        }
        count
    }
}
