//! `array_agg(DISTINCT …)` of intervals, also inside lists and structs: equally long ones are equal.

use std::collections::BTreeMap;
use std::mem::size_of_val;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use crate::temporal::measured;

/// The distinct values of a group, in order.
#[derive(Debug)]
pub(crate) struct DistinctMeasured {
    data_type: DataType,
    converter: RowConverter,
    /// By length: the first of the equally long values, and their number.
    values: BTreeMap<OwnedRow, (ScalarValue, u64)>,
    ignore_nulls: bool,
    bytes: usize,
}

impl DistinctMeasured {
    /// Starts empty; `lengths` is the type in which values are compared.
    pub(crate) fn new(
        values: &Field,
        lengths: DataType,
        options: SortOptions,
        ignore_nulls: bool,
    ) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new_with_options(lengths, options)])?;
        let data_type = values.data_type().clone();
        Ok(Self { data_type, converter, values: BTreeMap::new(), ignore_nulls, bytes: 0 })
    }

    /// Returns the keys of the relevant rows, with their indices.
    fn keys(&self, values: &ArrayRef) -> Result<Vec<(usize, OwnedRow)>> {
        let keys = self.converter.convert_columns(&[measured(values)?])?;
        let counts = |row: &usize| !self.ignore_nulls || values.is_valid(*row);
        Ok((0..values.len()).filter(counts).map(|row| (row, keys.row(row).owned())).collect())
    }
}

/// Memory of a value in addition to its key.
fn bytes(key: &OwnedRow, value: &ScalarValue) -> usize {
    key.as_ref().len() + value.size() + size_of::<(OwnedRow, u64)>()
}

impl Accumulator for DistinctMeasured {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        for (row, key) in self.keys(values)? {
            if let Some((_, count)) = self.values.get_mut(&key) {
                *count += 1;
                continue;
            }
            let value = ScalarValue::try_from_array(values, row)?;
            self.bytes += bytes(&key, &value);
            self.values.insert(key, (value, 1));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (_, key) in self.keys(&values[0])? {
            let Some((value, count)) = self.values.get_mut(&key) else { continue };
            *count -= 1;
            if *count == 0 {
                self.bytes -= bytes(&key, value);
                self.values.remove(&key);
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.is_empty() {
            return Ok(ScalarValue::new_null_list(self.data_type.clone(), true, 1));
        }
        let values: Vec<ScalarValue> =
            self.values.values().map(|(value, _)| value.clone()).collect();
        Ok(ScalarValue::List(ScalarValue::new_list(&values, &self.data_type, true)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}
