//! The sum of one group, of a window frame, and of distinct values.

use std::fmt::Debug;

use datafusion::arrow::array::{Array, ArrayRef, ArrowNumericType, ArrowPrimitiveType, AsArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::super::distinct::DistinctTotal;
use super::super::headroom::Headroom;
use super::super::target::Target;
use super::super::total::{Summand, Total, total_of};

/// The running sum of one group or window frame.
#[derive(Debug)]
pub(super) struct RunningSum<T: ArrowNumericType<Native: Summand>> {
    target: Target<T::Native>,
    /// Of an empty total. If it is ample, the state has no column for the wraps.
    headroom: Headroom,
    total: Total<T::Native>,
    /// How many values are in the total; none makes the sum null.
    count: usize,
}

impl<T: ArrowNumericType<Native: Summand>> RunningSum<T> {
    /// A sum for `target` with this headroom.
    pub(super) fn new(target: Target<T::Native>, headroom: Headroom) -> Self {
        Self { target, headroom, total: Total::default(), count: 0 }
    }

    fn carries_wraps(&self) -> bool {
        matches!(self.headroom, Headroom::Within(_))
    }

    fn scalar(&self, low: T::Native) -> Result<ScalarValue> {
        let value = (self.count > 0).then_some(low);
        ScalarValue::new_primitive::<T>(value, self.target.data_type())
    }
}

impl<T: ArrowNumericType<Native: Summand> + Debug> Accumulator for RunningSum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.total.merge(total_of(values, self.headroom));
        self.count += values.len() - values.null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.total.retract(total_of(values, self.headroom));
        self.count -= values.len() - values.null_count();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let low = self.scalar(self.total.low)?;
        if self.carries_wraps() {
            let wraps = (self.count > 0).then_some(self.total.wraps);
            return Ok(vec![low, ScalarValue::Int64(wraps)]);
        }
        self.target.check_unwrapped(&[self.total.wraps])?;
        Ok(vec![low])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)?;
        if self.carries_wraps() {
            self.total.wraps += states[1].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let low = self.target.check(self.total)?;
        self.scalar(low)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The running sum of the distinct values of one group or window frame.
#[derive(Debug)]
pub(super) struct DistinctSum<T: ArrowPrimitiveType<Native: Summand>> {
    target: Target<T::Native>,
    distinct: DistinctTotal<T>,
}

impl<T: ArrowPrimitiveType<Native: Summand>> DistinctSum<T> {
    /// A sum for `target`.
    pub(super) fn new(target: Target<T::Native>) -> Self {
        Self { target, distinct: DistinctTotal::new() }
    }
}

impl<T: ArrowPrimitiveType<Native: Summand> + Debug> Accumulator for DistinctSum<T> {
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
        self.distinct.state(self.target.data_type())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.distinct.merge(states);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let low = self.target.check(self.distinct.total())?;
        let value = (self.distinct.count() > 0).then_some(low);
        ScalarValue::new_primitive::<T>(value, self.target.data_type())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.distinct.size()
    }
}
