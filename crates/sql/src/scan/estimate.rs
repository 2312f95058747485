//! What a scan is expected to return, found out on a sample of the data itself.

use std::sync::Arc;

use atoll_store::table::{Selection, StoredColumn, TableSnapshot};
use datafusion::arrow::array::Int64Array;
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
