//! Statistics of a table's rows for DataFusion.

use atoll_store::table::TableSnapshot;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};

/// Statistics of the projected columns before any filter, exact as long as no row is deleted.
pub fn statistics(snapshot: &TableSnapshot, projection: &[usize]) -> Statistics {
    let of_column = |column: &usize| match snapshot.has_deleted() {
        true => column_statistics(snapshot, *column).to_inexact(),
        false => column_statistics(snapshot, *column),
    };
    let bytes = projection.iter().map(|column| logical_bytes(snapshot, *column)).sum();
    Statistics {
        num_rows: Precision::Exact(snapshot.rows),
        total_byte_size: Precision::Inexact(bytes),
        column_statistics: projection.iter().map(of_column).collect(),
    }
}

/// Bytes of a column once decoded.
fn logical_bytes(snapshot: &TableSnapshot, column: usize) -> usize {
    let data_type = snapshot.schema.field(column).data_type();
    match data_type.primitive_width() {
        Some(width) => snapshot.rows * width,
        None if *data_type == DataType::Boolean => snapshot.rows / 8,
        None => {
            let stored: usize = snapshot.chunks.iter().map(|chunk| chunk.stats[column].bytes).sum();
            stored.max(snapshot.rows * 16)
        }
    }
}

fn column_statistics(snapshot: &TableSnapshot, column: usize) -> ColumnStatistics {
    let stats = || snapshot.chunks.iter().map(|chunk| &chunk.stats[column]);
    let mut statistics = ColumnStatistics::new_unknown();
    statistics.null_count = Precision::Exact(stats().map(|s| s.nulls).sum());
    let bounds = snapshot.bounds(column).and_then(|(min, max)| {
        let value = |array| ScalarValue::try_from_array(array, 0).ok();
        Some((value(min)?, value(max)?))
    });
    if let Some((min, max)) = bounds {
        statistics.min_value = Precision::Exact(min);
        statistics.max_value = Precision::Exact(max);
    }
    let distinct = stats().map(|s| s.distinct).reduce(|a, b| Some(a?.max(b?))).flatten();
    if let Some(distinct) = distinct.or_else(|| distinct_most(snapshot, &statistics)) {
        statistics.distinct_count = Precision::Inexact(distinct);
    }
    statistics
}

/// The most values that a column of whole numbers, dates or times has: those of its range. This bounds
/// the rows that leave a GROUP BY.
fn distinct_most(snapshot: &TableSnapshot, of: &ColumnStatistics) -> Option<usize> {
    let (min, max) = (whole(of.min_value.get_value()?)?, whole(of.max_value.get_value()?)?);
    let range = max.checked_sub(min)?.checked_add(1)?;
    Some(usize::try_from(range).unwrap_or(usize::MAX).min(snapshot.rows))
}

/// A whole number, date or time as an integer; a decimal without its point.
pub fn whole(value: &ScalarValue) -> Option<i128> {
    use ScalarValue as S;
    Some(match value {
        S::Int8(Some(value)) => (*value).into(),
        S::Int16(Some(value)) => (*value).into(),
        S::Int32(Some(value)) | S::Date32(Some(value)) => (*value).into(),
        S::Int64(Some(value)) | S::Date64(Some(value)) => (*value).into(),
        S::UInt8(Some(value)) => (*value).into(),
        S::UInt16(Some(value)) => (*value).into(),
        S::UInt32(Some(value)) => (*value).into(),
        S::UInt64(Some(value)) => (*value).into(),
        S::Decimal128(Some(value), ..) => *value,
        S::TimestampSecond(Some(value), _)
        | S::TimestampMillisecond(Some(value), _)
        | S::TimestampMicrosecond(Some(value), _)
        | S::TimestampNanosecond(Some(value), _) => (*value).into(),
        _ => return None,
    })
}
