//! Filling a table: the rows of a plan become chunks on the workers whose nodes keep them.
//!
//! Each partition of the plan is written by the worker at its position in the order of workers, so neighbouring rows
//! stay on one node. A plan of one partition (a single file, a sorted result) is read once and its chunks are dealt to
//! the workers in turn, since it would otherwise fill one node and keep one core busy. Few rows are left as they are: a
//! chunk would cost pages.

use std::collections::VecDeque;
use std::sync::Arc;

use atoll_runtime::WorkerId;
use atoll_store::table::{BLOCK_ROWS, CHUNK_ROWS, Chunk, ChunkWriter};
use atoll_store::{ChunkFileId, TableId};
use atoll_topology::NodeId;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;

use super::PlacedTable;
use super::target::WriteTarget;
use crate::database::FileJob;
use atoll_sql_common::error::table_error;
use atoll_sql_common::task::BoundTask;

/// What a task here does, for its errors.
const LOADING: &str = "loading the table";

/// Maximum number of rows that are not put into chunks.
const FEW_ROWS: usize = BLOCK_ROWS;

/// The rows of a plan, in its order, checked.
#[derive(Debug)]
pub(crate) enum LoadedRows {
    /// Few rows, or as many as were requested in this form.
    Rows(Vec<RecordBatch>),
    /// Many, with the files that hold them, if there is a directory.
    Chunks(Vec<(Arc<Chunk>, Option<ChunkFileId>)>),
}

impl LoadedRows {
    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Rows(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
            Self::Chunks(chunks) => chunks.iter().map(|(chunk, _)| chunk.rows).sum(),
        }
    }
}

/// Runs `plan` and returns its rows for `table`, to append to its rows; with `keeps_rows` as batches, however many
/// there are.
pub(crate) async fn load(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    table: &PlacedTable,
    target: &Arc<WriteTarget>,
    keeps_rows: bool,
) -> Result<LoadedRows> {
    let few = if keeps_rows { usize::MAX } else { FEW_ROWS };
    let load = Load { table: table.clone(), target: Arc::clone(target), few };
    match plan.output_partitioning().partition_count() {
        1 => load.deal(plan.execute(0, context)?).await,
        _ => load.in_place(&plan, &context).await,
    }
}

/// A load in progress.
#[derive(Clone)]
struct Load {
    table: PlacedTable,
    target: Arc<WriteTarget>,
    /// Up to this many rows are not put into chunks.
    few: usize,
}

/// The output for a partition: the batches that were read, or a writer that has them.
enum Partition {
    Few(Vec<RecordBatch>, FiledWriter),
    Many(FiledWriter),
}

/// Writes chunks, and each to its file as soon as it is full, if there is a directory.
struct FiledWriter {
    writer: ChunkWriter,
    table: TableId,
    target: Arc<WriteTarget>,
    columns: SchemaRef,
    chunks: FiledChunks,
}

/// Chunks, and the files that are being written.
type FiledChunks = Vec<(Arc<Chunk>, Option<FileJob<ChunkFileId>>)>;

impl FiledWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(table_error)?;
        let full = self.writer.take_full();
        self.file(full);
        Ok(())
    }

    fn file(&mut self, chunks: Vec<Chunk>) {
        for chunk in chunks.into_iter().map(Arc::new) {
            let file = self.target.database.write_chunk(self.table, &self.columns, &chunk);
            self.chunks.push((chunk, file));
        }
    }

    fn finish(mut self) -> Result<FiledChunks> {
        self.writer.cut_rest().map_err(table_error)?;
        let last = self.writer.take_full();
        self.file(last);
        Ok(self.chunks)
    }
}

impl Load {
    async fn in_place(
        self,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> Result<LoadedRows> {
        let (runtime, first) = (self.table.runtime().clone(), self.table.version().entries().len());
        let partitions = plan.output_partitioning().partition_count();
        let mut tasks = Vec::with_capacity(partitions);
        for partition in 0..partitions {
            let worker = WorkerId((partition * runtime.worker_count() / partitions) as u32);
            let (plan, context, load) = (Arc::clone(plan), Arc::clone(context), self.clone());
            // Strategies that deal in turn start each partition one further.
            let writer = self.writer(runtime.node_of(worker), first + partition);
            tasks.push((
                worker,
                BoundTask::new(runtime.spawn_on(worker, async move {
                    load.write(plan.execute(partition, context)?, writer).await
                })),
            ));
        }
        let mut parts = Vec::with_capacity(partitions);
        for (worker, task) in tasks {
            parts.push((worker, task.join(LOADING).await?));
        }
        self.finish(parts).await
    }

    /// Reads a partition into a writer once it has more than few rows.
    async fn write(
        self,
        mut rows: SendableRecordBatchStream,
        mut writer: FiledWriter,
    ) -> Result<Partition> {
        let (mut few, mut count) = (Vec::new(), 0);
        while let Some(batch) = rows.next().await {
            let batch = self.target.rules.complete(&self.table, batch?)?;
            count += batch.num_rows();
            few.push(batch);
            if count > self.few {
                few.drain(..).try_for_each(|batch| writer.write(&batch))?;
            }
        }
        Ok(if count > self.few { Partition::Many(writer) } else { Partition::Few(few, writer) })
    }

    /// All rows as batches if they are few in total, else as chunks.
    async fn finish(self, parts: Vec<(WorkerId, Partition)>) -> Result<LoadedRows> {
        let few: Option<usize> = parts.iter().map(|(_, part)| part.few_rows()).sum();
        if few.is_some_and(|rows| rows <= self.few) {
            let batches = parts.into_iter().flat_map(|(_, part)| part.into_batches());
            return Ok(LoadedRows::Rows(batches.collect()));
        }
        let runtime = self.table.runtime();
        let finish = |(worker, part): (WorkerId, Partition)| {
            BoundTask::new(runtime.spawn_on(worker, async move { part.into_chunks() }))
        };
        let tasks: Vec<_> = parts.into_iter().map(finish).collect();
        let mut chunks = Vec::new();
        for task in tasks {
            chunks.extend(task.join(LOADING).await?);
        }
        written(chunks).await
    }

    fn writer(&self, node: NodeId, first: usize) -> FiledWriter {
        FiledWriter {
            writer: self.table.writer(node, first),
            table: self.table.id(),
            target: Arc::clone(&self.target),
            columns: Arc::clone(self.table.columns()),
            chunks: Vec::new(),
        }
    }

    async fn deal(self, mut rows: SendableRecordBatchStream) -> Result<LoadedRows> {
        let (runtime, first) = (self.table.runtime().clone(), self.table.version().entries().len());
        let (mut dealt, mut chunks) = (0, Vec::new());
        let mut under_way = VecDeque::new();
        let mut ended = false;
        while !ended {
            let mut batches = Vec::new();
            let (mut count, wanted) = (0, CHUNK_ROWS.max(self.few));
            while count < wanted {
                let Some(batch) = rows.next().await else {
                    ended = true;
                    break;
                };
                let batch = self.target.rules.complete(&self.table, batch?)?;
                count += batch.num_rows();
                batches.push(batch);
            }
            if ended && dealt == 0 && count <= self.few {
                return Ok(LoadedRows::Rows(batches));
            }
            let worker = WorkerId((dealt % runtime.worker_count()) as u32);
            let writer = self.writer(runtime.node_of(worker), first + dealt);
            dealt += 1;
            let part = Partition::Few(batches, writer);
            under_way.push_back(BoundTask::new(
                runtime.spawn_on(worker, async move { part.into_chunks() }),
            ));
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
        written(chunks).await
    }
}

impl Partition {
    /// Number of rows, if they are few.
    fn few_rows(&self) -> Option<usize> {
        match self {
            Self::Few(batches, _) => Some(batches.iter().map(RecordBatch::num_rows).sum()),
            Self::Many(_) => None,
        }
    }

    fn into_batches(self) -> Vec<RecordBatch> {
        match self {
            Self::Few(batches, _) => batches,
            Self::Many(_) => Vec::new(),
        }
    }

    fn into_chunks(self) -> Result<FiledChunks> {
        let writer = match self {
            Self::Few(batches, mut writer) => {
                batches.iter().try_for_each(|batch| writer.write(batch))?;
                writer
            }
            Self::Many(writer) => writer,
        };
        writer.finish()
    }
}

/// Waits until files are written; the writer of a change of the chunks syncs them.
async fn written(chunks: FiledChunks) -> Result<LoadedRows> {
    let mut filed = Vec::with_capacity(chunks.len());
    for (chunk, file) in chunks {
        let file = match file {
            Some(file) => Some(file.join("writing a chunk to its file").await?),
            None => None,
        };
        filed.push((chunk, file));
    }
    Ok(LoadedRows::Chunks(filed))
}
