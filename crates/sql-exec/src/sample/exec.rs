//! Draws rows while they pass.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use atoll_sys::SplitMix64;
use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;

use super::node::{SampleDraw, SampleUnit};
use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// A part of the input's rows, drawn separately in each partition.
pub(super) type SampleExec = PassThroughExec<SampleDraw>;

impl PassThrough for SampleDraw {
    const NAME: &'static str = "SampleExec";
    const EVERY_ROW: bool = false;

    fn details(&self, _: &Arc<dyn ExecutionPlan>) -> String {
        self.to_string()
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let rows = input.execute(partition, context)?;
        let mut drawn = PartitionSample::new(*self, partition);
        let rows = rows.try_filter_map(move |batch| {
            let kept = drawn.sample(batch);
            async move { kept }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(input.schema(), rows)))
    }
}

/// The sample of one partition.
struct PartitionSample {
    draw: SampleDraw,
    random: SplitMix64,
}

impl PartitionSample {
    fn new(draw: SampleDraw, partition: usize) -> Self {
        let seed = match draw.seed {
            // Partitions draw differently.
            Some(seed) => SplitMix64::new(SplitMix64::new(seed).next() ^ partition as u64).next(),
            None => RandomState::new().hash_one(partition),
        };
        Self { draw, random: SplitMix64::new(seed) }
    }

    fn sample(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        let Some(share) = self.draw.share else { return Ok(Some(batch)) };
        match self.draw.unit {
            SampleUnit::Batch => Ok((self.random.next() < share).then_some(batch)),
            SampleUnit::Row => {
                let keep = (0..batch.num_rows()).map(|_| Some(self.random.next() < share));
                let keep: BooleanArray = keep.collect();
                Ok(Some(filter_record_batch(&batch, &keep)?))
            }
        }
    }
}
