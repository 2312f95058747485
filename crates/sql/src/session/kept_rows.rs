//! The rows of a result that stay readable, as a scrollable cursor needs them.

use std::ops::Range;

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::Result;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use crate::session::Session;
use atoll_sql_common::error::SqlError;

/// Rows that a result has returned, charged to the memory of the session's queries.
#[derive(Debug)]
pub struct KeptRows {
    batches: Vec<RecordBatch>,
    /// The number of rows up to the end of each batch.
    ends: Vec<usize>,
    charge: MemoryReservation,
}

impl Session {
    /// An empty list of rows to keep.
    pub fn kept_rows(&self) -> KeptRows {
        let environment = self.context.runtime_env();
        let consumer = MemoryConsumer::new("rows of a scrollable cursor");
        let charge = consumer.register(&environment.memory_pool);
        KeptRows { batches: Vec::new(), ends: Vec::new(), charge }
    }
}

impl KeptRows {
    /// The number of rows.
    pub fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Keeps the rows of a batch after the others.
    ///
    /// # Errors
    /// If memory is short.
    pub fn push(&mut self, batch: RecordBatch) -> std::result::Result<(), SqlError> {
        let charged = self.charge.try_grow(get_record_batch_memory_size(&batch));
        charged.map_err(|error| SqlError::new(error, ""))?;
        self.ends.push(self.count() + batch.num_rows());
        self.batches.push(batch);
        Ok(())
    }

    /// At most `most` rows that begin with row `start`, counted from 0: those of one batch. None after the last row.
    pub fn after(&self, start: usize, most: usize) -> Option<RecordBatch> {
        let at = self.ends.partition_point(|end| *end <= start);
        let own = self.rows_of(at)?;
        Some(self.batches[at].slice(start - own.start, most.min(own.end - start)))
    }

    /// At most `most` rows before row `end`, the last one first: those of one batch. None before the first row.
    ///
    /// # Errors
    /// If Arrow cannot reverse them.
    pub fn before(
        &self,
        end: usize,
        most: usize,
    ) -> std::result::Result<Option<RecordBatch>, SqlError> {
        let at = self.ends.partition_point(|last| *last < end);
        let Some(own) = self.rows_of(at).filter(|own| own.start < end) else { return Ok(None) };
        let (last, count) = ((end - own.start) as u64, most.min(end - own.start) as u64);
        let order = UInt64Array::from_iter_values((last - count..last).rev());
        let reversed: Result<_> = take_record_batch(&self.batches[at], &order).map_err(Into::into);
        reversed.map(Some).map_err(|error| SqlError::new(error, ""))
    }

    fn rows_of(&self, at: usize) -> Option<Range<usize>> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(start..*self.ends.get(at)?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    use super::*;

    fn batch(rows: Range<i64>) -> RecordBatch {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let column = Int64Array::from_iter_values(rows);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).unwrap()
    }

    fn kept(bytes: usize) -> KeptRows {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let charge = MemoryConsumer::new("test").register(&pool);
        KeptRows { batches: Vec::new(), ends: Vec::new(), charge }
    }

    fn values(batch: Option<RecordBatch>) -> Vec<i64> {
        let column = batch.map(|batch| batch.column(0).as_primitive::<Int64Type>().clone());
        column.map_or_else(Vec::new, |column| column.values().to_vec())
    }

    #[test]
    fn rows_are_read_in_both_directions() {
        let mut rows = kept(1 << 20);
        for range in [0..3, 3..3, 3..5, 5..6] {
            rows.push(batch(range)).unwrap();
        }
        assert_eq!(rows.count(), 6);
        for (start, most, wanted) in
            [(0, 9, vec![0, 1, 2]), (2, 9, vec![2]), (3, 1, vec![3]), (5, 9, vec![5])]
        {
            assert_eq!(values(rows.after(start, most)), wanted, "{start}");
        }
        assert!(rows.after(6, 1).is_none());
        for (end, most, wanted) in
            [(6, 9, vec![5]), (5, 9, vec![4, 3]), (3, 2, vec![2, 1]), (1, 1, vec![0])]
        {
            assert_eq!(values(rows.before(end, most).unwrap()), wanted, "{end}");
        }
        assert!(rows.before(0, 1).unwrap().is_none());
    }

    #[test]
    fn rows_beyond_the_memory_limit_are_refused() {
        let mut rows = kept(100);
        rows.push(batch(0..10)).unwrap();
        let error = rows.push(batch(10..20)).unwrap_err();
        assert_eq!(error.state.code(), "53200", "{error}");
        assert_eq!(rows.count(), 10);
    }
}
