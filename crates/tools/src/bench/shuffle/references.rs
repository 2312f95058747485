//! References for shuffles: the same workers read, and copy, their own data.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use atoll_placement::NodeBuffer;
use atoll_primitives::shuffle::Integers;
use atoll_primitives::{Context, PrimitiveError};
use atoll_runtime::{TaskContext, WorkerId};

/// Integers that are read as four streams at a time.
const BLOCK: usize = 32 << 10;

/// Workers, their data, and room for a copy of it.
pub(super) struct References {
    context: Context,
    integers: Integers,
    /// Copy buffers of the workers; None if nothing is to be copied.
    rooms: Option<Arc<Vec<Mutex<NodeBuffer>>>>,
}

impl References {
    /// Allocates room for copies if they are requested.
    pub(super) fn new(context: &Context, integers: &Integers, copies: bool) -> Result<Self> {
        let rooms = match copies {
            false => None,
            true => {
                let (arena, held) = (context.arena().clone(), integers.clone());
                let rooms = context.on_workers("room", move |worker, task: &TaskContext| {
                    let node = task.runtime().node_of(worker);
                    let bytes = held.bytes_held(worker).len();
                    Ok(Mutex::new(arena.allocate(Some(node), bytes)?))
                });
                Some(Arc::new(context.runtime().block_on(rooms)?.0))
            }
        };
        Ok(Self { context: context.clone(), integers: integers.clone(), rooms })
    }

    /// GB/s of each worker reading its own data, an upper bound for any shuffle.
    pub(super) fn read(&self) -> Result<f64> {
        let integers = self.integers.clone();
        self.timed(move |worker| _ = black_box(sum(integers.held(worker))))
    }

    /// GB/s of each worker copying it with memcpy to memory of its own; each byte counts once.
    pub(super) fn copy(&self) -> Option<Result<f64>> {
        let (rooms, integers) = (Arc::clone(self.rooms.as_ref()?), self.integers.clone());
        Some(self.timed(move |worker| {
            let mut room = rooms[worker.index()].lock().unwrap_or_else(PoisonError::into_inner);
            room.as_mut_slice().copy_from_slice(integers.bytes_held(worker));
            black_box(room.as_slice());
        }))
    }

    fn timed(&self, work: impl Fn(WorkerId) + Send + Sync + 'static) -> Result<f64> {
        let start = Instant::now();
        let step = self.context.on_workers("reference", move |worker, _| {
            work(worker);
            Ok::<(), PrimitiveError>(())
        });
        self.context.runtime().block_on(step)?;
        Ok(self.integers.bytes().0 as f64 / start.elapsed().as_nanos() as f64)
    }
}

/// The sum modulo 2⁶⁴, the least that reading takes: in blocks of four streams, which a core reads
/// faster than one.
fn sum(integers: &[u64]) -> u64 {
    let of_block = |block: &[u64]| {
        let quarter = block.len() / 4;
        let (a, rest) = block.split_at(quarter);
        let (b, rest) = rest.split_at(quarter);
        let (c, d) = rest.split_at(quarter);
        let streams = a.iter().zip(b).zip(c).zip(d);
        let sum = streams.fold(0_u64, |sum, (((a, b), c), d)| {
            sum.wrapping_add(*a).wrapping_add(*b).wrapping_add(*c).wrapping_add(*d)
        });
        d[quarter..].iter().fold(sum, |sum, integer| sum.wrapping_add(*integer))
    };
    integers.chunks(BLOCK).fold(0, |sum, block| sum.wrapping_add(of_block(block)))
}

/// What every shuffle has to come to: the mean of all pieces for each worker, one by one.
pub(super) fn means(integers: &Integers) -> Vec<Option<f64>> {
    let workers = || (0..integers.workers() as u32).map(WorkerId);
    let mean = |worker| {
        let pieces = workers().map(|source| integers.piece(source, worker));
        let (sum, count) = pieces.fold((0_u128, 0_u64), |(sum, count), piece| {
            let added: u128 = piece.iter().map(|integer| u128::from(*integer)).sum();
            (sum + added, count + piece.len() as u64)
        });
        (count > 0).then(|| sum as f64 / count as f64)
    };
    workers().map(mean).collect()
}
