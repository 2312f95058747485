//! Shared work for workers: chunks of rows, those of the own node first, and numbers.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_topology::NodeId;

/// Blocks of a chunk.
const CHUNK_BLOCKS: usize = 16;

/// Rows of parts, by home, in chunks that are each taken once.
#[derive(Debug)]
pub(crate) struct Chunks {
    homes: Vec<HomeChunks>,
    block_rows: usize,
}

/// The chunks that lie on one node.
#[derive(Debug)]
struct HomeChunks {
    home: Option<NodeId>,
    /// Number of the part, and its rows.
    chunks: Vec<(usize, Range<usize>)>,
    taken: AtomicUsize,
}

impl Chunks {
    /// All rows of parts, given by home and length, to be read in blocks of `block_rows`.
    pub(crate) fn new(
        parts: impl IntoIterator<Item = (Option<NodeId>, usize)>,
        block_rows: usize,
    ) -> Self {
        let block_rows = block_rows.max(1);
        let mut homes: Vec<HomeChunks> = Vec::new();
        for (number, (home, rows)) in parts.into_iter().enumerate() {
            let at = homes.iter().position(|chunks| chunks.home == home).unwrap_or_else(|| {
                homes.push(HomeChunks { home, chunks: Vec::new(), taken: AtomicUsize::new(0) });
                homes.len() - 1
            });
            let chunk_rows = block_rows * CHUNK_BLOCKS;
            let starts = (0..rows).step_by(chunk_rows);
            let chunks = starts.map(|start| (number, start..rows.min(start + chunk_rows)));
            homes[at].chunks.extend(chunks);
        }
        Self { homes, block_rows }
    }

    /// Takes the next chunk for a worker of a node, as part and rows: local chunks first.
    pub(crate) fn take(&self, node: NodeId) -> Option<(usize, Range<usize>)> {
        let own = self.homes.iter().filter(|chunks| chunks.home == Some(node));
        let others = self.homes.iter().filter(|chunks| chunks.home != Some(node));
        own.chain(others).find_map(|chunks| {
            // Relaxed: only the number matters; chunks are published before the step starts.
            chunks.chunks.get(chunks.taken.fetch_add(1, Ordering::Relaxed)).cloned()
        })
    }

    /// The blocks of a chunk.
    pub(crate) fn blocks(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let block_rows = self.block_rows;
        let end = rows.end;
        rows.step_by(block_rows).map(move |start| start..end.min(start + block_rows))
    }
}

/// Numbers from 0 to a count, each taken once.
#[derive(Debug)]
pub(crate) struct NumberQueue {
    count: usize,
    taken: AtomicUsize,
}

impl NumberQueue {
    /// Those below a count.
    pub(crate) fn below(count: usize) -> Self {
        Self { count, taken: AtomicUsize::new(0) }
    }

    /// Takes the next number.
    pub(crate) fn take(&self) -> Option<usize> {
        // Relaxed: the number alone matters.
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        (number < self.count).then_some(number)
    }
}
