//! Reading memory as fast as it goes: what a scan can reach at best.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_placement::{Arena, Kernel, LiveKernel, NodeBuffer};
use atoll_runtime::{Cancelled, Runtime, RuntimeOptions, Task, TaskContext};
use atoll_topology::{Bytes, Machine};
use serde::Serialize;

/// Bytes between two looks at the cancel token: some 25 µs of reading.
pub(crate) const SCAN_BLOCK: usize = 256 << 10;
/// Bytes that one task reads.
const SCAN_PIECE: usize = 4 << 20;
/// Passes over the memory when bandwidth is measured; the first ones warm up.
const PASSES: usize = 9;
/// Memory that is read is at least this large, and this many times the caches.
const BANDWIDTH_BYTES_MIN: u64 = 256 << 20;
const CACHES: u64 = 4;

/// How fast memory can be read by these threads, each reading its own node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Threads that read.
    pub threads: usize,
    /// Memory that they read in each pass.
    pub buffer_bytes: Bytes,
    /// Passes; the fastest counts, since everything else on the machine only slows it down.
    pub passes: usize,
    /// Bytes per second in the fastest pass.
    pub bytes_per_second: f64,
}

/// Measures the bandwidth of reading with `threads` bound threads: sums of 64-bit numbers over
/// memory several times the size of the caches.
pub(crate) fn bandwidth(machine: &Arc<Machine>, threads: usize) -> anyhow::Result<Bandwidth> {
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::clone(machine), Arc::clone(&kernel), options)?;
    let arena = Arena::new(Arc::clone(machine), kernel, None);
    let buffer_bytes = buffer_bytes(machine);
    let pieces = pieces(&runtime, &arena, buffer_bytes)?;
    let mut fastest = Duration::MAX;
    for _ in 0..PASSES {
        fastest = fastest.min(read(&runtime, &pieces)?.0);
    }
    let bytes: usize = pieces.iter().map(|piece| piece.as_slice().len()).sum();
    Ok(Bandwidth {
        threads: runtime.worker_count(),
        buffer_bytes: Bytes(bytes as u64),
        passes: PASSES,
        bytes_per_second: bytes as f64 / fastest.as_secs_f64(),
    })
}

fn buffer_bytes(machine: &Machine) -> Bytes {
    let caches: u64 = machine.domains.iter().filter_map(|domain| domain.cache).map(|c| c.0).sum();
    let wanted = BANDWIDTH_BYTES_MIN.max(caches.saturating_mul(CACHES));
    Bytes(wanted.min(machine.memory_free().0 / 4).max(SCAN_PIECE as u64))
}

/// Memory to read, dealt to the nodes in turn and filled on them.
pub(crate) fn pieces(
    runtime: &Runtime,
    arena: &Arena,
    bytes: Bytes,
) -> anyhow::Result<Vec<Arc<NodeBuffer>>> {
    let count = (bytes.0 as usize).div_ceil(SCAN_PIECE);
    let tasks = (0..count).map(|number| {
        let arena = arena.clone();
        let node = runtime.pools()[number % runtime.pools().len()].node();
        Task::on_node(node, async move |_| {
            let mut piece = arena.allocate(Some(node), SCAN_PIECE)?;
            piece.as_mut_slice().fill(number as u8);
            Ok::<_, anyhow::Error>(Arc::new(piece))
        })
    });
    let outcome = runtime.block_on(runtime.step("fill", tasks.collect()).run());
    outcome.result.map_err(|error| anyhow::anyhow!("cannot fill the memory to read: {error:#}"))
}

/// Sum of a block, as 64-bit numbers.
pub(crate) fn sum(block: &[u8]) -> u64 {
    let (words, _) = block.as_chunks::<8>();
    words.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// Time of reading all pieces, and the bytes: all, and those local to their reader.
pub(crate) fn read(
    runtime: &Runtime,
    pieces: &[Arc<NodeBuffer>],
) -> anyhow::Result<(Duration, (Bytes, Bytes))> {
    let started = Instant::now();
    let tasks = pieces.iter().map(|piece| {
        let piece = piece.clone();
        let home = piece.home().or(piece.wanted()).unwrap_or_default();
        Task::on_node(home, async move |context: TaskContext| read_piece(&context, &piece))
    });
    let outcome = runtime.block_on(runtime.step("scan", tasks.collect()).run());
    black_box(outcome.result?);
    let bytes = &outcome.report.bytes;
    Ok((started.elapsed(), (bytes.total(), bytes.local())))
}

fn read_piece(context: &TaskContext, piece: &NodeBuffer) -> Result<u64, Cancelled> {
    let mut total = 0u64;
    for block in piece.as_slice().chunks(SCAN_BLOCK) {
        context.check()?;
        total = total.wrapping_add(sum(block));
        if let Some(home) = piece.home() {
            context.count_read(home, Bytes(block.len() as u64));
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_read_is_larger_than_the_caches_and_leaves_room() {
        let machine = |text: &str| Machine::synthetic(text).expect("a machine");
        let small = machine("node:1(memory=64GiB) l3:1(size=1MiB) core:2 pu:1");
        assert_eq!(buffer_bytes(&small), Bytes(BANDWIDTH_BYTES_MIN));
        let large = machine("node:1(memory=64GiB) l3:1(size=512MiB) core:2 pu:1");
        assert_eq!(buffer_bytes(&large), Bytes(2 << 30));
        let full = machine("node:1(memory=64MiB) l3:1(size=512MiB) core:2 pu:1");
        assert_eq!(buffer_bytes(&full), Bytes(16 << 20));
    }
}
