//! Totals over distinct values, also while a window frame moves.

use std::collections::HashMap;

use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::hash_utils::RandomState;
use datafusion::error::Result;

use crate::exact_sum::summand::Summand;
use crate::exact_sum::total::ExactTotal;

/// The distinct values seen, how often each is present, and their total.
#[derive(Debug)]
pub(crate) struct DistinctTotal<T: ArrowPrimitiveType<Native: Summand>> {
    present: HashMap<T::Native, u64, RandomState>,
    total: ExactTotal<T::Native>,
}

impl<T> DistinctTotal<T>
where
    T: ArrowPrimitiveType<Native: Summand>,
{
    /// No values yet.
    pub(crate) fn new() -> Self {
        Self { present: HashMap::default(), total: ExactTotal::default() }
    }

    /// How many distinct values are present.
    pub(crate) fn count(&self) -> u64 {
        self.present.len() as u64
    }

    /// The total of the distinct values present.
    pub(crate) fn total(&self) -> ExactTotal<T::Native> {
        self.total
    }

    /// Adds the values of `array` that are not null.
    pub(crate) fn add(&mut self, array: &PrimitiveArray<T>) {
        for value in array.iter().flatten() {
            let copies = self.present.entry(value).or_insert(0);
            *copies += 1;
            if *copies == 1 {
                self.total.add(value);
            }
        }
    }

    /// Removes values of `array` that were added before.
    pub(crate) fn retract(&mut self, array: &PrimitiveArray<T>) {
        for value in array.iter().flatten() {
            let Some(copies) = self.present.get_mut(&value) else { continue };
            *copies -= 1;
            if *copies == 0 {
                self.present.remove(&value);
                self.total.subtract(value);
            }
        }
    }

    /// The distinct values as a list of `data_type`: the state that partitions exchange.
    pub(crate) fn state(&self, data_type: &DataType) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self
            .present
            .keys()
            .map(|&value| ScalarValue::new_primitive::<T>(Some(value), data_type))
            .collect::<Result<_>>()?;
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, data_type))])
    }

    /// Adds the distinct values of other partitions.
    pub(crate) fn merge(&mut self, states: &[ArrayRef]) {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.add(list.as_primitive::<T>());
        }
    }

    /// Bytes held, without the fields themselves.
    pub(crate) fn size(&self) -> usize {
        self.present.capacity() * size_of::<(T::Native, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::Int64Type;

    fn array(values: &[i64]) -> Int64Array {
        Int64Array::from(values.to_vec())
    }

    #[test]
    fn a_value_counts_once_however_often_it_comes() {
        let mut distinct = DistinctTotal::<Int64Type>::new();
        distinct.add(&Int64Array::from(vec![Some(5), None, Some(5), Some(-3)]));
        assert_eq!((distinct.count(), distinct.total().low), (2, 2));
    }

    #[test]
    fn a_value_leaves_with_its_last_copy() {
        let mut distinct = DistinctTotal::<Int64Type>::new();
        distinct.add(&array(&[i64::MAX, i64::MAX, 7]));
        distinct.retract(&array(&[i64::MAX]));
        assert_eq!(distinct.total().wraps, 1);
        distinct.retract(&array(&[i64::MAX]));
        assert_eq!(distinct.total(), ExactTotal { low: 7, wraps: 0 });
    }

    #[test]
    fn partitions_that_share_values_count_them_once() {
        let mut one = DistinctTotal::<Int64Type>::new();
        let mut other = DistinctTotal::<Int64Type>::new();
        one.add(&array(&[1, 2]));
        other.add(&array(&[2, 3]));
        let state = other.state(&DataType::Int64).unwrap()[0].to_array().unwrap();
        one.merge(&[state]);
        assert_eq!(one.total().low, 6);
    }
}
