//! Estimates the rows that a scan returns on a sample of the data.

use std::collections::HashMap;
use std::sync::Arc;

use atoll_store::table::{Selection, StoredColumn, TableSnapshot};
use datafusion::arrow::array::Int64Array;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{Row, RowConverter, Rows, SortField};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::physical_expr::PhysicalExpr;

use super::filter::PartitionFilter;

/// Blocks looked at, spread evenly over the table, and rows of each: enough to distinguish a percent from
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

/// Distinct values of a column, as estimated on a sample; `None` if they cannot be compared.
pub(crate) fn distinct_values(snapshot: &TableSnapshot, column: usize) -> Option<usize> {
    let logical = snapshot.schema.field(column).data_type();
    let copies = snapshot.chunks.iter().filter_map(|chunk| chunk.copies.first());
    let blocks: Vec<&StoredColumn> =
        copies.flat_map(|copy| &copy.blocks).map(|block| &block[column]).collect();
    let step = blocks.len().div_ceil(SAMPLE_BLOCKS).max(1);
    let converter = RowConverter::new(vec![SortField::new(logical.clone())]).ok()?;
    let mut sample = converter.empty_rows(SAMPLE_BLOCKS * SAMPLE_ROWS, 0);
    for block in blocks.into_iter().step_by(step) {
        let len = SAMPLE_ROWS.min(block.rows().len());
        let values = block.head(len).decode(logical, &Selection::Range { offset: 0, len }).ok()?;
        converter.append(&mut sample, &[values]).ok()?;
    }
    Some(distinct_of(&sample, snapshot.rows))
}

/// Distinct values among `rows` rows, estimated on a sample (Chao 1984: the values seen once and twice give the number
/// of unseen ones). If each run of equal rows is a new value, as in sorted rows, the unseen runs count as new values.
fn distinct_of(sample: &Rows, rows: usize) -> usize {
    let mut counts: HashMap<Row<'_>, usize> = HashMap::with_capacity(sample.num_rows());
    let (mut runs, mut before) = (0, None);
    for row in sample {
        *counts.entry(row).or_default() += 1;
        runs += usize::from(before.replace(row) != Some(row));
    }
    let seen = |times: usize| counts.values().filter(|count| **count == times).count();
    let (once, twice) = (seen(1), seen(2));
    let distinct = counts.len() + once * once.saturating_sub(1) / (2 * (twice + 1));
    let share = rows as f64 / sample.num_rows().max(1) as f64;
    let is_fresh = runs == counts.len() && runs > 1;
    let scaled = if is_fresh { (counts.len() as f64 * share) as usize } else { 0 };
    distinct.max(scaled).min(rows)
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

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash, Hasher};

    use super::*;

    fn estimated(values: impl IntoIterator<Item = i64>, rows: usize) -> usize {
        let converter = RowConverter::new(vec![SortField::new(DataType::Int64)]);
        let column = Arc::new(Int64Array::from_iter_values(values));
        let sample = converter.and_then(|converter| converter.convert_columns(&[column]));
        distinct_of(&sample.expect("numbers have rows"), rows)
    }

    #[test]
    fn few_values_are_counted_and_many_are_estimated() {
        assert_eq!(estimated((0..10_000).map(|row| row % 7), 1 << 20), 7);
        assert_eq!(estimated(0..10_000, 1 << 20), 1 << 20);
        assert_eq!(estimated([], 0), 0);
        let random = |row: i64| {
            let mut hasher = DefaultHasher::new();
            row.hash(&mut hasher);
            (hasher.finish() % 20_000) as i64
        };
        let some = estimated((0..10_000).map(random), 1 << 20);
        assert!((15_000..25_000).contains(&some), "{some}");
    }

    #[test]
    fn distinct_values_of_sorted_rows_are_extrapolated() {
        let sorted = estimated((0..10_000).map(|row| row / 4), 1 << 20);
        assert!((262_000..263_000).contains(&sorted), "{sorted}");
    }
}
