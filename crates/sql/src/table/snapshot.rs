//! What a table holds at one moment: pinned when a query is planned, never changed afterwards.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};

use super::bounds::whole;
use super::chunk::{Chunk, whole_number_at};

/// The chunks of a table in the order of its rows.
#[derive(Debug)]
pub(crate) struct TableSnapshot {
    /// Types as stored.
    pub(crate) schema: SchemaRef,
    /// Chunks, shared with older and newer snapshots.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Columns whose values never fall from the first row to the last.
    pub(crate) rising: Vec<usize>,
}

impl TableSnapshot {
    /// A snapshot of these chunks.
    pub(crate) fn new(schema: SchemaRef, chunks: Vec<Arc<Chunk>>) -> Self {
        let rows = chunks.iter().map(|chunk| chunk.rows).sum();
        let rising = (0..schema.fields().len()).filter(|c| is_rising(&chunks, *c)).collect();
        Self { schema, chunks, rows, rising }
    }

    /// The same chunks and these behind them.
    pub(crate) fn with(&self, more: Vec<Arc<Chunk>>) -> Self {
        let chunks = self.chunks.iter().cloned().chain(more).collect();
        Self::new(Arc::clone(&self.schema), chunks)
    }

    /// Bytes of memory its chunks take, copies included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let copies = self.chunks.iter().flat_map(|chunk| &chunk.copies);
        copies.map(|copy| copy.memory.len()).sum()
    }

    /// The whole number of a rising column at a row of the table.
    pub(crate) fn whole_number_at(&self, column: usize, mut row: usize) -> Option<i64> {
        for chunk in &self.chunks {
            if row < chunk.rows {
                let (block, row) = (row / super::chunk::BLOCK_ROWS, row % super::chunk::BLOCK_ROWS);
                return whole_number_at(&chunk.copies.first()?.blocks[block][column], row);
            }
            row -= chunk.rows;
        }
        None
    }

    /// Exact statistics of the projected columns, before any filter.
    pub(crate) fn statistics(&self, projection: &[usize]) -> Statistics {
        let columns: Vec<ColumnStatistics> =
            projection.iter().map(|column| self.column_statistics(*column)).collect();
        let bytes = projection.iter().map(|column| self.logical_bytes(*column)).sum();
        Statistics {
            num_rows: Precision::Exact(self.rows),
            total_byte_size: Precision::Inexact(bytes),
            column_statistics: columns,
        }
    }

    /// Bytes of a column once decoded.
    fn logical_bytes(&self, column: usize) -> usize {
        let data_type = self.schema.field(column).data_type();
        match data_type.primitive_width() {
            Some(width) => self.rows * width,
            None if *data_type == DataType::Boolean => self.rows / 8,
            None => {
                let stored: usize = self.chunks.iter().map(|chunk| chunk.stats[column].bytes).sum();
                stored.max(self.rows * 16)
            }
        }
    }

    fn column_statistics(&self, column: usize) -> ColumnStatistics {
        let stats = || self.chunks.iter().map(|chunk| &chunk.stats[column]);
        let mut statistics = ColumnStatistics::new_unknown();
        statistics.null_count = Precision::Exact(stats().map(|s| s.nulls).sum());
        let bounds = || stats().filter_map(|s| s.bounds.as_ref());
        // A chunk of a type without an order has values and no bounds: then the column has none.
        if stats().all(|s| s.bounds.is_some() || s.nulls > 0) {
            let fold =
                |keep: fn(&ScalarValue, &ScalarValue) -> bool,
                 side: fn(&(ScalarValue, ScalarValue)) -> &ScalarValue| {
                    bounds()
                        .map(side)
                        .reduce(|best, next| if keep(best, next) { best } else { next })
                };
            let min =
                fold(|best, next| best.partial_cmp(next).is_some_and(|o| o.is_le()), |b| &b.0);
            let max =
                fold(|best, next| best.partial_cmp(next).is_some_and(|o| o.is_ge()), |b| &b.1);
            if let (Some(min), Some(max)) = (min, max) {
                statistics.min_value = Precision::Exact(min.clone());
                statistics.max_value = Precision::Exact(max.clone());
            }
        }
        let distinct = stats().map(|s| s.distinct).reduce(|a, b| Some(a?.max(b?))).flatten();
        if let Some(distinct) = distinct.or_else(|| self.distinct_most(&statistics)) {
            statistics.distinct_count = Precision::Inexact(distinct);
        }
        statistics
    }

    /// Values that a column of whole numbers, dates or times has at most: those of its range. So it is
    /// known of GROUP BY how many rows leave it at most.
    fn distinct_most(&self, of: &ColumnStatistics) -> Option<usize> {
        let (min, max) = (whole(of.min_value.get_value()?)?, whole(of.max_value.get_value()?)?);
        let range = max.checked_sub(min)?.checked_add(1)?;
        Some(usize::try_from(range).unwrap_or(usize::MAX).min(self.rows))
    }
}

fn is_rising(chunks: &[Arc<Chunk>], column: usize) -> bool {
    let mut last = None;
    for chunk in chunks {
        match (chunk.stats[column].rising, last) {
            (None, _) => return false,
            (Some((first, _)), Some(before)) if first < before => return false,
            (Some((_, end)), _) => last = Some(end),
        }
    }
    !chunks.is_empty()
}
