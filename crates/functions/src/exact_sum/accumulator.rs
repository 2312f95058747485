//! The aggregate of one group, window frame, or set of distinct values.

use std::fmt::Debug;

use datafusion::arrow::array::{Array, ArrayRef, ArrowNumericType, ArrowPrimitiveType, AsArray};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use crate::exact_sum::distinct::DistinctTotal;
use crate::exact_sum::finish::Finish;
use crate::exact_sum::headroom::Headroom;
use crate::exact_sum::summand::Summand;
use crate::exact_sum::total::{ExactTotal, total_of};

/// The running aggregate of one group or window frame.
#[derive(Debug)]
pub(crate) struct RunningTotal<T: ArrowNumericType<Native: Summand>, F> {
    finish: F,
    /// Starts with an empty total. If the headroom is ample, the state has no column for the wraps.
    headroom: Headroom,
    total: ExactTotal<T::Native>,
    /// The number of values in the total; 0 makes the result null.
    count: u64,
}

impl<T: ArrowNumericType<Native: Summand>, F: Finish<T>> RunningTotal<T, F> {
    /// Starts without values.
    pub(crate) fn new(finish: F, headroom: Headroom) -> Self {
        Self { finish, headroom, total: ExactTotal::default(), count: 0 }
    }
}

impl<T: ArrowNumericType<Native: Summand> + Debug, F: Finish<T>> Accumulator
    for RunningTotal<T, F>
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.total.merge(total_of(values, self.headroom));
        self.count += (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.total.retract(total_of(values, self.headroom));
        self.count -= (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let present = self.count > 0;
        let mut state = vec![];
        if F::COUNTS {
            state.push(self.count.into());
        }
        let low = present.then_some(self.total.low);
        state.push(ScalarValue::new_primitive::<T>(low, self.finish.total_type())?);
        match self.headroom.is_ample() {
            true => self.finish.target().check_unwrapped(&[self.total.wraps])?,
            false => state.push(ScalarValue::Int64(present.then_some(self.total.wraps))),
        }
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (counts, totals) = states.split_at(usize::from(F::COUNTS));
        let Some(lows) = totals.first() else { return internal_err!("a state without a total") };
        let lows = lows.as_primitive::<T>();
        self.total.merge(total_of(lows, self.headroom));
        self.count += match counts.first() {
            Some(counts) => counts.as_primitive::<UInt64Type>().iter().flatten().sum::<u64>(),
            None => (lows.len() - lows.null_count()) as u64,
        };
        if !self.headroom.is_ample() {
            self.total.wraps += totals[1].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.finish.finish(self.total, self.count)?;
        ScalarValue::new_primitive::<T>(result, self.finish.target().data_type())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The running aggregate of the distinct values of one group or window frame.
#[derive(Debug)]
pub(crate) struct RunningDistinct<T: ArrowPrimitiveType<Native: Summand>, F> {
    finish: F,
    distinct: DistinctTotal<T>,
}

impl<T: ArrowPrimitiveType<Native: Summand>, F: Finish<T>> RunningDistinct<T, F> {
    /// Starts without values.
    pub(crate) fn new(finish: F) -> Self {
        Self { finish, distinct: DistinctTotal::new() }
    }
}

impl<T: ArrowPrimitiveType<Native: Summand> + Debug, F: Finish<T>> Accumulator
    for RunningDistinct<T, F>
{
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
        self.distinct.state(self.finish.total_type())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.distinct.merge(states);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.finish.finish(self.distinct.total(), self.distinct.count())?;
        ScalarValue::new_primitive::<T>(result, self.finish.target().data_type())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.distinct.size()
    }
}
