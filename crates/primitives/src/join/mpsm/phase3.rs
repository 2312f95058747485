//! Phase 3: each worker collects its range from all workers, and sorts it into a run.

use std::sync::Arc;

use atoll_runtime::StepReport;

use crate::partition::Pieces;
use crate::sort::SortedRun;
use crate::{Context, PrimitiveError};

/// A run for each worker, its keys all in the worker's range.
pub(super) async fn sort_dimension(
    context: &Context,
    dealt: Vec<Pieces<2>>,
) -> Result<(Vec<SortedRun>, Vec<StepReport>), PrimitiveError> {
    let (dealt, own) = (Arc::new(dealt), context.clone());
    let runs = context.on_workers("phase 3: sort dimension runs", move |worker, task| {
        SortedRun::collect(&own, task, &dealt, worker.index(), false)
    });
    let (runs, report) = runs.await?;
    Ok((runs, vec![report]))
}
