//! The rows of an input, kept until they are all there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::StreamExt;

use super::plan::WindowPlan;
use super::rows::KeptBatch;
use crate::memory::{array_bytes, batch_bytes};

/// Batches of fewer rows are put together.
const BATCH_ROWS_MIN: usize = 1024;
/// The rows of these.
const GATHERED_ROWS: usize = 8192;
/// Rows of an input are counted in 32 bits.
const ROWS_MAX: usize = u32::MAX as usize / 2;

/// What came from an input.
pub(super) struct Collected {
    pub(super) batches: Vec<KeptBatch>,
    /// Memory for them and for what is computed.
    pub(super) reserved: MemoryReservation,
    /// What has not been read, where memory is short.
    pub(super) rest: Option<SendableRecordBatchStream>,
}

/// Reads the rows of an input until it ends, or an input is `short` of memory.
pub(super) struct Collector {
    pub(super) plan: Arc<WindowPlan>,
    pub(super) reserved: MemoryReservation,
    /// How many inputs the operator reads at the same time.
    pub(super) inputs: usize,
    pub(super) pool: Arc<dyn MemoryPool>,
    /// Whether memory is short for one of the inputs.
    pub(super) short: Arc<AtomicBool>,
    pub(super) metrics: BaselineMetrics,
}

impl Collector {
    pub(super) async fn collect(self, mut input: SendableRecordBatchStream) -> Result<Collected> {
        let (mut batches, mut rows) = (Vec::new(), 0);
        let has_columns = !input.schema().fields().is_empty();
        let mut small = BatchCoalescer::new(input.schema(), GATHERED_ROWS)
            .with_biggest_coalesce_batch_size(Some(BATCH_ROWS_MIN));
        while !self.short.load(Ordering::Relaxed) {
            let next = input.next().await.transpose()?;
            let _timer = self.metrics.elapsed_compute().timer();
            let is_last = next.is_none();
            match next {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) if has_columns => small.push_batch(batch)?,
                Some(batch) => self.keep(batch, &mut batches, &mut rows)?,
                None => small.finish_buffered_batch()?,
            }
            while let Some(batch) = small.next_completed_batch() {
                self.keep(batch, &mut batches, &mut rows)?;
            }
            if is_last {
                return Ok(Collected { batches, reserved: self.reserved, rest: None });
            }
        }
        small.finish_buffered_batch()?;
        while let Some(batch) = small.next_completed_batch() {
            batches.push(KeptBatch { batch, keys: vec![], arguments: vec![] });
        }
        Ok(Collected { batches, reserved: self.reserved, rest: Some(input) })
    }

    fn keep(
        &self,
        batch: RecordBatch,
        batches: &mut Vec<KeptBatch>,
        rows: &mut usize,
    ) -> Result<()> {
        *rows += batch.num_rows();
        let kept = self.plan.kept(batch)?;
        // Texts of keys are copied where their first bytes are equal.
        let keys: usize = kept.keys.iter().map(array_bytes).sum();
        let bytes = batch_bytes(&kept.batch) + keys + self.plan.row_bytes() * kept.batch.num_rows();
        batches.push(kept);
        let is_short = match self.reserved.try_grow(bytes) {
            Ok(()) => *rows > ROWS_MAX || self.takes_most(),
            Err(error) if matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) => {
                true
            }
            Err(error) => return Err(error),
        };
        if is_short {
            self.short.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the inputs would take more memory than they leave: DataFusion's operators, which spill, need some to go
    /// on with the rows of one input while others are kept.
    fn takes_most(&self) -> bool {
        match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => {
                let left = limit.saturating_sub(self.pool.reserved());
                self.reserved.size().saturating_mul(self.inputs) > left
            }
            _ => false,
        }
    }
}
