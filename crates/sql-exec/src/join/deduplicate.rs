//! Rows of one side of a semi-, anti- or mark join, each value once.
//!
//! DataFusion's hash join makes every pair of rows with equal keys before it looks which rows of the kept
//! side have a partner (apache/datafusion#22854): with k rows of a key on either side these are k² pairs
//! for k rows. Of equal rows of the side that only filters, one is enough.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter_pushdown::FilterDescription;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;

use atoll_sql_common::operator::{PassThrough, PassThroughExec};

/// Bytes of rows that a partition remembers.
const REMEMBERED_BYTES: usize = 4 << 20;
/// Bytes that a remembered row takes in addition to its values.
const ROW_OVERHEAD: usize = 48;
/// Rows after which the operator judges whether looking for repeats pays.
const SAMPLE_ROWS: usize = 8192;
/// Rows that pass unchecked if it does not.
const UNSEEN_ROWS: usize = 64 * SAMPLE_ROWS;
/// It pays if one in so many rows repeats a row other than the previous one: repeats then become more frequent.
const SCATTERED_MIN: usize = 16;
/// It also pays where runs of equal rows are this long.
const CLUSTERED_MIN: usize = 6;

/// Drops rows that came before in the same partition, as long as that pays.
pub(crate) type DeduplicateExec = PassThroughExec<Deduplicate>;

/// Passes the first of equal rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deduplicate;

impl Deduplicate {
    /// Whether rows of this schema can be compared.
    pub(crate) fn supports(schema: &Schema) -> bool {
        !schema.fields().is_empty() && RowConverter::supports_fields(&sort_fields(schema))
    }
}

fn sort_fields(schema: &Schema) -> Vec<SortField> {
    schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect()
}

impl PassThrough for Deduplicate {
    const NAME: &'static str = "DeduplicateExec";
    const EVERY_ROW: bool = false;

    /// All filters: they pass or drop equal rows alike.
    fn passed_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &[input])
    }

    fn execute(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let rows = input.execute(partition, Arc::clone(&context))?;
        let consumer = MemoryConsumer::new(format!("DeduplicateExec[{partition}]"));
        let reserved = consumer.register(context.memory_pool());
        let mut seen = SeenRows::new(&schema, reserved)?;
        let output_rows = MetricBuilder::new(metrics).output_rows(partition);
        let distinct = rows.try_filter_map(move |batch| {
            let kept = seen.first_of(batch);
            if let Ok(Some(batch)) = &kept {
                output_rows.add(batch.num_rows());
            }
            async move { kept }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(SchemaRef::clone(&schema), distinct)))
    }
}

/// The rows that a partition has seen.
struct SeenRows {
    converter: RowConverter,
    rows: HashSet<Box<[u8]>>,
    reserved: MemoryReservation,
    sample: Sample,
    /// Rows that are still to pass unchecked.
    unseen: usize,
}

/// Counts since the operator last judged whether looking for repeats pays.
#[derive(Default)]
struct Sample {
    rows: usize,
    /// Rows that differ from the one before.
    runs: usize,
    /// Of these, rows that came earlier.
    repeats: usize,
}

impl Sample {
    fn pays(&self) -> bool {
        self.repeats * SCATTERED_MIN >= self.runs || self.rows >= self.runs * CLUSTERED_MIN
    }
}

impl SeenRows {
    fn new(schema: &Schema, reserved: MemoryReservation) -> Result<Self> {
        let converter = RowConverter::new(sort_fields(schema))?;
        let (rows, sample) = (HashSet::new(), Sample::default());
        Ok(Self { converter, rows, reserved, sample, unseen: 0 })
    }

    /// The batch without rows that came before; `None` if no row is left.
    fn first_of(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        if self.unseen > 0 {
            self.unseen = self.unseen.saturating_sub(batch.num_rows());
            return Ok(Some(batch));
        }
        let rows = self.converter.convert_columns(batch.columns())?;
        let mut kept = BooleanBufferBuilder::new(batch.num_rows());
        let mut before: Option<&[u8]> = None;
        for row in &rows {
            let row = row.data();
            let is_first = before != Some(row) && self.is_first(row);
            kept.append(is_first);
            before = Some(row);
        }
        self.sample.rows += batch.num_rows();
        self.judge();
        let kept = BooleanArray::new(kept.finish(), None);
        Ok(match kept.true_count() {
            0 => None,
            count if count == batch.num_rows() => Some(batch),
            _ => Some(filter_record_batch(&batch, &kept)?),
        })
    }

    /// Whether a row that differs from the previous one is new; a row that does not fit counts as new.
    fn is_first(&mut self, row: &[u8]) -> bool {
        self.sample.runs += 1;
        if self.rows.contains(row) {
            self.sample.repeats += 1;
            return false;
        }
        let bytes = row.len() + ROW_OVERHEAD;
        if self.reserved.size() + bytes <= REMEMBERED_BYTES && self.reserved.try_grow(bytes).is_ok()
        {
            self.rows.insert(row.into());
        }
        true
    }

    fn judge(&mut self) {
        if self.sample.rows < SAMPLE_ROWS {
            return;
        }
        if !self.sample.pays() {
            self.rows = HashSet::new();
            self.reserved.free();
            self.unseen = UNSEEN_ROWS;
        }
        self.sample = Sample::default();
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool, UnboundedMemoryPool};

    use super::*;

    fn batch(rows: impl Iterator<Item = (Option<i64>, &'static str)>) -> RecordBatch {
        let (numbers, texts): (Vec<_>, Vec<_>) = rows.unzip();
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Utf8, false),
        ]);
        let columns: [Arc<dyn datafusion::arrow::array::Array>; 2] =
            [Arc::new(Int64Array::from(numbers)), Arc::new(StringArray::from(texts))];
        RecordBatch::try_new(Arc::new(schema), columns.to_vec()).unwrap()
    }

    fn seen_in(pool: Arc<dyn MemoryPool>) -> SeenRows {
        let schema = batch(std::iter::empty()).schema();
        SeenRows::new(&schema, MemoryConsumer::new("test").register(&pool)).unwrap()
    }

    fn seen() -> SeenRows {
        seen_in(Arc::new(UnboundedMemoryPool::default()))
    }

    /// Rows that are left of `batches`, and whether each value is among them.
    fn left(seen: &mut SeenRows, batches: impl Iterator<Item = RecordBatch>) -> usize {
        let (mut count, mut given, mut kept) = (0, HashSet::new(), HashSet::new());
        let values = |batch: &RecordBatch| -> Vec<String> {
            (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1))).collect()
        };
        for batch in batches {
            given.extend(values(&batch));
            if let Some(batch) = seen.first_of(batch).unwrap() {
                count += batch.num_rows();
                kept.extend(values(&batch));
            }
        }
        assert_eq!(given, kept);
        count
    }

    #[test]
    fn equal_rows_pass_once_including_null_and_empty_ones() {
        let rows =
            [(Some(1), "a"), (None, ""), (Some(1), "b"), (None, ""), (Some(1), "a"), (None, "a")];
        assert_eq!(left(&mut seen(), (0..3).map(|_| batch(rows.into_iter()))), 4);
        assert_eq!(left(&mut seen(), std::iter::once(batch(std::iter::empty()))), 0);
    }

    #[test]
    fn repeats_of_few_values_are_always_dropped() {
        let batches = (0..20).map(|_| batch((0..1000).map(|row| (Some(row * 7919 % 10), "x"))));
        assert_eq!(left(&mut seen(), batches), 10);
    }

    #[test]
    fn long_runs_are_dropped_and_short_ones_pass() {
        let runs = |length: i64| {
            (0..40).map(move |part| {
                batch((part * 1000..(part + 1) * 1000).map(move |row| (Some(row / length), "x")))
            })
        };
        assert_eq!(left(&mut seen(), runs(100)), 400);
        let short = left(&mut seen(), runs(4));
        assert!(short > 30_000, "{short} of 40000 rows, whose dropping does not pay, are left");
    }

    #[test]
    fn rows_pass_when_memory_is_short() {
        let mut seen = seen_in(Arc::new(GreedyMemoryPool::new(2000)));
        let batches = (0..2).map(|_| batch((0..1000).map(|row| (Some(row), "x"))));
        let count = left(&mut seen, batches);
        assert!((1900..2000).contains(&count), "{count} rows are left");
    }
}
