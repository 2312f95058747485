//! Settings of DataFusion that are too large for a small memory limit.

use datafusion::common::config::{ConfigNonZeroUsize, ConfigOptions, MaxRowGroupBytes};

/// Below this limit Parquet is written by one thread: the writer on several has no bound but rows.
const PARALLEL_WRITER_MIN: usize = 1 << 30;

/// A row of every batch for as many bytes of the limit. What waits between operators is counted in
/// batches: two for each run that a sort merges, a hundred before a CSV or JSON file.
const BYTES_PER_ROW: usize = 64 << 10;

/// Fewer rows than these cost more time than they save memory.
const BATCH_ROWS_MIN: usize = 1024;

/// A writer of files has eight parts in flight, each at most this share of the limit.
const UPLOAD_SHARE: usize = 128;

/// Fits what sorts reserve in advance (ten megabytes for each partition of each sort), what writers
/// collect (a million rows for a group of rows in Parquet) and the rows of a batch to this limit.
pub fn fit(options: &mut ConfigOptions, limit: usize) {
    let execution = &mut options.execution;
    let each = limit / 16 / execution.target_partitions.max(1);
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(each);
    let rows = (limit / BYTES_PER_ROW).max(BATCH_ROWS_MIN).min(execution.batch_size.get());
    execution.batch_size = ConfigNonZeroUsize::try_new(rows).unwrap_or(execution.batch_size);
    let part = limit / UPLOAD_SHARE;
    execution.objectstore_writer_buffer_size = execution.objectstore_writer_buffer_size.min(part);
    if limit < PARALLEL_WRITER_MIN {
        execution.parquet.allow_single_file_parallelism = false;
        execution.parquet.max_row_group_bytes = MaxRowGroupBytes::try_new(limit / 16).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(limit: usize) -> (usize, usize, usize) {
        let mut options = ConfigOptions::default();
        options.execution.target_partitions = 2;
        fit(&mut options, limit);
        let execution = options.execution;
        (
            execution.batch_size.get(),
            execution.sort_spill_reservation_bytes,
            execution.objectstore_writer_buffer_size,
        )
    }

    #[test]
    fn small_limits_have_small_batches_and_large_ones_datafusions_defaults() {
        assert_eq!(fitted(1 << 20), (1024, 32 << 10, 8 << 10));
        assert_eq!(fitted(128 << 20), (2048, 4 << 20, 1 << 20));
        assert_eq!(fitted(1 << 30), (8192, 10 << 20, 8 << 20));
        let all = ConfigOptions::default().execution;
        let (rows, _, part) = fitted(usize::MAX);
        assert_eq!((rows, part), (all.batch_size.get(), all.objectstore_writer_buffer_size));
    }
}
