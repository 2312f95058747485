//! Read and copy bandwidth of the workers, measured between the runs: the limit of the machine.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use atoll_placement::NodeBuffer;
use atoll_primitives::PrimitiveError;
use atoll_runtime::TaskContext;
use atoll_tools::workload::Rig;
use atoll_topology::Machine;
use serde::Serialize;

/// Bytes that all workers together read, and copy: at least this many, and this multiple of the caches,
/// if memory has room for both sides.
const BYTES_MIN: u64 = 256 << 20;
const CACHES: u64 = 4;
/// Smallest share of a worker.
const SHARE_MIN: usize = 1 << 20;

/// Memory of each worker, read from and copied to.
type Pair = Mutex<[NodeBuffer; 2]>;

/// Measures both.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    /// The workers.
    pub(crate) rig: &'a Rig,
    memory: Arc<Vec<Pair>>,
    share: usize,
}

/// GB/s; a byte copied counts once.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Bandwidth {
    pub(crate) read: f64,
    pub(crate) copy: f64,
}

/// What bounds a primitive from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Bound {
    /// Every byte is read.
    Read,
    /// Every byte is read, and written elsewhere.
    Copy,
}

impl Bandwidth {
    /// Shortest time, seconds, in which so many bytes move.
    pub(crate) fn limit(self, bound: Bound, bytes: u64) -> f64 {
        let rate = match bound {
            Bound::Read => self.read,
            Bound::Copy => self.copy,
        };
        bytes as f64 / (rate * 1e9)
    }
}

impl<'a> Meter<'a> {
    /// Takes memory on each worker's node and touches it.
    ///
    /// # Errors
    /// When memory is out.
    pub(crate) fn new(rig: &'a Rig) -> Result<Self> {
        let bytes = bytes(rig.context.arena().machine());
        let share = (bytes as usize / rig.threads).max(SHARE_MIN).next_multiple_of(128);
        let context = rig.context.clone();
        let pair = move |task: &TaskContext| -> Result<Pair, PrimitiveError> {
            let buffer = |fill| -> Result<NodeBuffer, PrimitiveError> {
                let mut buffer = context.arena().allocate(Some(task.node()), share)?;
                buffer.as_mut_slice().fill(fill);
                Ok(buffer)
            };
            Ok(Mutex::new([buffer(1)?, buffer(2)?]))
        };
        let (memory, _) =
            rig.wait(rig.context.on_workers("bandwidth", move |_, task| pair(task)))?;
        Ok(Self { rig, memory: Arc::new(memory), share })
    }

    /// GB/s of reading in the fastest of some passes: everything else on the machine only slows it down.
    ///
    /// # Errors
    /// When a worker fails.
    pub(crate) fn fastest_read(&self, passes: usize) -> Result<f64> {
        let mut fastest = 0.0_f64;
        for _ in 0..passes {
            fastest = fastest.max(self.read()?);
        }
        Ok(fastest)
    }

    /// Bytes that a pass reads.
    pub(crate) fn bytes(&self) -> usize {
        self.share * self.memory.len()
    }

    /// Measures both once.
    ///
    /// # Errors
    /// When a worker fails.
    pub(crate) fn measure(&self) -> Result<Bandwidth> {
        let read = self.read()?;
        let copy = self.rate(|[from, to]| {
            to.as_mut_slice().copy_from_slice(from.as_slice());
            black_box(to.as_slice());
        })?;
        Ok(Bandwidth { read, copy })
    }

    fn read(&self) -> Result<f64> {
        self.rate(|[from, _]| _ = black_box(sum(from.as_slice())))
    }

    /// GB/s at which all workers do this to their memory.
    fn rate(&self, work: impl Fn(&mut [NodeBuffer; 2]) + Send + Sync + 'static) -> Result<f64> {
        let memory = Arc::clone(&self.memory);
        let start = Instant::now();
        let step = self.rig.context.on_workers("bandwidth", move |worker, _| {
            work(&mut memory[worker.index()].lock().unwrap_or_else(PoisonError::into_inner));
            Ok(())
        });
        self.rig.wait(step)?;
        Ok(self.bytes() as f64 / start.elapsed().as_secs_f64() / 1e9)
    }
}

fn bytes(machine: &Machine) -> u64 {
    let caches: u64 = machine.domains.iter().filter_map(|domain| domain.cache).map(|c| c.0).sum();
    BYTES_MIN.max(caches.saturating_mul(CACHES)).min(machine.memory_free().0 / 8)
}

/// Sum of all words, in sixteen sums side by side so that adding never waits for an addition.
fn sum(bytes: &[u8]) -> u64 {
    let mut sums = [0_u64; 16];
    for line in bytes.as_chunks::<128>().0 {
        for (sum, word) in sums.iter_mut().zip(line.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_time_in_which_the_bytes_move() {
        let bandwidth = Bandwidth { read: 20.0, copy: 10.0 };
        assert_eq!(bandwidth.limit(Bound::Read, 40_000_000_000), 2.0);
        assert_eq!(bandwidth.limit(Bound::Copy, 40_000_000_000), 4.0);
    }

    #[test]
    fn memory_that_is_read_is_larger_than_the_caches_and_leaves_room() {
        let machine = |text: &str| Machine::synthetic(text).expect("a machine");
        let small = machine("node:1(memory=64GiB) l3:1(size=1MiB) core:2 pu:1");
        assert_eq!(bytes(&small), BYTES_MIN);
        let large = machine("node:1(memory=64GiB) l3:1(size=512MiB) core:2 pu:1");
        assert_eq!(bytes(&large), 2 << 30);
        let full = machine("node:1(memory=64MiB) l3:1(size=512MiB) core:2 pu:1");
        assert_eq!(bytes(&full), 8 << 20);
    }

    #[test]
    fn a_sum_covers_every_word() {
        let mut bytes = vec![0_u8; 4096];
        (0..4096).step_by(8).for_each(|at| bytes[at] = 1);
        assert_eq!(sum(&bytes), 512);
    }
}
