//! What waits for an output: batches charged to the query's memory, or spilled.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::spill::spill_pool::{self, SpillPoolWriter};
use std::sync::Arc;

use super::bytes::batch_bytes;

/// A batch on its way to an output.
pub(super) enum Waiting {
    /// In memory, charged to the query until the output takes it or is dropped.
    InMemory(RecordBatch, #[expect(dead_code, reason = "held for its drop")] MemoryReservation),
    /// In the output's spill files: its reader has one batch for every such mark.
    Spilled,
}

/// The producers' side of one output: its memory and its spill files.
pub(super) struct Outlet {
    memory: MemoryReservation,
    spill: SpillPoolWriter,
}

impl Outlet {
    /// The outlet of an output, and the reader of what it spills.
    pub(super) fn new(
        schema: &SchemaRef,
        output: usize,
        context: &TaskContext,
        metrics: &ExecutionPlanMetricsSet,
    ) -> (Self, SendableRecordBatchStream) {
        let memory = MemoryConsumer::new(format!("ExchangeExec[{output}]"))
            .with_can_spill(true)
            .register(context.memory_pool());
        let manager = SpillManager::new(
            context.runtime_env(),
            SpillMetrics::new(metrics, output),
            schema.clone(),
        );
        let file_bytes_max =
            context.session_config().options().execution.max_spill_file_size_bytes.get();
        let (spill, reader) = spill_pool::mpsc_channel(file_bytes_max, Arc::new(manager));
        (Self { memory, spill }, reader)
    }

    /// Charges the batch, or spills it where memory is short. Returns its bytes too.
    pub(super) fn accept(&self, batch: RecordBatch) -> Result<(Waiting, usize)> {
        let bytes = batch_bytes(&batch);
        let charge = self.memory.new_empty();
        if charge.try_grow(bytes).is_ok() {
            return Ok((Waiting::InMemory(batch, charge), bytes));
        }
        self.spill.push_batch(&batch)?;
        Ok((Waiting::Spilled, bytes))
    }
}
