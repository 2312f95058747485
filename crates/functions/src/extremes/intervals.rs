//! `min`, `max` and `avg` of intervals by length: a month is 30 days and a day is 24 hours.

use std::cmp::Ordering;
use std::mem::size_of_val;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::utils::format_state_name;

use crate::scalar::interval_times;
use crate::temporal::interval_length;

/// SQL's interval type.
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const NANOS: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// The shortest or longest interval; among equally long ones the last.
#[derive(Debug)]
pub(crate) struct IntervalExtreme {
    /// How a value must compare to the best so far to replace it.
    better: Ordering,
    best: Option<IntervalMonthDayNano>,
}

impl IntervalExtreme {
    pub(crate) fn new(better: Ordering) -> Self {
        Self { better, best: None }
    }
}

impl Accumulator for IntervalExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let length = interval_length(value);
            let is_worse = |best| length.cmp(&interval_length(best)) == self.better.reverse();
            if !self.best.is_some_and(is_worse) {
                self.best = Some(value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::IntervalMonthDayNano(self.best))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Separate sums of months, days and nanoseconds, and the number of intervals.
#[derive(Debug, Default)]
pub(crate) struct IntervalMean {
    months: i64,
    days: i64,
    nanos: i128,
    count: i64,
}

impl IntervalMean {
    pub(crate) fn state_fields(name: &str) -> Vec<FieldRef> {
        let field = |part: &str, of| Field::new(format_state_name(name, part), of, true).into();
        vec![
            field("months", DataType::Int64),
            field("days", DataType::Int64),
            field("nanoseconds", NANOS),
            field("count", DataType::Int64),
        ]
    }

    fn add(&mut self, values: &ArrayRef, sign: i64) {
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            self.months += sign * i64::from(value.months);
            self.days += sign * i64::from(value.days);
            self.nanos += i128::from(sign) * i128::from(value.nanoseconds);
            self.count += sign;
        }
    }
}

impl Accumulator for IntervalMean {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let whole = |at: usize| states[at].as_primitive::<Int64Type>().iter().flatten();
        self.months += whole(0).sum::<i64>();
        self.days += whole(1).sum::<i64>();
        self.nanos += states[2].as_primitive::<Decimal128Type>().iter().flatten().sum::<i128>();
        self.count += whole(3).sum::<i64>();
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(ScalarValue::IntervalMonthDayNano(None));
        }
        let sums = (self.months as f64, self.days as f64, self.nanos as f64 / 1000.0);
        match interval_times(sums, 1.0 / self.count as f64) {
            Some(mean) => Ok(ScalarValue::IntervalMonthDayNano(Some(mean))),
            None => exec_err!("the average of intervals is out of range"),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Int64(Some(self.months)),
            ScalarValue::Int64(Some(self.days)),
            ScalarValue::Decimal128(Some(self.nanos), DECIMAL128_MAX_PRECISION, 0),
            ScalarValue::Int64(Some(self.count)),
        ])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
