//! Smallest and largest value of a chunk's column, exact, in the logical type.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::Accumulator;

use super::chunk::zone;
use super::column::{Selection, StoredColumn};

/// Smallest and largest value; none for a column without values or of a type without an order.
pub(crate) fn bounds(
    blocks: &[StoredColumn],
    logical: &DataType,
) -> Result<Option<(ScalarValue, ScalarValue)>> {
    match blocks.first() {
        Some(StoredColumn::Narrow(_)) => narrow_bounds(blocks, logical),
        Some(StoredColumn::Dictionary { values, .. }) => Ok(value_bounds(&[values], logical)),
        Some(StoredColumn::Plain(_)) => {
            let arrays: Vec<&ArrayRef> = blocks.iter().map(StoredColumn::rows).collect();
            Ok(value_bounds(&arrays, logical))
        }
        None => Ok(None),
    }
}

fn narrow_bounds(
    blocks: &[StoredColumn],
    logical: &DataType,
) -> Result<Option<(ScalarValue, ScalarValue)>> {
    let zones = || blocks.iter().filter_map(zone);
    let (Some(min), Some(max)) = (zones().map(|z| z.min).min(), zones().map(|z| z.max).max())
    else {
        return Ok(None);
    };
    let both = StoredColumn::Narrow(Arc::new(Int64Array::from(vec![min, max])));
    let wide = both.decode(logical, &Selection::Range { offset: 0, len: 2 })?;
    Ok(Some((ScalarValue::try_from_array(&wide, 0)?, ScalarValue::try_from_array(&wide, 1)?)))
}

/// By DataFusion's own accumulators, so that statistics and aggregates agree on NaN; a type that
/// they do not order has no bounds.
fn value_bounds(arrays: &[&ArrayRef], logical: &DataType) -> Option<(ScalarValue, ScalarValue)> {
    if logical.is_nested() || arrays.iter().all(|array| array.null_count() == array.len()) {
        return None;
    }
    let mut min = MinAccumulator::try_new(logical).ok()?;
    let mut max = MaxAccumulator::try_new(logical).ok()?;
    for array in arrays {
        min.update_batch(&[Arc::clone(array)]).ok()?;
        max.update_batch(&[Arc::clone(array)]).ok()?;
    }
    Some((min.evaluate().ok()?, max.evaluate().ok()?))
}

/// A whole number, date or time as an integer; a decimal without its point.
pub(crate) fn whole(value: &ScalarValue) -> Option<i128> {
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
