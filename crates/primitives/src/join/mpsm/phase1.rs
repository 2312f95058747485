//! Phase 1: the fact table is split into chunks, which each worker sorts into a run on its node.

use std::sync::Arc;

use atoll_runtime::StepReport;

use crate::join::keys::SideColumns;
use crate::partition::{FanOut, Partitioner};
use crate::sort::SortedRun;
use crate::work::Chunks;
use crate::{Context, PrimitiveError};

/// A run for each worker.
pub(super) async fn sort_fact(
    context: &Context,
    fact: Arc<SideColumns>,
) -> Result<(Vec<SortedRun>, Vec<StepReport>), PrimitiveError> {
    let chunks = Chunks::new(fact.lengths(), context.tuning().block_rows);
    let own = context.clone();
    let runs = context.on_workers("phase 1: sort fact chunks", move |_, task| {
        let whole = FanOut::of_bits(0);
        let mut partitioner = Partitioner::<2>::new(&own, Some(task.node()), whole, 0)?;
        fact.read(&chunks, task, |block| {
            partitioner.extend(block.keys.len(), |row| (0, [block.keys[row], block.payloads[row]]))
        })?;
        SortedRun::collect(&own, task, &[partitioner.finish()?], 0, false)
    });
    let (runs, report) = runs.await?;
    Ok((runs, vec![report]))
}
