//! One run of an operator: rows are collected, put in order at their homes, and given out with the results.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_runtime::Runtime;
use atoll_store::table::compact_array;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt};
use parking_lot::Mutex;

use super::collect::{Collected, Collector};
use super::evaluate::{Evaluation, ResultColumn};
use super::fallback::{OldPlan, RemainingRows};
use super::key::{KeyPacking, Word};
use super::order::{Packed, cuts, ordered, packed, packing, part_of};
use super::plan::{OutputColumns, WindowPlan};
use super::rows::{KeptBatch, KeptRows, OrderedRows, RowNumber};
use super::top::TopRows;
use crate::exchange::worker_of;
use atoll_sql_common::task::{BoundTask, unpanicked};

/// Fewer rows are put in order where they are asked for.
const SHARED_ROWS: usize = 8192;

/// The context of a run, without its input.
#[derive(Clone)]
pub(super) struct WindowRun {
    pub(super) plan: Arc<WindowPlan>,
    pub(super) old: Arc<OldPlan>,
    /// The rows of each partition that are given out; all without it.
    pub(super) top: Option<TopRows>,
    pub(super) output: Arc<OutputColumns>,
    pub(super) input: SchemaRef,
    /// Partitions of the input.
    pub(super) inputs: usize,
    pub(super) runtime: Runtime,
    pub(super) context: Arc<TaskContext>,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

/// All rows of the inputs with their results.
pub(super) enum Arranged {
    Ready(ReadyRows),
    /// The results of DataFusion's operators, until they are taken.
    Old(Mutex<Option<SendableRecordBatchStream>>),
}

/// The rows once all outputs wait for them.
pub(super) type AllArranged =
    Shared<BoxFuture<'static, Result<Arc<Arranged>, Arc<DataFusionError>>>>;

/// Rows in order, with their results.
pub(super) struct ReadyRows {
    kept: Arc<KeptRows>,
    rows: Vec<RowNumber>,
    results: Vec<ResultColumn>,
    /// The rows of each output batch.
    batches: Vec<Range<usize>>,
    /// The batches of each output.
    outputs: Vec<Range<usize>>,
    /// For as long as they are there.
    _reserved: Vec<MemoryReservation>,
}

impl fmt::Debug for WindowRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WindowRun")
    }
}

impl WindowRun {
    /// The stream of a partition that has its rows to itself.
    pub(super) fn alone(
        self,
        partition: usize,
        input: SendableRecordBatchStream,
    ) -> SendableRecordBatchStream {
        let run = self.clone();
        let all = async move { run.arrange(partition, vec![input], 1).await.map(Arc::new) };
        self.stream(partition, 0, all.boxed())
    }

    /// Reads all inputs from the first poll on, for `outputs` outputs.
    pub(super) fn arrange_all(
        self,
        inputs: Vec<SendableRecordBatchStream>,
        outputs: usize,
    ) -> AllArranged {
        let all = async move { self.arrange(0, inputs, outputs).await };
        all.map(|arranged| arranged.map(Arc::new).map_err(Arc::new)).boxed().shared()
    }

    /// The stream of an output.
    pub(super) fn output(self, output: usize, all: AllArranged) -> SendableRecordBatchStream {
        self.stream(output, output, all.map_err(DataFusionError::Shared).boxed())
    }

    fn stream(
        self,
        partition: usize,
        output: usize,
        all: BoxFuture<'static, Result<Arc<Arranged>>>,
    ) -> SendableRecordBatchStream {
        let output_columns = Arc::clone(&self.output);
        let schema = Arc::clone(&output_columns.schema);
        let batches = async move {
            let arranged = all.await?;
            let old = match arranged.as_ref() {
                Arranged::Old(stream) => Some(stream.lock().take()),
                Arranged::Ready(_) => None,
            };
            Ok::<_, DataFusionError>(match old {
                Some(Some(stream)) => stream.map(move |batch| output_columns.of(&batch?)).boxed(),
                Some(None) => futures::stream::empty().boxed(),
                None => self.batches(partition, output, arranged),
            })
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.into_stream().try_flatten()))
    }

    /// The stream of all rows, which the workers gather batch by batch.
    pub(super) fn in_order(self, all: AllArranged) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.output.schema);
        let batches = async move {
            let arranged = all.map_err(DataFusionError::Shared).await?;
            let old = match arranged.as_ref() {
                Arranged::Old(stream) => stream.lock().take(),
                Arranged::Ready(_) => None,
            };
            Ok::<_, DataFusionError>(match old {
                Some(stream) => stream,
                None => self.gathered_by_workers(arranged),
            })
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.into_stream().try_flatten()))
    }

    fn gathered_by_workers(self, arranged: Arc<Arranged>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.output.schema);
        let (rows, workers) = match arranged.as_ref() {
            Arranged::Ready(ready) => (ready.rows.len(), ready.outputs.len().max(1)),
            Arranged::Old(_) => (0, 1),
        };
        // A worker waits for its turn with a batch or two.
        let ahead = if rows < SHARED_ROWS { 1 } else { 2 * workers };
        let batches = match arranged.as_ref() {
            Arranged::Ready(ready) => ready.batches.len(),
            Arranged::Old(_) => 0,
        };
        let metrics = BaselineMetrics::new(&self.metrics, 0);
        let runtime = self.runtime.clone();
        let gathered = move |at: usize| {
            let (arranged, output) = (Arc::clone(&arranged), Arc::clone(&self.output));
            let metrics = metrics.clone();
            let gather = async move {
                let _timer = metrics.elapsed_compute().timer();
                let Arranged::Ready(ready) = arranged.as_ref() else {
                    return internal_err!("rows that are not kept are not gathered");
                };
                let batch = ready.batch(&output, at)?;
                metrics.record_output(batch.num_rows());
                Ok(batch)
            };
            match ahead {
                1 => gather.boxed(),
                _ => {
                    let task = runtime.spawn_on(worker_of(at), unpanicked("a worker", gather));
                    BoundTask::new(task).join("gathering rows").boxed()
                }
            }
        };
        let batches = futures::stream::iter(0..batches).map(gathered).buffered(ahead);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }

    fn batches(
        self,
        partition: usize,
        output: usize,
        arranged: Arc<Arranged>,
    ) -> futures::stream::BoxStream<'static, Result<RecordBatch>> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let Arranged::Ready(ready) = arranged.as_ref() else {
            return futures::stream::empty().boxed();
        };
        let batches = ready.outputs.get(output).cloned().unwrap_or_default();
        let batch = move |at: usize| {
            let _timer = metrics.elapsed_compute().timer();
            let Arranged::Ready(ready) = arranged.as_ref() else { return Ok(None) };
            let batch = ready.batch(&self.output, at)?;
            metrics.record_output(batch.num_rows());
            Ok(Some(batch))
        };
        futures::stream::iter(batches)
            .map(batch)
            .try_filter_map(|batch| async move { Ok(batch) })
            .boxed()
    }

    /// The rows of all inputs, of which the first belongs to `partition`.
    async fn arrange(
        &self,
        partition: usize,
        inputs: Vec<SendableRecordBatchStream>,
        outputs: usize,
    ) -> Result<Arranged> {
        let short = Arc::new(AtomicBool::new(false));
        let collect = |(at, input): (usize, SendableRecordBatchStream)| {
            let number = partition + at;
            let name = format!("WindowExec[{number}]");
            let reserved = MemoryConsumer::new(name).with_can_spill(true);
            let collector = Collector {
                plan: Arc::clone(&self.plan),
                reserved: reserved.register(self.context.memory_pool()),
                inputs: self.inputs,
                pool: Arc::clone(self.context.memory_pool()),
                short: Arc::clone(&short),
                metrics: BaselineMetrics::new(&self.metrics, number),
            };
            collector.collect(input)
        };
        let collected: Vec<_> = inputs.into_iter().enumerate().map(collect).collect();
        let collected = self.at_homes("collecting rows", collected).await?;
        if short.load(Ordering::Relaxed) {
            return self.old(partition, collected);
        }
        let mut reserved = Vec::new();
        let (mut batches, mut ranges) = (Vec::new(), Vec::new());
        for input in collected {
            let from = batches.len();
            batches.extend(input.batches);
            ranges.push(from..batches.len());
            reserved.push(input.reserved);
        }
        let rows: usize = batches.iter().map(|kept: &KeptBatch| kept.batch.num_rows()).sum();
        let mut outputs = outputs;
        if rows < SHARED_ROWS {
            ranges.clear();
            ranges.push(0..batches.len());
            outputs = 1;
        }
        let kept = Arc::new(KeptRows { schema: Arc::clone(&self.input), batches });
        let packing = Arc::new(packing(&kept, &self.plan.order));
        let ordered = match packing.is_narrow() {
            true => self.ordered::<u64>(&kept, ranges, &packing, outputs).await?,
            false => self.ordered::<u128>(&kept, ranges, &packing, outputs).await?,
        };
        self.evaluate(kept, ordered, reserved).map(Arranged::Ready)
    }

    /// The results of DataFusion's operators.
    fn old(&self, partition: usize, collected: Vec<Collected>) -> Result<Arranged> {
        MetricBuilder::new(&self.metrics).counter("fallbacks", partition).add(1);
        let remaining = Arc::new(RemainingRows::new(collected, &self.input));
        let options = self.context.session_config().options();
        let plan = self.old.over(remaining, options)?;
        let stream = plan.execute(0, Arc::clone(&self.context))?;
        Ok(Arranged::Old(Mutex::new(Some(stream))))
    }

    /// The rows in order, in a part for each output.
    async fn ordered<W: Word>(
        &self,
        kept: &Arc<KeptRows>,
        ranges: Vec<Range<usize>>,
        packing: &Arc<KeyPacking>,
        outputs: usize,
    ) -> Result<Vec<OrderedRows>> {
        let pack = |batches: Range<usize>| {
            let (kept, packing) = (Arc::clone(kept), Arc::clone(packing));
            async move { Ok(packed::<W>(&kept, batches, &packing)) }
        };
        let mut all = self.at_homes("packing keys", ranges.into_iter().map(pack).collect()).await?;
        let cuts = Arc::new(cuts(&all, outputs));
        let mut whole: Option<Packed<W>> = match (outputs, all.len()) {
            (1, 1) => all.pop(),
            (1, _) => Some(all.drain(..).flatten().collect()),
            _ => None,
        };
        let all = Arc::new(all);
        let order = |part: usize| {
            let (kept, packing, plan) =
                (Arc::clone(kept), Arc::clone(packing), Arc::clone(&self.plan));
            let (all, cuts, whole, top) =
                (Arc::clone(&all), Arc::clone(&cuts), whole.take(), self.top);
            async move {
                let packed = whole.unwrap_or_else(|| part_of(&all, &cuts, part));
                let Some(top) = top else { return ordered(&kept, packed, &packing, &plan.order) };
                let packed = top.candidates(packed, &packing);
                Ok(top.of(&ordered(&kept, packed, &packing, &plan.order)?))
            }
        };
        self.at_homes("sorting rows", (0..outputs).map(order).collect()).await
    }

    fn evaluate(
        &self,
        kept: Arc<KeptRows>,
        parts: Vec<OrderedRows>,
        reserved: Vec<MemoryReservation>,
    ) -> Result<ReadyRows> {
        let rows = self.context.session_config().batch_size().max(1);
        let is_one_partition = self.plan.order.partition == 0;
        let mut ordered = OrderedRows::default();
        let (mut batches, mut outputs) = (Vec::new(), Vec::new());
        for part in parts {
            let (first, from) = (batches.len(), ordered.len());
            let end = from + part.len();
            batches.extend((from..end).step_by(rows).map(|at| at..(at + rows).min(end)));
            outputs.push(first..batches.len());
            match from {
                0 => ordered = part,
                _ => ordered.append(part, is_one_partition),
            }
        }
        let order = &self.plan.order;
        let evaluation = Evaluation { kept: &kept, ordered: &ordered, order, batches: &batches };
        let functions = self.plan.functions.iter().zip(&self.plan.exprs).enumerate();
        let results = functions
            .map(|(at, (function, expr))| evaluation.evaluate(at, function, expr.as_ref()))
            .collect::<Result<_>>()?;
        let rows = ordered.rows;
        Ok(ReadyRows { kept, rows, results, batches, outputs, _reserved: reserved })
    }

    /// The results of pieces of work, each done at the home of its number, or here if there is one.
    async fn at_homes<T: Send + 'static>(
        &self,
        doing: &str,
        pieces: Vec<impl Future<Output = Result<T>> + Send + 'static>,
    ) -> Result<Vec<T>> {
        let mut done = Vec::with_capacity(pieces.len());
        if pieces.len() == 1 {
            for piece in pieces {
                done.push(piece.await?);
            }
            return Ok(done);
        }
        let spawn = |(at, piece)| {
            BoundTask::new(self.runtime.spawn_on(worker_of(at), unpanicked("a worker", piece)))
        };
        let tasks: Vec<_> = pieces.into_iter().enumerate().map(spawn).collect();
        for task in tasks {
            done.push(task.join(doing).await?);
        }
        Ok(done)
    }
}

impl ReadyRows {
    /// An output batch.
    fn batch(&self, output: &OutputColumns, at: usize) -> Result<RecordBatch> {
        let range = self.batches[at].clone();
        let inputs = self.kept.schema.fields().len();
        let column = |column: &usize| match column.checked_sub(inputs) {
            None => {
                let rows = &self.rows[range.clone()];
                self.kept.gather(|kept| kept.batch.column(*column), None, rows)
            }
            Some(number) => match &self.results[number] {
                ResultColumn::Batches(batches) => Ok(Arc::clone(&batches[at])),
                ResultColumn::Rows { rows, default } => {
                    let argument = |kept| KeptBatch::argument(kept, number).unwrap_or(default);
                    self.kept.gather(argument, Some(default), &rows[range.clone()])
                }
            },
        };
        let columns = output.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        // The texts of a batch come from anywhere.
        let columns = columns.iter().map(compact_array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
        let schema = Arc::clone(&output.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}
