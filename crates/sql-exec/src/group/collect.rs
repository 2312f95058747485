//! Collects inputs at their homes and streams each output's share of them.

use std::fmt;
use std::sync::Arc;

use atoll_primitives::aggregate::{
    Collector, Ended, Gathered, Next, Outputs, Stage, Variant, Visit,
};
use atoll_runtime::Runtime;
use atoll_topology::NodeId;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::query::{GroupQuery, named};
use crate::exchange::{home_of, worker_of};
use atoll_sql_common::task::{BoundTask, unpanicked};

/// After reading this much at once, a task yields to others on the worker.
const UNINTERRUPTED_BYTES: usize = 1 << 20;

/// The context of a run, without its input.
#[derive(Clone)]
pub(super) struct GroupRun {
    pub(super) stage: Arc<Stage>,
    pub(super) query: Arc<GroupQuery>,
    pub(super) runtime: Runtime,
    pub(super) schema: SchemaRef,
    /// Rows of an output batch.
    pub(super) rows: usize,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

/// The results of all inputs, once they have ended. Once all outputs drop it, the inputs end.
type AllCollected = Shared<BoxFuture<'static, Result<Arc<Gathered>, Arc<DataFusionError>>>>;

/// The one run of an operator that exchanges, shared by its outputs.
#[derive(Default)]
pub(super) struct GroupProgress {
    /// Set until every output has been requested: the collected rows belong to the outputs, and go with
    /// the last of them although the plan stays to be shown.
    run: Option<(GroupRun, AllCollected)>,
    /// The outputs of the run that have been requested.
    asked: Vec<bool>,
    /// The stage of a run, to be shown.
    shown: Option<Arc<Stage>>,
}

impl fmt::Debug for GroupProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("running", &self.run.is_some()).finish_non_exhaustive()
    }
}

impl GroupProgress {
    /// A stage of a single partition, to be shown.
    pub(super) fn shows(&mut self, stage: &Arc<Stage>) {
        self.shown.get_or_insert_with(|| Arc::clone(stage));
    }

    /// The chosen variant and the reason.
    pub(super) fn chosen(&self) -> Option<(Variant, String)> {
        let stage = self.shown.as_ref()?;
        stage.chosen().map(|(variant, reason)| (variant, reason.to_owned()))
    }

    /// The stream of an output. The inputs are made ready when the first output is asked for, and
    /// polled when the first output is polled: scans below may wait for filters until then.
    pub(super) fn output(
        progress: &Mutex<Self>,
        input: &Arc<dyn ExecutionPlan>,
        (output, outputs): (usize, usize),
        context: &Arc<TaskContext>,
        make: impl FnOnce() -> Result<GroupRun>,
    ) -> Result<SendableRecordBatchStream> {
        let mut progress = progress.lock();
        if progress.run.is_none() {
            let run = make()?;
            let inputs = 0..input.output_partitioning().partition_count();
            let streams: Result<Vec<_>> =
                inputs.map(|at| input.execute(at, Arc::clone(context))).collect();
            let all = run.clone().collect_all(streams?);
            progress.shown = Some(Arc::clone(&run.stage));
            progress.asked = vec![false; outputs];
            progress.run = Some((run, all));
        }
        progress.asked[output] = true;
        let run = match progress.asked.iter().all(|asked| *asked) {
            true => progress.run.take(),
            false => progress.run.clone(),
        };
        let (run, all) = run.ok_or_else(|| internal_datafusion_err!("a run was made above"))?;
        Ok(run.output(output, all))
    }
}

impl GroupRun {
    /// Collects every input at its home, from the first poll on.
    fn collect_all(self, streams: Vec<SendableRecordBatchStream>) -> AllCollected {
        let all = async move {
            let spawn = |(input, stream)| {
                let run = self.clone();
                let home = home_of(&self.runtime, input);
                let task =
                    unpanicked("a worker", async move { run.collect(home, input, stream).await });
                BoundTask::new(self.runtime.spawn_on(worker_of(input), task))
            };
            let tasks: Vec<_> = streams.into_iter().enumerate().map(spawn).collect();
            let mut ended = Vec::with_capacity(tasks.len());
            for task in tasks {
                ended.push(task.join("collecting groups").await.map_err(Arc::new)?);
            }
            self.gather(ended).await.map(Arc::new).map_err(Arc::new)
        };
        all.boxed().shared()
    }

    /// The results of all inputs; the rest of an input's work is done at its home.
    async fn gather(&self, ended: Vec<Ended>) -> Result<Gathered> {
        let error = |error| self.query.error(error);
        self.stage.settle(&ended).map_err(error)?;
        let mut collected = Vec::with_capacity(ended.len());
        if ended.len() == 1 || ended.iter().all(Ended::is_finished) {
            for ended in ended {
                collected.push(ended.finish().map_err(error)?);
            }
            return Ok(Gathered::new(Arc::clone(&self.stage), collected));
        }
        let spawn = |(input, ended): (usize, Ended)| {
            let query = Arc::clone(&self.query);
            let finish = async move { ended.finish().map_err(|error| query.error(error)) };
            let task = unpanicked("a worker", finish);
            BoundTask::new(self.runtime.spawn_on(worker_of(input), task))
        };
        let tasks: Vec<_> = ended.into_iter().enumerate().map(spawn).collect();
        for task in tasks {
            collected.push(task.join("collecting groups").await?);
        }
        Ok(Gathered::new(Arc::clone(&self.stage), collected))
    }

    /// One input's rows.
    async fn collect(
        &self,
        home: NodeId,
        input: usize,
        mut stream: SendableRecordBatchStream,
    ) -> Result<Ended> {
        let metrics = BaselineMetrics::new(&self.metrics, input);
        let mut collector = Collector::new(Arc::clone(&self.stage), Some(home));
        while let Some(batch) = stream.next().await {
            let _timer = metrics.elapsed_compute().timer();
            let rows = self.query.evaluate(&batch?)?;
            collector.push(&rows).map_err(|error| self.query.error(error))?;
        }
        let _timer = metrics.elapsed_compute().timer();
        collector.end().map_err(|error| self.query.error(error))
    }

    /// The stream of an output.
    fn output(self, output: usize, all: AllCollected) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches = async move {
            let gathered = all.await.map_err(DataFusionError::Shared)?;
            Ok::<_, DataFusionError>(self.batches(output, gathered))
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.into_stream().try_flatten()))
    }

    /// The stream of a partition that has its groups to itself.
    pub(super) fn alone(
        self,
        partition: usize,
        input: SendableRecordBatchStream,
    ) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches = async move {
            let home = home_of(&self.runtime, partition);
            let ended = self.collect(home, partition, input).await?;
            let gathered = self.gather(vec![ended]).await?;
            Ok::<_, DataFusionError>(self.batches(0, Arc::new(gathered)))
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.into_stream().try_flatten()))
    }

    /// The batches of an output.
    fn batches(
        self,
        output: usize,
        gathered: Arc<Gathered>,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let home = home_of(&self.runtime, output);
        let outputs = Outputs::new(gathered, output, Some(home), self.rows);
        let counts = Counts::new(&self.metrics, output);
        let reading = Reading { run: self, outputs: Some(outputs), home, counts };
        let batches = futures::stream::try_unfold(reading, |mut reading| async move {
            let batch = reading.next_batch().await?;
            Ok::<_, DataFusionError>(batch.map(|batch| (batch, reading)))
        });
        batches.boxed()
    }
}

/// An output while it is read.
struct Reading {
    run: GroupRun,
    /// `None` while it visits another node.
    outputs: Option<Outputs>,
    home: NodeId,
    counts: Counts,
}

struct Counts {
    baseline: BaselineMetrics,
    local: Count,
    remote: Count,
}

impl Counts {
    fn new(metrics: &ExecutionPlanMetricsSet, output: usize) -> Self {
        let count = |name| MetricBuilder::new(metrics).counter(name, output);
        let baseline = BaselineMetrics::new(metrics, output);
        Self { baseline, local: count("bytes_local"), remote: count("bytes_remote") }
    }

    fn read(&self, is_local: bool, bytes: usize) {
        if is_local { self.local.add(bytes) } else { self.remote.add(bytes) }
    }
}

impl Reading {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let elapsed = self.counts.baseline.elapsed_compute().clone();
            let timer = elapsed.timer();
            let next = self.outputs()?.advance();
            match next.map_err(|error| self.run.query.error(error))? {
                Next::End => return Ok(None),
                Next::Batch(batch) => {
                    self.counts.baseline.record_output(batch.num_rows());
                    return named(&batch, &self.run.schema).map(Some);
                }
                Next::Visit(visit) => {
                    drop(timer);
                    self.visit(visit).await?;
                    if visit.bytes > UNINTERRUPTED_BYTES {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }

    /// Reads a piece of one input: from here, or, where threads migrate, on the node that has it.
    async fn visit(&mut self, visit: Visit) -> Result<()> {
        let Visit { home, bytes, travels, copied, .. } = visit;
        let away = home.filter(|home| travels && *home != self.home);
        let worker =
            away.and_then(|home| Some(self.run.runtime.pool_nearest(home)?.workers().next()?.id));
        self.counts.read(worker.is_some() || home == Some(self.home), bytes);
        self.counts.read(false, copied.map_or(0, |(_, bytes)| bytes));
        let Some(worker) = worker else {
            let elapsed = self.counts.baseline.elapsed_compute().clone();
            let _timer = elapsed.timer();
            let visited = self.outputs()?.visit();
            return visited.map_err(|error| self.run.query.error(error));
        };
        let taken = self.outputs.take();
        let mut outputs = taken.ok_or_else(gone)?;
        let query = Arc::clone(&self.run.query);
        let visit = unpanicked("a worker", async move {
            outputs.visit().map_err(|error| query.error(error))?;
            Ok(outputs)
        });
        let task = BoundTask::new(self.run.runtime.spawn_on(worker, visit));
        self.outputs = Some(task.join("visiting a node").await?);
        Ok(())
    }

    fn outputs(&mut self) -> Result<&mut Outputs> {
        self.outputs.as_mut().ok_or_else(gone)
    }
}

fn gone() -> DataFusionError {
    internal_datafusion_err!("an aggregation output was polled after it failed")
}
