//! Smallest and largest value of a chunk's column, exact, in the logical type.

use std::sync::Arc;

use arrow_arith::aggregate as arith;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, Int64Array, PrimitiveArray,
    StringViewArray, downcast_primitive_array,
};
use arrow_schema::{ArrowError, DataType};

use super::chunk::zone;
use super::column::{Selection, StoredColumn};

/// A smallest and a largest value, one in each array.
pub type Bounds = (ArrayRef, ArrayRef);

/// Smallest and largest value. Returns None for a column without values or of a type without an order.
pub(super) fn bounds(
    blocks: &[StoredColumn],
    logical: &DataType,
) -> Result<Option<Bounds>, ArrowError> {
    Ok(match blocks.first() {
        Some(StoredColumn::Narrow(_)) => narrow_bounds(blocks, logical)?,
        Some(StoredColumn::Dictionary { values, .. }) => value_bounds([values]),
        Some(StoredColumn::Plain(_)) => value_bounds(blocks.iter().map(StoredColumn::rows)),
        None => None,
    })
}

fn narrow_bounds(
    blocks: &[StoredColumn],
    logical: &DataType,
) -> Result<Option<Bounds>, ArrowError> {
    let zones = || blocks.iter().filter_map(zone);
    let (Some(min), Some(max)) = (zones().map(|z| z.min).min(), zones().map(|z| z.max).max())
    else {
        return Ok(None);
    };
    let both = StoredColumn::Narrow(Arc::new(Int64Array::from(vec![min, max])));
    let wide = both.decode(logical, &Selection::Range { offset: 0, len: 2 })?;
    Ok(Some((wide.slice(0, 1), wide.slice(1, 1))))
}

/// The bounds of all arrays together.
fn value_bounds<'a>(arrays: impl IntoIterator<Item = &'a ArrayRef>) -> Option<Bounds> {
    let each = arrays.into_iter().filter(|array| array.null_count() < array.len()).map(of_array);
    let each: Vec<Bounds> = each.collect::<Option<_>>()?;
    merge(each.iter())
}

/// The bounds of values with these bounds. Returns None if there are none.
pub(super) fn merge<'a>(each: impl Iterator<Item = &'a Bounds>) -> Option<Bounds> {
    let (lows, highs): (Vec<&dyn Array>, Vec<&dyn Array>) =
        each.map(|(low, high)| (low.as_ref(), high.as_ref())).unzip();
    let of_all = |arrays: &[&dyn Array]| arrow_select::concat::concat(arrays).ok();
    Some((of_array(&of_all(&lows)?)?.0, of_array(&of_all(&highs)?)?.1))
}

/// The bounds of an array that has values. Returns None if its type has no order. Floats are in the
/// canonical form, so the largest of them is NaN if there is one.
fn of_array(array: &ArrayRef) -> Option<Bounds> {
    downcast_primitive_array!(
        array => primitive(array),
        DataType::Boolean => {
            let array = array.as_boolean();
            let one = |value| Arc::new(BooleanArray::from(vec![value])) as ArrayRef;
            Some((one(arith::min_boolean(array)?), one(arith::max_boolean(array)?)))
        },
        DataType::Utf8View => {
            let array = array.as_string_view();
            let one = |value| Arc::new(StringViewArray::from(vec![value])) as ArrayRef;
            Some((one(arith::min_string_view(array)?), one(arith::max_string_view(array)?)))
        },
        DataType::BinaryView => {
            let array = array.as_binary_view();
            let one = |value| Arc::new(BinaryViewArray::from(vec![value])) as ArrayRef;
            Some((one(arith::min_binary_view(array)?), one(arith::max_binary_view(array)?)))
        },
        _ => None,
    )
}

fn primitive<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Option<Bounds>
where
    T::Native: PartialOrd,
{
    let one = |value: T::Native| {
        let one = PrimitiveArray::<T>::from_value(value, 1);
        Arc::new(one.with_data_type(array.data_type().clone())) as ArrayRef
    };
    Some((one(arith::min(array)?), one(arith::max(array)?)))
}
