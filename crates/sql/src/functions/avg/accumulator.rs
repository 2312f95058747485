//! The average of one group, of a window frame, and of distinct values.

use std::fmt::Debug;

use datafusion::arrow::array::{Array, ArrayRef, ArrowNumericType, ArrowPrimitiveType, AsArray};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::super::distinct::DistinctTotal;
use super::super::headroom::Headroom;
use super::super::total::{Total, total_of};
use super::mean::{Averaged, Mean};

/// The running average of one group or window frame.
#[derive(Debug)]
pub(super) struct RunningAvg<T: ArrowNumericType<Native: Averaged>> {
    mean: Mean<T::Native>,
    total: Total<T::Native>,
    count: u64,
}

impl<T: ArrowNumericType<Native: Averaged>> RunningAvg<T> {
    /// An average made as `mean` says.
    pub(super) fn new(mean: Mean<T::Native>) -> Self {
        Self { mean, total: Total::default(), count: 0 }
    }
}

impl<T: ArrowNumericType<Native: Averaged> + Debug> Accumulator for RunningAvg<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.total.merge(total_of(values, Headroom::unused()));
        self.count += (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.total.retract(total_of(values, Headroom::unused()));
        self.count -= (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let low = ScalarValue::new_primitive::<T>(Some(self.total.low), self.mean.argument())?;
        Ok(vec![self.count.into(), low, self.total.wraps.into()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.count += states[0].as_primitive::<UInt64Type>().iter().flatten().sum::<u64>();
        self.total.merge(total_of(states[1].as_primitive::<T>(), Headroom::unused()));
        self.total.wraps += states[2].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let average = self.mean.of(self.total, self.count)?;
        ScalarValue::new_primitive::<T>(average, self.mean.result())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The running average of the distinct values of one group or window frame.
#[derive(Debug)]
pub(super) struct DistinctAvg<T: ArrowPrimitiveType<Native: Averaged>> {
    mean: Mean<T::Native>,
    distinct: DistinctTotal<T>,
}

impl<T: ArrowPrimitiveType<Native: Averaged>> DistinctAvg<T> {
    /// An average made as `mean` says.
    pub(super) fn new(mean: Mean<T::Native>) -> Self {
        Self { mean, distinct: DistinctTotal::new() }
    }
}

impl<T: ArrowPrimitiveType<Native: Averaged> + Debug> Accumulator for DistinctAvg<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.distinct.add(values[0].as_primitive::<T>());
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.distinct.retract(values[0].as_primitive::<T>());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.distinct.state(self.mean.argument())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.distinct.merge(states);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let average = self.mean.of(self.distinct.total(), self.distinct.count())?;
        ScalarValue::new_primitive::<T>(average, self.mean.result())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.distinct.size()
    }
}
