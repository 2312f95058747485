//! `min` and `max` of lists, structs and maps.

use std::cmp::Ordering;
use std::mem::size_of_val;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use crate::temporal::{measured, measured_type};

/// The smallest or largest nested value, in the order of ORDER BY: by the first element
/// that differs, NULL as the largest, and shorter lists first.
///
/// DataFusion 55.2 compares nested values as scalars: without an order for NULL in structs or for
/// lists of structs, and not at all for maps (`functions-aggregate-common/min_max.rs`;
/// apache/datafusion#24937).
#[derive(Debug)]
pub(crate) struct NestedExtreme {
    data_type: DataType,
    /// How a value must compare to the best so far to replace it.
    better: Ordering,
    converter: RowConverter,
    best: Option<(OwnedRow, ScalarValue)>,
}

impl NestedExtreme {
    /// Whether values of this type are compared here.
    pub(crate) fn is_for(data_type: &DataType) -> bool {
        data_type.is_nested() && RowConverter::supports_fields(&[field(data_type)])
    }

    pub(crate) fn new(data_type: &DataType, better: Ordering) -> Result<Self> {
        let converter = RowConverter::new(vec![field(data_type)])?;
        Ok(Self { data_type: data_type.clone(), better, converter, best: None })
    }
}

fn field(data_type: &DataType) -> SortField {
    let options = SortOptions { descending: false, nulls_first: false };
    let compared = measured_type(data_type).unwrap_or_else(|| data_type.clone());
    SortField::new_with_options(compared, options)
}

impl Accumulator for NestedExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        let rows = self.converter.convert_columns(&[measured(values)?])?;
        let valid = (0..values.len()).filter(|row| values.is_valid(*row));
        // Among equally long intervals the last one is kept, as for plain intervals.
        let worse = self.better.reverse();
        let is_worse = |row, best| rows.row(row).cmp(&rows.row(best)) == worse;
        let best = valid.reduce(|best, row| if is_worse(row, best) { best } else { row });
        let Some(best) = best else { return Ok(()) };
        let row = rows.row(best).owned();
        if self.best.as_ref().is_none_or(|(before, _)| row.cmp(before) != worse) {
            let mut value = ScalarValue::try_from_array(values, best)?;
            value.compact();
            self.best = Some((row, value));
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.best {
            Some((_, value)) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        let best = self.best.as_ref().map_or(0, |(row, value)| row.as_ref().len() + value.size());
        size_of_val(self) + best
    }
}
