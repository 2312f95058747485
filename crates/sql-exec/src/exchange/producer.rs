//! The loop over one input partition, run at that partition's home.

use std::future::poll_fn;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::Partitioning;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, Time};
use datafusion::physical_plan::repartition::BatchPartitioner;
use datafusion::physical_plan::spill::spill_pool::SpillPoolSink;
use futures::StreamExt;

use super::bytes::SentBytes;
use super::gate::Closed;
use super::outlet::{ExchangeGate, Outlet};
use super::split::NodeCoalescer;
use atoll_sql_common::task::unpanicked;

/// The destinations of one input partition's rows.
pub(super) struct Producer {
    /// The number of the input partition.
    pub(super) input: usize,
    /// The queues of the outputs.
    pub(super) gate: Arc<ExchangeGate>,
    /// The memory and spill files of the outputs.
    pub(super) outlets: Arc<Vec<Outlet>>,
    /// The pieces held back on this node; `None` if pieces are sent on at once.
    pub(super) gathering: Option<Arc<NodeCoalescer>>,
    /// Which outputs still listen.
    pub(super) open: Vec<bool>,
    /// The spill files by output, once there are any.
    pub(super) sinks: Vec<Option<SpillPoolSink>>,
    /// Bytes sent, by output.
    pub(super) sent: SentBytes,
    /// Time spent, by step.
    pub(super) times: ProducerTimes,
}

/// The time that one input partition spends in each step.
#[derive(Clone, Debug)]
pub(super) struct ProducerTimes {
    fetch: Time,
    split: Time,
    send: Time,
}

impl ProducerTimes {
    /// Timers of this input partition.
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, input: usize) -> Self {
        let timer = |name: &'static str| MetricBuilder::new(metrics).subset_time(name, input);
        Self { fetch: timer("fetch_time"), split: timer("split_time"), send: timer("send_time") }
    }
}

/// Fails the outputs if the loop is dropped before its end, as when its runtime shuts down.
struct EndGuard {
    gate: Arc<ExchangeGate>,
    input: usize,
    ended: bool,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if !self.ended {
            let input = self.input;
            self.gate.fail(Arc::new(exec_datafusion_err!(
                "input partition {input} of an exchange was stopped before its end"
            )));
        }
    }
}

impl Producer {
    /// Sends all rows of `stream` to their outputs, and the end or the failure to all of them.
    pub(super) async fn run(
        self,
        stream: SendableRecordBatchStream,
        partitioning: Partitioning,
        inputs: usize,
    ) {
        let gate = self.gate.clone();
        let mut ending = EndGuard { gate: gate.clone(), input: self.input, ended: false };
        match unpanicked("a worker", self.produce(stream, partitioning, inputs)).await {
            Ok(()) => gate.end(),
            Err(error) => gate.fail(Arc::new(error)),
        }
        ending.ended = true;
    }

    async fn produce(
        mut self,
        mut stream: SendableRecordBatchStream,
        partitioning: Partitioning,
        inputs: usize,
    ) -> Result<()> {
        let split = self.times.split.clone();
        let mut partitioner = BatchPartitioner::try_new(partitioning, split, self.input, inputs)?;
        while self.open.contains(&true)
            && let Some(batch) = self.fetch(&mut stream).await?
        {
            if batch.num_rows() > 0 {
                for piece in partitioner.partition_iter(batch)? {
                    let (output, piece) = piece?;
                    self.pass_on(output, piece).await?;
                }
            }
            tokio::task::consume_budget().await;
        }
        self.pass_on_rest().await
    }

    async fn fetch(&self, stream: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
        let _timer = self.times.fetch.timer();
        stream.next().await.transpose()
    }

    /// Gathers a piece, and sends the batches that this completes.
    async fn pass_on(&mut self, output: usize, piece: RecordBatch) -> Result<()> {
        if !self.open[output] {
            return Ok(());
        }
        let complete = match &self.gathering {
            Some(gathering) => gathering.add(output, piece)?,
            None => vec![piece],
        };
        self.send(output, complete).await
    }

    /// Sends what the node's producers still hold back, if this is the last of them.
    async fn pass_on_rest(&mut self) -> Result<()> {
        let Some(gathering) = self.gathering.clone().filter(|it| it.finish_one()) else {
            return Ok(());
        };
        for output in 0..self.open.len() {
            self.send(output, gathering.rest(output)?).await?;
        }
        Ok(())
    }

    async fn send(&mut self, output: usize, batches: Vec<RecordBatch>) -> Result<()> {
        let _timer = self.times.send.timer();
        for batch in batches {
            if !self.open[output] {
                break;
            }
            let (waiting, bytes) =
                self.outlets[output].accept(self.input, batch, &mut self.sinks[output])?;
            let mut item = Some(waiting);
            let sent =
                poll_fn(|context| self.gate.poll_send(self.input, output, &mut item, context));
            match sent.await {
                Ok(()) => self.sent.add(output, bytes),
                Err(Closed) => self.open[output] = false,
            }
        }
        Ok(())
    }
}
