//! Phase 4: every dimension run is merged with its range of every fact run, once, in the order of a shuffle.

use std::sync::Arc;

use atoll_runtime::TaskContext;
use atoll_topology::Bytes;

use super::Remote;
use super::merge::{PairBlock, merge};
use crate::join::Matches;
use crate::shuffle::{Schedule, Shuffle, ShuffleReport};
use crate::sort::{SortedRun, Splitters};
use crate::{Context, PrimitiveError};

/// The runs of all workers.
pub(super) struct WorkerRuns {
    pub(super) fact: Vec<SortedRun>,
    pub(super) dimension: Vec<SortedRun>,
    pub(super) splitters: Splitters,
}

/// What a worker merges with.
struct Merger<C> {
    consumer: C,
    pairs: PairBlock,
}

impl WorkerRuns {
    /// Bytes of runs read from other workers if the dimension's are remote, and if the fact table's are.
    pub(super) fn remote_bytes(&self) -> [u64; 2] {
        let workers = self.fact.len() as u64;
        let bytes = |rows: usize| 16 * rows as u64;
        let all = |runs: &[SortedRun]| runs.iter().map(|run| bytes(run.rows().len())).sum::<u64>();
        let dimension = all(&self.dimension) * (workers - 1);
        let own = (0..self.fact.len()).map(|worker| bytes(self.met(worker, worker).len()));
        [dimension, all(&self.fact) - own.sum::<u64>()]
    }

    /// The part of a fact run whose keys lie in the range of a dimension run.
    fn met(&self, fact: usize, dimension: usize) -> &[[u64; 2]] {
        let rows = self.fact[fact].rows();
        let start = rows.partition_point(|[key, _]| self.splitters.range(*key) < dimension);
        let end = rows.partition_point(|[key, _]| self.splitters.range(*key) <= dimension);
        &rows[start..end]
    }
}

/// Merges all runs; returns the consumers by worker.
pub(super) async fn merge_runs<C: Matches + 'static>(
    context: &Context,
    runs: WorkerRuns,
    shuffle: Shuffle,
    remote: Remote,
    consumers: Vec<C>,
) -> Result<(Vec<C>, ShuffleReport), PrimitiveError> {
    let schedule = Schedule::for_runtime(context.runtime(), shuffle);
    let mergers =
        consumers.into_iter().map(|consumer| Merger { consumer, pairs: PairBlock::new() });
    let runs = Arc::new(runs);
    let visit = move |merger: &mut Merger<C>, visit: &crate::shuffle::Visit, task: &TaskContext| {
        let (worker, source) = (visit.worker.index(), visit.source.index());
        let (fact, dimension) = match remote {
            Remote::Dimension => (worker, source),
            Remote::Fact => (source, worker),
        };
        merge_two(&runs, fact, dimension, merger, task)
    };
    let name = "phase 4: merge";
    let shuffled = schedule.run(context, name, mergers.collect(), visit).await?;
    let mut consumers = Vec::with_capacity(shuffled.states.len());
    for mut merger in shuffled.states {
        merger.pairs.flush(&mut merger.consumer)?;
        consumers.push(merger.consumer);
    }
    Ok((consumers, shuffled.report))
}

/// Merges a dimension run with its range of a fact run.
fn merge_two<C: Matches>(
    runs: &WorkerRuns,
    fact: usize,
    dimension: usize,
    merger: &mut Merger<C>,
    task: &TaskContext,
) -> Result<(), PrimitiveError> {
    let (met, rows) = (runs.met(fact, dimension), runs.dimension[dimension].rows());
    if met.is_empty() || rows.is_empty() {
        return Ok(());
    }
    merge(met, rows, &mut merger.pairs, &mut merger.consumer, || Ok(task.check()?))?;
    for (run, rows) in [(&runs.fact[fact], met.len()), (&runs.dimension[dimension], rows.len())] {
        if let Some(home) = run.home() {
            task.count_read(home, Bytes(16 * rows as u64));
        }
    }
    Ok(())
}
