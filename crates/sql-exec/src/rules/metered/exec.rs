//! The operator that accounts for rows that no other operator accounts for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use atoll_store::table::compact_batch;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::{Stream, StreamExt};

use crate::memory::{Gauge, batch_bytes};
use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// Copies of its input that a window operator keeps: the batches, and all of them in one.
const WINDOW_COPIES: usize = 2;

/// Batches of texts that wait to be merged, one for each partition of a sort, may take this share of the
/// limit together before their texts are copied.
const SORTED_SHARE: usize = 16;

/// Texts of a column are copied together if they lie in more buffers than this.
const BUFFERS_MAX: usize = 16;

/// The work done for the operator below or above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Rows from a source: they go on while the [`Gauge`] allows.
    Source,
    /// Rows that a window operator keeps to the end: they are reserved.
    Kept,
    /// Sorted texts: what they keep alive is bounded, and they lie together.
    Sorted,
}

/// Passes batches on, and fails when memory is short.
pub type MeteredExec = PassThroughExec<Duty>;

impl PassThrough for Duty {
    const NAME: &'static str = "MeteredExec";

    fn details(&self, _: &Arc<dyn ExecutionPlan>) -> String {
        format!("{self:?}")
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let rows = input.execute(partition, Arc::clone(&context))?;
        let pool = context.memory_pool();
        let work = match self {
            Self::Source => {
                MeterWork::Check(input.name().to_owned(), Gauge::from_context(&context))
            }
            Self::Kept => {
                let kept = MemoryConsumer::new(format!("WindowAggExec[{partition}]"));
                MeterWork::Reserve(kept.register(pool))
            }
            Self::Sorted => MeterWork::Compact(match pool.memory_limit() {
                MemoryLimit::Finite(limit) => {
                    limit / SORTED_SHARE / input.properties().partitioning.partition_count().max(1)
                }
                _ => usize::MAX,
            }),
        };
        Ok(Box::pin(BatchMeter { input: rows, work }))
    }
}

/// The batches of one partition.
struct BatchMeter {
    input: SendableRecordBatchStream,
    work: MeterWork,
}

enum MeterWork {
    /// Checks the gauge under this name.
    Check(String, Option<Arc<Gauge>>),
    /// Reserves until the stream is dropped.
    Reserve(MemoryReservation),
    /// Copies the texts of batches that take more than this, or lie scattered.
    Compact(usize),
}

impl MeterWork {
    fn on(&self, batch: RecordBatch) -> Result<RecordBatch> {
        match self {
            Self::Check(name, Some(gauge)) => gauge.check(name)?,
            Self::Check(_, None) => {}
            Self::Reserve(kept) => kept.try_grow(WINDOW_COPIES * batch_bytes(&batch))?,
            Self::Compact(most) => return compacted(batch, *most),
        }
        Ok(batch)
    }
}

impl Stream for BatchMeter {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.input.poll_next_unpin(context));
        Poll::Ready(match next {
            Some(Ok(batch)) => Some(self.work.on(batch)),
            next => next,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.input.size_hint()
    }
}

impl RecordBatchStream for BatchMeter {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// The batch, with its texts copied if they lie in many buffers or keep more than `most` bytes alive.
fn compacted(batch: RecordBatch, most: usize) -> Result<RecordBatch> {
    let is_scattered = batch.columns().iter().any(|column| buffers(column) > BUFFERS_MAX);
    if is_scattered || get_record_batch_memory_size(&batch) > most {
        return Ok(compact_batch(&batch)?);
    }
    Ok(batch)
}

/// The buffers in which a column's texts lie.
fn buffers(column: &Arc<dyn Array>) -> usize {
    match column.data_type() {
        DataType::Utf8View => column.as_string_view().data_buffers().len(),
        DataType::BinaryView => column.as_binary_view().data_buffers().len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn texts_are_copied_only_where_they_keep_much_alive() {
        let schema = Schema::new(vec![Field::new("s", DataType::Utf8View, false)]);
        let texts = StringViewArray::from_iter_values((0..10_000).map(|_| "x".repeat(100)));
        let all = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(texts)]).unwrap();
        let few = all.slice(10, 10);
        let kept = compacted(few.clone(), 100 << 20).unwrap();
        assert!(get_record_batch_memory_size(&kept) > 1_000_000);
        let copied = compacted(few.clone(), 10_000).unwrap();
        assert!(get_record_batch_memory_size(&copied) < 10_000);
        assert_eq!(copied, few);
    }

    #[test]
    fn texts_in_many_buffers_are_copied_together() {
        let part = |at: usize| StringViewArray::from_iter_values([format!("{at:>100}")]);
        let parts: Vec<_> = (0..100).map(part).collect();
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part as _).collect();
        let texts = datafusion::arrow::compute::concat(&parts).unwrap();
        assert_eq!(buffers(&texts), 100);
        let schema = Schema::new(vec![Field::new("s", DataType::Utf8View, false)]);
        let scattered = RecordBatch::try_new(Arc::new(schema), vec![texts]).unwrap();
        let together = compacted(scattered.clone(), usize::MAX).unwrap();
        assert_eq!(buffers(together.column(0)), 1);
        assert_eq!(together, scattered);
    }
}
