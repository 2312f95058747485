//! One run of an exchange: from its input streams to one receiver per output.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use atoll_runtime::Runtime;
use atoll_topology::NodeId;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::Partitioning;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use futures::Stream;

use super::bytes::SentBytes;
use super::gate::Gate;
use super::homes::{PartitionHomes, home_of, worker_of};
use super::outlet::{ExchangeGate, Outlet, Respill, WaitingBatch};
use super::producer::{Producer, ProducerTimes};
use super::split::NodeCoalescer;
use atoll_sql_common::task::BoundTask;

/// The context of a run, without its input streams.
pub(super) struct RunPlan {
    /// The pools.
    pub(super) runtime: Runtime,
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
        let outlet = |output| Outlet::new(&self.schema, output, &self.context, &self.metrics);
        let outlets = (0..outputs).map(outlet).collect();
        let gate = Arc::new(Gate::new(streams.len(), outputs));
        let tasks = Arc::new(self.spawn(streams, &gate, &Arc::new(outlets)));
        let receiver = |output| Receiver {
            gate: gate.clone(),
            output,
            respill: Respill::default(),
            schema: self.schema.clone(),
            metrics: BaselineMetrics::new(&self.metrics, output),
            _tasks: tasks.clone(),
        };
        (0..outputs).map(receiver).collect()
    }

    fn spawn(
        &self,
        streams: Vec<SendableRecordBatchStream>,
        gate: &Arc<ExchangeGate>,
        outlets: &Arc<Vec<Outlet>>,
    ) -> Vec<BoundTask<()>> {
        let inputs = streams.len();
        let gatherings = self.gatherings(inputs);
        let homes = PartitionHomes::for_partitions(&self.runtime, outlets.len());
        let spawn = |(input, stream)| {
            let home = home_of(&self.runtime, input);
            let producer = Producer {
                input,
                gate: gate.clone(),
                outlets: outlets.clone(),
                gathering: gatherings.get(&home).cloned(),
                open: vec![true; outlets.len()],
                sinks: outlets.iter().map(|_| None).collect(),
                sent: SentBytes::new(&self.metrics, home, &homes),
                times: ProducerTimes::new(&self.metrics, input),
            };
            let task = producer.run(stream, self.partitioning.clone(), inputs);
            BoundTask::new(self.runtime.spawn_on(worker_of(input), task))
        };
        streams.into_iter().enumerate().map(spawn).collect()
    }

    /// The gathered pieces of each node with input partitions.
    fn gatherings(&self, inputs: usize) -> BTreeMap<NodeId, Arc<NodeCoalescer>> {
        if !self.bounded {
            return BTreeMap::new();
        }
        let mut producers = BTreeMap::new();
        for input in 0..inputs {
            *producers.entry(home_of(&self.runtime, input)).or_insert(0) += 1;
        }
        let rows = self.context.session_config().batch_size();
        let outputs = self.partitioning.partition_count();
        let gathering = |producers| NodeCoalescer::new(&self.schema, rows, outputs, producers);
        producers.into_iter().map(|(home, producers)| (home, gathering(producers))).collect()
    }
}

/// The rows of one output, in whichever task polls it.
pub(super) struct Receiver {
    gate: Arc<ExchangeGate>,
    output: usize,
    respill: Respill,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    /// Ends the loops over the inputs with the last receiver.
    _tasks: Arc<Vec<BoundTask<()>>>,
}

impl Receiver {
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let elapsed = self.metrics.elapsed_compute().clone();
        let _timer = elapsed.timer();
        loop {
            if let Some(batch) = ready!(self.respill.poll(context)) {
                return Poll::Ready(Some(batch));
            }
            match ready!(self.gate.poll_receive(self.output, context)) {
                Some(Ok(WaitingBatch::InMemory(batch, _charge))) => {
                    return Poll::Ready(Some(Ok(batch)));
                }
                Some(Ok(WaitingBatch::Spilled { producer, reader })) => {
                    self.respill.expect(producer, reader);
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(DataFusionError::from(&error)))),
                None => return Poll::Ready(None),
            }
        }
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
