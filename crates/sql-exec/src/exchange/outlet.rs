//! Batches that wait for an output: charged to the query's memory, or spilled.
//!
//! Every producer spills into its own files for each output, created when first needed, so
//! that each file has one writer and is read in the order it was written. With files shared by the
//! producers, an output could wait for more of one file while its batch is in another.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::spill_pool::{self, SpillPoolSink};
use futures::StreamExt;

use super::bytes::batch_bytes;
use super::gate::Gate;

/// State that the inputs and outputs of an exchange share; every output gets the same failure.
pub(super) type ExchangeGate = Gate<WaitingBatch, Arc<DataFusionError>>;

/// A batch on its way to an output.
pub(super) enum WaitingBatch {
    /// In memory, charged to the query until the output takes it or is dropped.
    InMemory(RecordBatch, MemoryReservation),
    /// In a producer's spill files.
    Spilled {
        /// The producer.
        producer: usize,
        /// With the first batch that it spills, the reader of its files.
        reader: Option<SendableRecordBatchStream>,
    },
}

/// The memory of one output, and the means to spill for it.
pub(super) struct Outlet {
    memory: MemoryReservation,
    spills: Arc<SpillManager>,
    file_bytes_max: usize,
}

impl Outlet {
    /// The outlet of an output.
    pub(super) fn new(
        schema: &SchemaRef,
        output: usize,
        context: &TaskContext,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Self {
        let memory = MemoryConsumer::new(format!("ExchangeExec[{output}]"))
            .with_can_spill(true)
            .register(context.memory_pool());
        let spills = SpillManager::new(
            context.runtime_env(),
            SpillMetrics::new(metrics, output),
            schema.clone(),
        );
        let options = &context.session_config().options().execution;
        let file_bytes_max = options.max_spill_file_size_bytes.get();
        Self { memory, spills: Arc::new(spills), file_bytes_max }
    }

    /// Charges the batch, or spills it where memory is short. Returns its bytes too. `sink` is the
    /// producer's for this output.
    pub(super) fn accept(
        &self,
        producer: usize,
        batch: RecordBatch,
        sink: &mut Option<SpillPoolSink>,
    ) -> Result<(WaitingBatch, usize)> {
        let bytes = batch_bytes(&batch);
        let charge = self.memory.new_empty();
        if charge.try_grow(bytes).is_ok() {
            return Ok((WaitingBatch::InMemory(batch, charge), bytes));
        }
        let (sink, reader) = match sink {
            Some(sink) => (sink, None),
            None => {
                let (new, reader) =
                    spill_pool::spsc_channel(self.file_bytes_max, self.spills.clone());
                (sink.insert(new), Some(reader))
            }
        };
        sink.push_batch(&batch)?;
        Ok((WaitingBatch::Spilled { producer, reader }, bytes))
    }
}

/// The reading side of an output's spilled batches.
#[derive(Default)]
pub(super) struct Respill {
    readers: HashMap<usize, SendableRecordBatchStream>,
    /// The producer whose spilled batch is next.
    next: Option<usize>,
}

impl Respill {
    /// The next batch is one that `producer` spilled.
    pub(super) fn expect(&mut self, producer: usize, reader: Option<SendableRecordBatchStream>) {
        self.readers.extend(reader.map(|reader| (producer, reader)));
        self.next = Some(producer);
    }

    /// The next batch if it is spilled, else `None`.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let Some(producer) = self.next else { return Poll::Ready(None) };
        let batch = match self.readers.get_mut(&producer) {
            Some(reader) => ready!(reader.poll_next_unpin(context)),
            None => None,
        };
        self.next = None;
        Poll::Ready(Some(batch.unwrap_or_else(|| {
            Err(internal_datafusion_err!("a spilled batch of an exchange is missing"))
        })))
    }
}
