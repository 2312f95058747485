//! Phase 2: the dimension is split into chunks, which are partitioned into ranges of keys, one for each worker.

use std::sync::Arc;

use atoll_runtime::StepReport;

use crate::join::keys::{BlockScratch, SideColumns};
use crate::partition::{FanOut, Partitioner, Pieces};
use crate::sort::{SortedRun, Splitters};
use crate::work::Chunks;
use crate::{Context, PrimitiveError};

/// Rows of the sample for each worker, of each table.
const SAMPLE_PER_WORKER: usize = 256;
/// Contiguous rows of the sample.
const SAMPLE_BLOCK: usize = 16;

/// The partitioned rows of each worker, the splitters, and the steps.
pub(super) async fn deal_dimension(
    context: &Context,
    dimension: Arc<SideColumns>,
    fact: &[SortedRun],
) -> Result<(Vec<Pieces<2>>, Splitters, Vec<StepReport>), PrimitiveError> {
    let workers = context.runtime().worker_count();
    let splitters = Splitters::from_sample(sample(&dimension, fact, workers), workers);
    let chunks = Chunks::new(dimension.lengths(), context.tuning().block_rows);
    let (own, cut) = (context.clone(), splitters.clone());
    let dealt = context.on_workers("phase 2: range-partition dimension", move |_, task| {
        let fan_out = FanOut::at_least(workers);
        let mut partitioner = Partitioner::<2>::new(&own, Some(task.node()), fan_out, 0)?;
        dimension.read(&chunks, task, |block| {
            partitioner.extend(block.keys.len(), |row| {
                let key = block.keys[row];
                (cut.range(key), [key, block.payloads[row]])
            })
        })?;
        partitioner.finish()
    });
    let (dealt, report) = dealt.await?;
    Ok((dealt, splitters, vec![report]))
}

/// Keys of both tables, weighted by the number of rows each represents: the cost of a range is what is merged in it.
fn sample(dimension: &SideColumns, fact: &[SortedRun], workers: usize) -> Vec<(u64, f64)> {
    let mut sample = Vec::new();
    let fact_rows: usize = fact.iter().map(|run| run.rows().len()).sum();
    let step = (fact_rows / (workers * SAMPLE_PER_WORKER)).max(1);
    for run in fact {
        let keys = run.rows().iter().skip(step / 2).step_by(step);
        sample.extend(keys.map(|[key, _]| (*key, step as f64)));
    }
    let step = (dimension.rows / (workers * SAMPLE_PER_WORKER)).max(1) * SAMPLE_BLOCK;
    let mut scratch = BlockScratch::default();
    for part in &dimension.parts {
        for start in (0..part.rows).step_by(step) {
            let end = part.rows.min(start + SAMPLE_BLOCK);
            let block = part.block(start..end, &mut scratch);
            let weight = step.min(part.rows - start) as f64 / (end - start) as f64;
            sample.extend(block.keys.iter().map(|key| (*key, weight)));
        }
    }
    sample
}
