//! One run of an exchange: from its input streams to one receiver per output.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use atoll_runtime::Runtime;
use atoll_topology::NodeId;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::Partitioning;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use futures::{Stream, StreamExt};

use super::bytes::SentBytes;
use super::gate::Gate;
use super::homes::{Homes, home_of, worker_of};
use super::outlet::{Outlet, Waiting};
use super::producer::{Producer, ProducerTimes};
use super::split::Gathering;
use super::task::BoundTask;

/// All that a run needs besides its input streams.
pub(super) struct RunPlan {
    /// The pools.
    pub(super) runtime: Arc<Runtime>,
    /// How rows are split.
    pub(super) partitioning: Partitioning,
    /// The schema of the rows.
    pub(super) schema: SchemaRef,
    /// Whether the input ends; if not, pieces are not held back to be gathered.
    pub(super) bounded: bool,
    /// The counters.
    pub(super) metrics: ExecutionPlanMetricsSet,
    /// The query.
    pub(super) context: Arc<TaskContext>,
}

impl RunPlan {
    /// Spawns the loop over each input partition at its home; returns a receiver per output.
    pub(super) fn start(&self, streams: Vec<SendableRecordBatchStream>) -> Vec<Receiver> {
        let outputs = self.partitioning.partition_count();
        let (outlets, spilled): (Vec<_>, Vec<_>) = (0..outputs)
            .map(|output| Outlet::new(&self.schema, output, &self.context, &self.metrics))
            .unzip();
        let gate = Arc::new(Gate::new(streams.len(), outputs));
        let tasks = Arc::new(self.spawn(streams, &gate, &Arc::new(outlets)));
        let receiver = |(output, spilled)| Receiver {
            gate: gate.clone(),
            output,
            spilled,
            reading_spilled: false,
            schema: self.schema.clone(),
            metrics: BaselineMetrics::new(&self.metrics, output),
            _tasks: tasks.clone(),
        };
        spilled.into_iter().enumerate().map(receiver).collect()
    }

    fn spawn(
        &self,
        streams: Vec<SendableRecordBatchStream>,
        gate: &Arc<Gate<Waiting>>,
        outlets: &Arc<Vec<Outlet>>,
    ) -> Vec<BoundTask> {
        let inputs = streams.len();
        let gatherings = self.gatherings(inputs);
        let homes = Homes::of(&self.runtime, outlets.len());
        let spawn = |(input, stream)| {
            let home = home_of(&self.runtime, input);
            let producer = Producer {
                input,
                gate: gate.clone(),
                outlets: outlets.clone(),
                gathering: gatherings.get(&home).cloned(),
                open: vec![true; outlets.len()],
                sent: SentBytes::new(&self.metrics, home, &homes),
                times: ProducerTimes::new(&self.metrics, input),
            };
            let task = producer.run(stream, self.partitioning.clone(), inputs);
            BoundTask::new(self.runtime.spawn_on(worker_of(input), task))
        };
        streams.into_iter().enumerate().map(spawn).collect()
    }

    /// Where each node with input partitions gathers its pieces.
    fn gatherings(&self, inputs: usize) -> BTreeMap<NodeId, Arc<Gathering>> {
        if !self.bounded {
            return BTreeMap::new();
        }
        let mut producers = BTreeMap::new();
        for input in 0..inputs {
            *producers.entry(home_of(&self.runtime, input)).or_insert(0) += 1;
        }
        let rows = self.context.session_config().batch_size();
        let outputs = self.partitioning.partition_count();
        let gathering = |producers| Gathering::new(&self.schema, rows, outputs, producers);
        producers.into_iter().map(|(home, producers)| (home, gathering(producers))).collect()
    }
}

/// The rows of one output, in whichever task polls it.
pub(super) struct Receiver {
    gate: Arc<Gate<Waiting>>,
    output: usize,
    spilled: SendableRecordBatchStream,
    /// Whether the next batch comes from the spill files.
    reading_spilled: bool,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    /// Ends the loops over the inputs with the last receiver.
    _tasks: Arc<Vec<BoundTask>>,
}

impl Receiver {
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let _timer = elapsed.timer();
        if !self.reading_spilled {
            match ready!(self.gate.poll_receive(self.output, context)) {
                Some(Ok(Waiting::InMemory(batch, _))) => return Poll::Ready(Some(Ok(batch))),
                Some(Ok(Waiting::Spilled)) => self.reading_spilled = true,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let batch = ready!(self.spilled.poll_next_unpin(context));
        self.reading_spilled = false;
        Poll::Ready(Some(batch.unwrap_or_else(|| {
            Err(internal_datafusion_err!("a spilled batch of an exchange is missing"))
        })))
    }
}

impl Stream for Receiver {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_batch(context);
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for Receiver {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.gate.close(self.output);
    }
}
