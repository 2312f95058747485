//! Many groups: workers deal their rows to pieces by key. Whoever has a piece then aggregates what
//! all workers have for it, in one of the ways of section 4.3 of Li 2013, which are siblings of this
//! file: [`naive`](super::naive), [`ring`](super::ring), [`migrate`](super::migrate) and
//! [`migrate_copy`](super::migrate_copy).

use std::sync::Arc;

use arrow_array::RecordBatch;
use atoll_runtime::TaskContext;
use atoll_topology::Bytes;

use super::feed::{Feed, outside};
use super::input::Input;
use super::lane::Scratch;
use super::packing::{self, Packing};
use super::plan::Plan;
use super::records::{Dealt, Layout, Records};
use super::report::Phase;
use super::table::{Shape, Table};
use super::{Variant, migrate, migrate_copy, naive, ring};
use crate::partition::FanOut;
use crate::{Context, PrimitiveError, hash};

/// How keys are dealt to pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dealing {
    /// By the high bits of their hash.
    Hash,
    /// By range: pieces of `2^shift` words from `min` on.
    Range { min: u64, shift: u32 },
}

/// What the tasks share.
pub(super) struct Partitioned {
    pub(super) plan: Plan,
    pub(super) input: Arc<Input>,
    pub(super) packing: Packing,
    pub(super) layout: Layout,
    /// Groups that are expected in all.
    pub(super) groups: usize,
}

/// Rows of all workers, dealt to pieces.
pub(super) struct Pieces {
    fan_out: FanOut,
    dealing: Dealing,
    /// By worker; none where it got no rows.
    pub(super) dealt: Vec<Option<Dealt>>,
}

/// What came of it: the batches, and the phases that made them.
pub(super) type Made = (Vec<RecordBatch>, Vec<Phase>);

/// Deals, and aggregates in the variant's way.
pub(super) async fn run(
    context: &Context,
    own: &Arc<Partitioned>,
    variant: Variant,
    (dealing, fan_out): (Dealing, FanOut),
) -> Result<Made, PrimitiveError> {
    let mut phases = Vec::new();
    let mut dealt = deal(context, own, (dealing, fan_out), &mut phases).await?;
    if dealt.is_none() {
        // The sample did not show the range: everything is dealt again, by hash.
        own.input.rewind();
        dealt = deal(context, own, (Dealing::Hash, fan_out), &mut phases).await?;
    }
    let pieces = Arc::new(dealt.ok_or_else(outside)?);
    let (batches, more) = match variant {
        Variant::Naive => naive::run(context, own, &pieces).await?,
        Variant::Migrate => migrate::run(context, own, &pieces).await?,
        Variant::MigrateCopy => migrate_copy::run(context, own, &pieces).await?,
        Variant::Auto | Variant::Local | Variant::Ring => ring::run(context, own, &pieces).await?,
    };
    phases.extend(more);
    Ok((batches, phases))
}

/// The rows of all workers by piece; none where a key is outside of the range.
async fn deal(
    context: &Context,
    own: &Arc<Partitioned>,
    (dealing, fan_out): (Dealing, FanOut),
    phases: &mut Vec<Phase>,
) -> Result<Option<Pieces>, PrimitiveError> {
    let (shared, workers) = (Arc::clone(own), context.clone());
    let task = move |_, task: &TaskContext| shared.deal(&workers, task, dealing, fan_out);
    let (dealt, report) = context.on_workers("partition", task).await?;
    phases.push(Phase::of(&report));
    let mut all = Vec::with_capacity(dealt.len());
    for dealt in dealt {
        match dealt {
            OneDealt::Rows(rows) => all.push(rows.map(|rows| *rows)),
            OneDealt::Outside => return Ok(None),
        }
    }
    Ok(Some(Pieces { fan_out, dealing, dealt: all }))
}

/// What one worker dealt.
enum OneDealt {
    Rows(Option<Box<Dealt>>),
    /// A key was outside of the range.
    Outside,
}

impl Dealing {
    /// Pieces of a block's words; false where one is outside.
    fn digits(self, fan_out: FanOut, words: &[u64], digits: &mut Vec<u32>) -> bool {
        digits.clear();
        match self {
            Self::Hash => {
                digits.extend(words.iter().map(|key| fan_out.digit(hash::word(*key)) as u32));
                true
            }
            Self::Range { min, shift } => {
                let mut all = 0;
                digits.extend(words.iter().map(|key| {
                    let digit = key.wrapping_sub(min) >> shift;
                    all |= digit;
                    digit as u32
                }));
                all >> fan_out.bits() == 0
            }
        }
    }
}

impl Partitioned {
    /// One worker's rows by piece.
    fn deal(
        &self,
        context: &Context,
        task: &TaskContext,
        dealing: Dealing,
        fan_out: FanOut,
    ) -> Result<OneDealt, PrimitiveError> {
        let node = task.node();
        let tuning = context.tuning();
        let memory = (context.arena(), Some(node));
        let expected = self.input.rows / context.runtime().worker_count().max(1);
        let mut records: Option<Records> = None;
        let (mut keys, mut lanes) = (packing::Scratch::default(), Vec::<Scratch>::new());
        let mut digits = Vec::new();
        let block_rows = tuning.block_rows.max(1);
        while let Some(morsel) = self.input.take(node) {
            let to = match &mut records {
                Some(records) => records,
                none => {
                    let buffer = tuning.buffer_rows;
                    none.insert(Records::new(&self.layout, fan_out, buffer, expected, memory)?)
                }
            };
            let part = &self.input.parts[morsel.part];
            let key_lanes = part.key_lanes.as_deref().unwrap_or_default();
            let end = morsel.start + morsel.len;
            for start in (morsel.start..end).step_by(block_rows) {
                task.check()?;
                let len = block_rows.min(end - start);
                let words = self.packing.pack(key_lanes, start, len, &mut keys);
                let words = words.map_err(|_| outside())?;
                if !dealing.digits(fan_out, words, &mut digits) {
                    return Ok(OneDealt::Outside);
                }
                let values = Feed::blocks(&mut lanes, &part.lanes, start, len);
                to.push(&digits, words, &values)?;
            }
            let bytes = (morsel.len * self.input.row_bytes) as u64;
            task.count_read(part.home.unwrap_or(node), Bytes(bytes));
        }
        let dealt = records.map(Records::finish).transpose()?;
        Ok(OneDealt::Rows(dealt.map(Box::new)))
    }

    /// A table for a piece, in the memory of the one before where there is one.
    pub(super) fn table(
        &self,
        context: &Context,
        pieces: &Pieces,
        piece: usize,
        (home, kept): (atoll_topology::NodeId, Option<Table>),
    ) -> Result<Table, PrimitiveError> {
        let shape = match pieces.dealing {
            Dealing::Range { min, shift } => {
                Shape::Dense { min: min.wrapping_add((piece as u64) << shift), bits: shift }
            }
            Dealing::Hash => Shape::Hashed { expected: self.groups / pieces.count() },
        };
        if let Some(mut table) = kept {
            let min = if let Shape::Dense { min, .. } = shape { min } else { 0 };
            table.restart(min)?;
            return Ok(table);
        }
        let prefetch = context.tuning().prefetch_rows;
        Ok(Table::new(&self.plan, &shape, prefetch, context.arena(), Some(home))?)
    }
}

impl Pieces {
    /// Number of pieces.
    pub(super) fn count(&self) -> usize {
        self.fan_out.partitions()
    }

    /// Pieces that have rows, with how many, the largest first.
    pub(super) fn by_size(&self) -> Vec<(usize, usize)> {
        let rows = |piece: usize| {
            self.dealt.iter().flatten().map(|dealt| dealt.rows(piece)).sum::<usize>()
        };
        let sized = (0..self.count()).map(|piece| (piece, rows(piece)));
        let mut sized: Vec<(usize, usize)> = sized.filter(|(_, rows)| *rows > 0).collect();
        sized.sort_unstable_by_key(|(piece, rows)| (std::cmp::Reverse(*rows), *piece));
        sized
    }
}
