//! A filter of the build side's keys (a register-blocked Bloom filter: Putze, Sanders, Singler, "Cache-, hash- and
//! space-efficient Bloom filters", 2009): three bits of one word for each key, so that most probe rows without a match
//! are not moved at all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::RunningJoin;
use crate::hash;
use crate::join::Matches;
use crate::join::keys::BlockScratch;
use crate::kernel::shared::AtomicWords;
use crate::kernel::stream::prefetch;
use crate::partition::{FanOut, Pieces};
use crate::work::NumberQueue;
use crate::{Context, PrimitiveError};

/// Keys per word of the filter: eight bits each.
const KEYS_PER_WORD: usize = 8;
/// Minimum ratio of probe rows to keys that makes a filter worth building.
const PROBE_TIMES: usize = 2;
/// Share of passing probe rows above which the filter costs more than it saves: a test takes about half the time of
/// moving and probing a row.
const PASSED_MAX: f64 = 0.6;
/// Rows tested before the filter is used: number of places, and rows at each.
const SAMPLE: (usize, usize) = (64, 256);

/// Contains the keys of the build side and some false positives, but no null.
#[derive(Debug)]
pub(super) struct KeyFilter {
    words: AtomicWords,
    shift: u32,
}

impl KeyFilter {
    fn new(context: &Context, rows: usize, fan_out: FanOut) -> Result<Self, PrimitiveError> {
        let words = (rows / KEYS_PER_WORD).max(fan_out.partitions()).max(2).next_power_of_two();
        let mut memory = context.arena().allocate(None, words * 8)?;
        memory.as_mut_slice().fill(0);
        Ok(Self { words: AtomicWords::new(memory), shift: u64::BITS - words.ilog2() })
    }

    /// Prefetches the word of a hash.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let first = self.words.words().as_ptr();
        prefetch(first.wrapping_add((hash >> self.shift) as usize));
    }

    /// Whether a key with this hash may be present.
    #[inline(always)]
    pub(super) fn passes(&self, hash: u64) -> bool {
        let word = self.words.words()[(hash >> self.shift) as usize].load(Ordering::Relaxed);
        word & bits(hash) == bits(hash)
    }
}

/// The bits of a hash in its word.
#[inline(always)]
fn bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
}

impl<C: Matches + 'static> RunningJoin<'_, C> {
    /// A filter over partitioned keys and the share of probe rows that pass it; None if it does not pay.
    pub(super) async fn filter(
        &mut self,
        pieces: &Arc<Vec<Pieces<2>>>,
        fan_out: FanOut,
    ) -> Result<Option<(Arc<KeyFilter>, f64)>, PrimitiveError> {
        let rows: usize = pieces.iter().map(Pieces::total_rows).sum();
        if self.probe.rows < PROBE_TIMES * rows {
            return Ok(None);
        }
        let filter = self.fill_filter(Arc::clone(pieces), rows, fan_out).await?;
        let (side, sampled) = (Arc::clone(&self.probe), Arc::clone(&filter));
        let sample = self.context.on_workers("sample", move |worker, _| {
            if worker.index() > 0 {
                return Ok(None);
            }
            let (mut passed, mut tried, mut scratch) = (0, 0, BlockScratch::default());
            for part in &side.parts {
                let places = (SAMPLE.0 * part.rows).div_ceil(side.rows.max(1)).max(1);
                for place in 0..places {
                    let start = part.rows / places * place;
                    let block = part.block(start..part.rows.min(start + SAMPLE.1), &mut scratch);
                    let hashes = block.keys.iter().map(|key| hash::word(*key));
                    passed += hashes.filter(|hash| sampled.passes(*hash)).count();
                    tried += block.keys.len() + block.without_key.len();
                }
            }
            Ok(Some(passed as f64 / tried.max(1) as f64))
        });
        let sample = sample.await?;
        let share = self.keep(sample).into_iter().flatten().next().unwrap_or(1.0);
        Ok((share <= PASSED_MAX).then_some((filter, share)))
    }

    /// Pieces have disjoint words in the filter.
    async fn fill_filter(
        &mut self,
        pieces: Arc<Vec<Pieces<2>>>,
        rows: usize,
        fan_out: FanOut,
    ) -> Result<Arc<KeyFilter>, PrimitiveError> {
        let filter = Arc::new(KeyFilter::new(self.context, rows, fan_out)?);
        let numbers = NumberQueue::below(fan_out.partitions());
        let filled = Arc::clone(&filter);
        let step = self.context.on_workers("build filter", move |_, task| {
            let words = filled.words.words();
            while let Some(piece) = numbers.take() {
                task.check()?;
                for [key, _] in pieces.iter().flat_map(|pieces| pieces.blocks(piece)).flatten() {
                    let hash = hash::word(*key);
                    let word = &words[(hash >> filled.shift) as usize];
                    // No other worker writes this word, so a plain read and write are enough.
                    word.store(word.load(Ordering::Relaxed) | bits(hash), Ordering::Relaxed);
                }
            }
            Ok(())
        });
        let step = step.await?;
        self.keep(step);
        Ok(filter)
    }
}
