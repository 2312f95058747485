//! Filling a table: the rows of a plan become chunks on the workers whose nodes keep them.
//!
//! Each partition of the plan is written by the worker that stands at its place in the order of
//! workers, so neighbouring rows stay on one node. A plan of one partition (a single file, a sorted
//! result) is read once and its chunks are dealt to the workers in turn, for it would otherwise
//! fill one node and keep one core busy.

use std::sync::Arc;

use atoll_runtime::WorkerId;
use atoll_store::table::{CHUNK_ROWS, Chunk, ChunkWriter};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;

use super::{PlacedTable, table_error};
use crate::task::BoundTask;

/// What a task here does, for its errors.
const LOADING: &str = "loading the table";

/// Runs `plan` and returns its rows as chunks for `table`, to stand behind those it has, in the plan's
/// order.
pub(crate) async fn load(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    table: &PlacedTable,
) -> Result<Vec<Arc<Chunk>>> {
    let partitions = plan.output_partitioning().partition_count();
    let chunks = if partitions == 1 {
        deal(plan.execute(0, context)?, table).await?
    } else {
        in_place(&plan, &context, table).await?
    };
    Ok(chunks.into_iter().map(Arc::new).collect())
}

async fn in_place(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    table: &PlacedTable,
) -> Result<Vec<Chunk>> {
    let (runtime, first) = (table.runtime(), table.snapshot().chunks.len());
    let partitions = plan.output_partitioning().partition_count();
    let mut tasks = Vec::with_capacity(partitions);
    for partition in 0..partitions {
        let worker = WorkerId((partition * runtime.worker_count() / partitions) as u32);
        let (plan, context) = (Arc::clone(plan), Arc::clone(context));
        // Strategies that deal in turn start each partition one further.
        let writer = table.writer(runtime.node_of(worker), first + partition);
        tasks.push(BoundTask::new(runtime.spawn_on(worker, async move {
            write(plan.execute(partition, context)?, writer).await
        })));
    }
    let mut chunks = Vec::new();
    for task in tasks {
        chunks.extend(task.join(LOADING).await?);
    }
    Ok(chunks)
}

async fn write(mut rows: SendableRecordBatchStream, mut writer: ChunkWriter) -> Result<Vec<Chunk>> {
    while let Some(batch) = rows.next().await {
        writer.write(&batch?).map_err(table_error)?;
    }
    writer.finish().map_err(table_error)
}

async fn deal(mut rows: SendableRecordBatchStream, table: &PlacedTable) -> Result<Vec<Chunk>> {
    let (runtime, first) = (table.runtime(), table.snapshot().chunks.len());
    let (mut dealt, mut chunks) = (0, Vec::new());
    let mut under_way = std::collections::VecDeque::new();
    let mut ended = false;
    while !ended {
        let mut batches = Vec::new();
        let mut room = CHUNK_ROWS;
        while room > 0 {
            let Some(batch) = rows.next().await else {
                ended = true;
                break;
            };
            let batch = batch?;
            room = room.saturating_sub(batch.num_rows());
            batches.push(batch);
        }
        let worker = WorkerId((dealt % runtime.worker_count()) as u32);
        let mut writer = table.writer(runtime.node_of(worker), first + dealt);
        dealt += 1;
        under_way.push_back(BoundTask::new(runtime.spawn_on(worker, async move {
            batches.iter().try_for_each(|batch| writer.write(batch)).map_err(table_error)?;
            writer.finish().map_err(table_error)
        })));
        // Reading ahead of the workers would only hold more undigested batches.
        if under_way.len() > runtime.worker_count()
            && let Some(oldest) = under_way.pop_front()
        {
            chunks.extend(oldest.join(LOADING).await?);
        }
    }
    for task in under_way {
        chunks.extend(task.join(LOADING).await?);
    }
    Ok(chunks)
}
