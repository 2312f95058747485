//! The paper's experiment (section 4.1): pieces of 64-bit integers, of which each worker computes the mean.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atoll_placement::NodeBuffer;
use atoll_runtime::{TaskContext, WorkerId};
use atoll_topology::{Bytes, NodeId};

use super::{Moved, Schedule, ShuffleReport, Shuffled};
use crate::kernel::{copy, words};
use crate::{Context, PrimitiveError, hash};

/// Tuning blocks between two cancellation checks: reading is faster than any other work on rows.
const BLOCKS_UNCHECKED: usize = 8;

/// Integers of N workers, with N pieces of each worker in one buffer on its node. Clones share them.
#[derive(Clone, Debug)]
pub struct Integers {
    held: Arc<[NodeBuffer]>,
    /// Integers of each worker.
    counts: Arc<[usize]>,
}

/// Space for all pieces, on their recipients' nodes.
#[derive(Clone, Debug)]
pub struct Inbox {
    /// By worker, then source.
    pieces: Arc<[Mutex<NodeBuffer>]>,
    workers: usize,
}

/// A sum and the number of its terms.
#[derive(Clone, Copy, Debug, Default)]
struct RunningMean {
    sum: u128,
    count: u64,
}

impl Integers {
    /// `count` random integers, split evenly among the workers, each of which writes its own.
    pub async fn random(
        context: &Context,
        count: usize,
        seed: u64,
    ) -> Result<Self, PrimitiveError> {
        let workers = context.runtime().worker_count();
        let counts: Arc<[usize]> = (0..workers).map(|at| share(count, workers, at).len()).collect();
        let (arena, of_worker) = (context.arena().clone(), Arc::clone(&counts));
        let fill = move |worker: WorkerId, task: &TaskContext| {
            let node = task.runtime().node_of(worker);
            let mut buffer = arena.allocate(Some(node), 8 * of_worker[worker.index()])?;
            let words = words::rows_mut::<1>(buffer.as_mut_slice()).as_flattened_mut();
            let mut drawn = hash::then(seed, worker.0.into());
            for block in words.chunks_mut(BLOCKS_UNCHECKED << 12) {
                task.check()?;
                for integer in block {
                    drawn = drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    *integer = hash::word(drawn);
                }
            }
            Ok(buffer)
        };
        let (held, _) = context.on_workers("integers", fill).await?;
        Ok(Self { held: held.into(), counts })
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.held.len()
    }

    /// Total size.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.counts.iter().map(|count| 8 * *count as u64).sum())
    }

    /// Observed home of a worker's data; None if unknown.
    pub fn home(&self, source: WorkerId) -> Option<NodeId> {
        self.held[source.index()].home()
    }

    /// All integers of a worker.
    pub fn held(&self, source: WorkerId) -> &[u64] {
        integers(&self.held[source.index()])
    }

    /// The same as bytes.
    pub fn bytes_held(&self, source: WorkerId) -> &[u8] {
        self.held[source.index()].as_slice()
    }

    /// The piece that one worker holds for another.
    pub fn piece(&self, source: WorkerId, worker: WorkerId) -> &[u64] {
        &self.held(source)[self.range(source, worker)]
    }

    fn range(&self, source: WorkerId, worker: WorkerId) -> Range<usize> {
        share(self.counts[source.index()], self.workers(), worker.index())
    }

    /// The same piece as bytes.
    fn piece_bytes(&self, source: WorkerId, worker: WorkerId) -> &[u8] {
        let Range { start, end } = self.range(source, worker);
        &self.bytes_held(source)[8 * start..8 * end]
    }

    /// The mean of each worker's pieces, None if they are empty. Each piece is read where the schedule says; pushed
    /// ones are first written into an [`Inbox`] and read there.
    pub async fn means(
        &self,
        context: &Context,
        schedule: &Schedule,
    ) -> Result<(Vec<Option<f64>>, ShuffleReport), PrimitiveError> {
        if schedule.shuffle().moved == Moved::Pushed {
            let inbox = Inbox::new(context, self).await?;
            let report = self.push(context, schedule, &inbox).await?;
            return Ok((inbox.means(context).await?, report));
        }
        let (integers, homes) = (self.clone(), self.homes(schedule));
        let block = BLOCKS_UNCHECKED * context.tuning().block_rows.max(1);
        let states = vec![RunningMean::default(); self.workers()];
        let visited = schedule.run(context, "means", states, move |mean, visit, task| {
            let piece = integers.piece(visit.source, visit.worker);
            mean.add(piece, block, task)?;
            task.count_read(homes[visit.source.index()], Bytes(8 * piece.len() as u64));
            Ok(())
        });
        let Shuffled { states, report } = visited.await?;
        Ok((states.iter().map(RunningMean::value).collect(), report))
    }

    /// Writes each piece into its recipient's inbox: the holder writes it if the schedule pushes, else the recipient.
    pub async fn push(
        &self,
        context: &Context,
        schedule: &Schedule,
        inbox: &Inbox,
    ) -> Result<ShuffleReport, PrimitiveError> {
        let (integers, inbox, homes) = (self.clone(), inbox.clone(), self.homes(schedule));
        let block = 8 * BLOCKS_UNCHECKED * context.tuning().block_rows.max(1);
        let states = vec![(); self.workers()];
        let visited = schedule.run(context, "push", states, move |(), visit, task| {
            let piece = integers.piece_bytes(visit.source, visit.worker);
            let mut room = inbox.piece(visit.worker, visit.source);
            for (from, to) in piece.chunks(block).zip(room.as_mut_slice().chunks_mut(block)) {
                task.check()?;
                copy::past_caches(from, to);
            }
            task.count_read(homes[visit.source.index()], Bytes(piece.len() as u64));
            Ok(())
        });
        Ok(visited.await?.report)
    }

    /// Observed homes, or the intended ones.
    fn homes(&self, schedule: &Schedule) -> Vec<NodeId> {
        let workers = (0..self.workers() as u32).map(WorkerId);
        workers.map(|worker| self.home(worker).unwrap_or(schedule.home(worker))).collect()
    }
}

impl Inbox {
    /// Allocates space for these pieces, by their recipients.
    pub async fn new(context: &Context, integers: &Integers) -> Result<Self, PrimitiveError> {
        let (arena, integers) = (context.arena().clone(), integers.clone());
        let workers = integers.workers();
        let allocate = move |worker: WorkerId, task: &TaskContext| {
            let node = task.runtime().node_of(worker);
            let sources = (0..integers.workers() as u32).map(WorkerId);
            let room = |source| {
                task.check()?;
                let bytes = size_of_val(integers.piece(source, worker));
                Ok(Mutex::new(arena.allocate(Some(node), bytes)?))
            };
            sources.map(room).collect::<Result<Vec<_>, PrimitiveError>>()
        };
        let (rooms, _) = context.on_workers("inbox", allocate).await?;
        Ok(Self { pieces: rooms.into_iter().flatten().collect(), workers })
    }

    /// The mean of each worker's pieces, None if they are empty.
    pub async fn means(&self, context: &Context) -> Result<Vec<Option<f64>>, PrimitiveError> {
        let inbox = self.clone();
        let block = BLOCKS_UNCHECKED * context.tuning().block_rows.max(1);
        let read = move |worker: WorkerId, task: &TaskContext| {
            let mut mean = RunningMean::default();
            for source in 0..inbox.workers as u32 {
                let piece = inbox.piece(worker, WorkerId(source));
                mean.add(integers(&piece), block, task)?;
            }
            Ok(mean.value())
        };
        Ok(context.on_workers("means", read).await?.0)
    }

    fn piece(&self, worker: WorkerId, source: WorkerId) -> MutexGuard<'_, NodeBuffer> {
        let at = worker.index() * self.workers + source.index();
        self.pieces[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer as integers.
fn integers(buffer: &NodeBuffer) -> &[u64] {
    words::rows::<1>(buffer.as_slice()).as_flattened()
}

/// The share of `count` for one of this many workers.
fn share(count: usize, parts: usize, part: usize) -> Range<usize> {
    let start = |part: usize| (count as u128 * part as u128 / parts as u128) as usize;
    start(part)..start(part + 1)
}

impl RunningMean {
    fn add(
        &mut self,
        piece: &[u64],
        block: usize,
        task: &TaskContext,
    ) -> Result<(), PrimitiveError> {
        for block in piece.chunks(block) {
            task.check()?;
            self.sum += sum(block);
        }
        self.count += piece.len() as u64;
        Ok(())
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// The sum of fewer than 2³² integers: modulo 2⁶⁴, and of the high halves alone, which gives the number of wraps
/// (carries would delay every addition). It uses four streams: a core's prefetchers follow several at a time, and read
/// a third more per second than along one.
fn sum(integers: &[u64]) -> u128 {
    let quarter = integers.len() / 4;
    let (a, rest) = integers.split_at(quarter);
    let (b, rest) = rest.split_at(quarter);
    let (c, rest) = rest.split_at(quarter);
    let (d, rest) = rest.split_at(quarter);
    let (mut all, mut high) = (0_u64, 0_u64);
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        all = all.wrapping_add(*a).wrapping_add(*b).wrapping_add(*c).wrapping_add(*d);
        high += (a >> 32) + (b >> 32) + (c >> 32) + (d >> 32);
    }
    let high = u128::from(high) << 32;
    // The low halves remain; their sum is less than 2⁶⁴.
    let sum = high + u128::from(all.wrapping_sub(high as u64));
    rest.iter().fold(sum, |sum, integer| sum + u128::from(*integer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_overflow_and_leave_nothing_out() {
        for count in [0, 1, 15, 16, 17, 1000] {
            assert_eq!(sum(&vec![u64::MAX; count]), u128::from(u64::MAX) * count as u128);
        }
        assert_eq!(sum(&(0..1001).collect::<Vec<_>>()), 500_500);
    }

    #[test]
    fn shares_follow_one_another_and_leave_nothing_out() {
        for (count, parts) in [(0, 3), (2, 5), (10, 3), (usize::MAX, 7)] {
            let shares: Vec<_> = (0..parts).map(|part| share(count, parts, part)).collect();
            assert_eq!((shares[0].start, shares[parts - 1].end), (0, count));
            assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
