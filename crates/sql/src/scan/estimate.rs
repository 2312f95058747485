//! What a scan is expected to return, found out on a sample of the data itself.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::table::{BLOCK_ROWS, Selection, StoredColumn, TableSnapshot};
use datafusion::arrow::array::{AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::physical_expr::PhysicalExpr;

use super::filter::PartitionFilter;

/// Blocks looked at, spread evenly over the table, and rows of each: enough to tell a percent from
/// ten, in a fraction of a millisecond.
const SAMPLE_BLOCKS: usize = 12;
const SAMPLE_ROWS: usize = 1024;

/// Share of rows, 0 to 1, that pass the conjuncts. A sample without any such row still counts half
/// a row: nothing is known to be empty. A conjunct that fails on the sample is left to the query.
pub(crate) fn selectivity(
    snapshot: &TableSnapshot,
    conjuncts: &[Arc<dyn PhysicalExpr>],
) -> Result<f64> {
    if conjuncts.is_empty() || snapshot.rows == 0 {
        return Ok(1.0);
    }
    let mut filter = PartitionFilter::new(conjuncts, &[], &snapshot.schema)?;
    let blocks: Vec<&Vec<StoredColumn>> = snapshot
        .chunks
        .iter()
        .filter_map(|chunk| chunk.copies.first())
        .flat_map(|copy| &copy.blocks)
        .collect();
    let step = blocks.len().div_ceil(SAMPLE_BLOCKS).max(1);
    let (mut seen, mut passed) = (0, 0);
    let unknown = vec![None; snapshot.schema.fields().len()];
    for block in blocks.iter().step_by(step) {
        let sample: Vec<StoredColumn> =
            block.iter().map(|column| column.head(SAMPLE_ROWS)).collect();
        let rows = sample.first().map_or(0, |column| column.rows().len());
        let range = Selection::Range { offset: 0, len: rows };
        let Ok(result) = filter.apply(&sample, &unknown, range, &snapshot.schema, None) else {
            return Ok(1.0);
        };
        seen += rows;
        passed += result.rows.map_or(0, |rows| rows.count());
    }
    Ok((passed as f64).max(0.5) / (seen as f64).max(1.0))
}

/// Rows of a string, on average, below which it counts as rare.
const FREQUENT_ROWS: usize = 16;

/// Whether the strings of a column have few rows each, as far as the rows of the sample tell (Chao 1984: those that
/// are there once and twice). In a small table, and where a chunk has a dictionary, they are not rare.
pub(crate) fn has_rare_values(snapshot: &TableSnapshot, column: usize) -> bool {
    if snapshot.rows <= BLOCK_ROWS {
        return false;
    }
    let copies = snapshot.chunks.iter().filter_map(|chunk| chunk.copies.first());
    let blocks: Vec<&StoredColumn> =
        copies.flat_map(|copy| &copy.blocks).map(|block| &block[column]).collect();
    let step = blocks.len().div_ceil(SAMPLE_BLOCKS).max(1);
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    for block in blocks.into_iter().step_by(step) {
        let StoredColumn::Plain(values) = block.head(SAMPLE_ROWS) else { return false };
        let Ok(values) = cast(&values, &DataType::BinaryView) else { return false };
        for value in values.as_binary_view().iter().flatten() {
            *counts.entry(value.to_owned()).or_default() += 1;
        }
    }
    let seen = |times: usize| counts.values().filter(|count| **count == times).count();
    let (once, twice) = (seen(1), seen(2));
    let unseen = once * once.saturating_sub(1) / (2 * (twice + 1));
    (counts.len() + unseen).saturating_mul(FREQUENT_ROWS) > snapshot.rows
}

/// The statistics of that share of the rows.
pub(crate) fn scaled(whole: Statistics, share: f64) -> Statistics {
    let scale = |count: Precision<usize>| match count.get_value() {
        Some(count) => Precision::Inexact((*count as f64 * share).ceil() as usize),
        None => Precision::Absent,
    };
    let (rows, bytes) = (scale(whole.num_rows), scale(whole.total_byte_size));
    let mut scaled = whole.to_inexact();
    scaled.num_rows = rows;
    scaled.total_byte_size = bytes;
    for column in &mut scaled.column_statistics {
        column.null_count = scale(column.null_count);
        if let (Some(distinct), Some(rows)) = (column.distinct_count.get_value(), rows.get_value())
        {
            column.distinct_count = Precision::Inexact(*distinct.min(rows));
        }
    }
    scaled
}

/// A stored whole number as a constant of the column's type.
pub(crate) fn constant(value: i64, data_type: &DataType) -> Result<ScalarValue> {
    let stored = StoredColumn::Narrow(Arc::new(Int64Array::from(vec![value])));
    let range = Selection::Range { offset: 0, len: 1 };
    ScalarValue::try_from_array(&stored.decode(data_type, &range)?, 0)
}
