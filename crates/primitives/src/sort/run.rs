//! Sorted rows on a node.

use atoll_placement::NodeBuffer;
use atoll_runtime::TaskContext;
use atoll_topology::NodeId;

use super::sort_rows;
use crate::kernel::words;
use crate::partition::Pieces;
use crate::{Context, PrimitiveError};

/// Sorted rows of a key word and a payload, in memory of one node.
#[derive(Debug)]
pub struct SortedRun {
    memory: NodeBuffer,
    home: Option<NodeId>,
}

impl SortedRun {
    /// Its rows, by key.
    pub fn rows(&self) -> &[[u64; 2]] {
        words::rows(self.memory.as_slice())
    }

    /// Requested home node.
    pub fn home(&self) -> Option<NodeId> {
        self.home
    }

    /// Collects a piece from all workers' partitions onto the task's node, and sorts it. With `by_payload`, rows of
    /// equal keys are sorted by payload.
    pub(crate) fn collect(
        context: &Context,
        task: &TaskContext,
        dealt: &[Pieces<2>],
        piece: usize,
        by_payload: bool,
    ) -> Result<Self, PrimitiveError> {
        let home = Some(task.node());
        let rows: usize = dealt.iter().map(|pieces| pieces.rows(piece)).sum();
        let mut memory = context.arena().allocate(home, rows * 16)?;
        let sorted = words::rows_mut::<2>(memory.as_mut_slice());
        let mut end = 0;
        for block in dealt.iter().flat_map(|pieces| pieces.blocks(piece)) {
            task.check()?;
            sorted[end..end + block.len()].copy_from_slice(block);
            end += block.len();
        }
        for pieces in dealt {
            if let Some(from) = pieces.home() {
                task.count_read(from, atoll_topology::Bytes(16 * pieces.rows(piece) as u64));
            }
        }
        let mut scratch = context.arena().allocate(home, rows * 16)?;
        let scratch = words::rows_mut::<2>(scratch.as_mut_slice());
        sort_rows(sorted, scratch, &mut || task.check().map_err(PrimitiveError::from))?;
        if by_payload {
            for equal in sorted.chunk_by_mut(|row, next| row[0] == next[0]) {
                equal.sort_unstable_by_key(|row| row[1]);
            }
        }
        Ok(Self { memory, home })
    }
}
