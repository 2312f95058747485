//! Lengths of intervals, also inside lists and structs, by which they are compared and
//! ordered.

use std::sync::Arc;

use datafusion::arrow::array::types::IntervalMonthDayNanoType;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, ListArray, StructArray};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, IntervalUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, Rows, SortField};

use super::interval::interval_length;

/// The type of lengths: nanoseconds.
const LENGTH: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// Replaces intervals in a type by the type of their lengths; None if there are
/// no intervals.
pub fn measured_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Interval(IntervalUnit::MonthDayNano) => Some(LENGTH),
        DataType::List(item) => measured_field(item).map(DataType::List),
        DataType::Struct(fields) => measured_fields(fields).map(DataType::Struct),
        _ => None,
    }
}

fn measured_field(field: &FieldRef) -> Option<FieldRef> {
    let data_type = measured_type(field.data_type())?;
    Some(Arc::new(Field::clone(field).with_data_type(data_type)))
}

fn measured_fields(fields: &Fields) -> Option<Fields> {
    let measured = |field: &FieldRef| measured_field(field).unwrap_or_else(|| Arc::clone(field));
    let has_some = fields.iter().any(|field| measured_type(field.data_type()).is_some());
    has_some.then(|| fields.iter().map(measured).collect())
}

/// Replaces intervals in values by their lengths.
///
/// # Errors
/// Never: the arrays fit together.
pub fn measured(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match values.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
            let lengths: Decimal128Array = intervals.unary(interval_length);
            Arc::new(lengths.with_data_type(LENGTH))
        }
        DataType::List(item) => {
            let Some(item) = measured_field(item) else { return Ok(Arc::clone(values)) };
            let lists = values.as_list::<i32>();
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            Arc::new(ListArray::try_new(item, offsets, measured(lists.values())?, nulls)?)
        }
        DataType::Struct(fields) => {
            let Some(fields) = measured_fields(fields) else { return Ok(Arc::clone(values)) };
            let structs = values.as_struct();
            let columns = structs.columns().iter().map(measured).collect::<Result<Vec<_>, _>>()?;
            let nulls = structs.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, structs.len())?)
        }
        _ => Arc::clone(values),
    })
}

/// Converts values to keys that compare like SQL values.
///
/// # Errors
/// If values of the type have no order.
pub fn measured_rows(values: &ArrayRef, options: SortOptions) -> Result<Rows, ArrowError> {
    let values = measured(values)?;
    let field = SortField::new_with_options(values.data_type().clone(), options);
    RowConverter::new(vec![field])?.convert_columns(&[values])
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::{Array, IntervalMonthDayNanoArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::IntervalMonthDayNano;

    #[test]
    fn a_month_in_a_list_is_as_long_as_thirty_days() {
        let of = IntervalMonthDayNano::new;
        let intervals = IntervalMonthDayNanoArray::from(vec![of(1, 0, 0), of(0, 30, 0)]);
        let item = Arc::new(Field::new_list_field(intervals.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([1, 1]);
        let lists: ArrayRef =
            Arc::new(ListArray::try_new(item, offsets, Arc::new(intervals), None).unwrap());
        let lengths = measured(&lists).unwrap();
        assert_eq!(Some(lengths.data_type().clone()), measured_type(lists.data_type()));
        assert_eq!(&lengths.slice(0, 1), &lengths.slice(1, 1));
    }
}
