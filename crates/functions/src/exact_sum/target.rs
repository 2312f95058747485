//! The type that a total must fit, and the columns of a partial total.
//!
//! A partial aggregation passes on the low part of each total and, in a second column, its wraps.
//! If the result has ten digits more than the argument (a DECIMAL of at most 28 digits, in 128
//! bits), the second column is omitted: values below 10^p need more than 10^10 rows in one
//! partition to reach 10^(p+10), which is less than the range of the bits that hold it.
//! [`Headroom::Ample`] then applies, and sums are added as fast as DataFusion's.

use std::ops::RangeInclusive;

use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::error::{DataFusionError, Result};

use crate::exact_sum::headroom::Headroom;
use crate::exact_sum::overflow::SumOverflow;
use crate::exact_sum::summand::Summand;
use crate::exact_sum::total::ExactTotal;

/// Digits that DataFusion adds to a decimal argument's precision for its sum.
const SUM_DIGITS: u8 = 10;

/// The destination of a total: the aggregate's name, its result type and that type's range.
#[derive(Clone, Debug)]
pub(crate) struct TotalTarget<N> {
    aggregate: String,
    data_type: DataType,
    /// The range of a decimal's digits; for every other type all bit patterns are valid.
    range: Option<RangeInclusive<N>>,
}

impl<N: Summand> TotalTarget<N> {
    /// The target of `aggregate`, of `data_type`, whose values are of type `N`.
    pub(crate) fn new(aggregate: &str, data_type: &DataType) -> Self {
        Self {
            aggregate: aggregate.to_owned(),
            data_type: data_type.clone(),
            range: decimal_range(data_type),
        }
    }

    /// The result type.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns the total as a value of the result type, or the overflow.
    pub(crate) fn check(&self, total: ExactTotal<N>) -> Result<N> {
        self.check_all(&[total.low], &[total.wraps])?;
        Ok(total.low)
    }

    /// Checks totals given as low parts and wraps; empty wraps mean zeros.
    pub(crate) fn check_all(&self, lows: &[N], wraps: &[i64]) -> Result<()> {
        let outside = |range: &RangeInclusive<N>| !lows.iter().all(|low| range.contains(low));
        if wraps.iter().any(|&wraps| wraps != 0) || self.range.as_ref().is_some_and(outside) {
            return Err(self.overflow());
        }
        Ok(())
    }

    /// Checks that totals whose states omit the wraps have none.
    pub(crate) fn check_unwrapped(&self, wraps: &[i64]) -> Result<()> {
        self.check_all(&[], wraps)
    }

    /// Returns the overflow error of this aggregate.
    pub(crate) fn overflow(&self) -> DataFusionError {
        SumOverflow::new(&self.aggregate, &self.data_type).into_datafusion()
    }
}

/// Whether states of `argument` summed as `result` include the wraps.
pub(crate) fn carries_wraps(argument: &DataType, result: &DataType) -> bool {
    !headroom(argument, result).is_ample()
}

/// Returns the initial headroom of totals of `argument` summed as `result`.
pub(crate) fn headroom(argument: &DataType, result: &DataType) -> Headroom {
    match (decimal_precision(argument), decimal_precision(result)) {
        (Some(argument), Some(result)) if result >= argument + SUM_DIGITS => Headroom::Ample,
        _ => Headroom::unused(),
    }
}

fn decimal_precision(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision, _) => Some(*precision),
        _ => None,
    }
}

fn decimal_range<N: ArrowNativeTypeOp>(data_type: &DataType) -> Option<RangeInclusive<N>> {
    let precision = decimal_precision(data_type)?;
    let ten = <N as ArrowNativeType>::usize_as(10);
    let max = ten.pow_wrapping(u32::from(precision)).sub_wrapping(N::ONE);
    Some(N::ZERO.sub_wrapping(max)..=max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_holds_its_digits_and_not_one_more() {
        let target = TotalTarget::<i128>::new("sum(x)", &DataType::Decimal128(38, 2));
        let max = 10_i128.pow(38) - 1;
        assert_eq!(target.check(ExactTotal { low: max, wraps: 0 }).unwrap(), max);
        assert_eq!(target.check(ExactTotal { low: -max, wraps: 0 }).unwrap(), -max);
        assert!(target.check(ExactTotal { low: max + 1, wraps: 0 }).is_err());
        assert!(target.check(ExactTotal { low: 0, wraps: 1 }).is_err());
    }

    #[test]
    fn an_integer_holds_every_pattern_that_did_not_wrap() {
        let target = TotalTarget::<i64>::new("sum(x)", &DataType::Int64);
        assert!(target.check(ExactTotal { low: i64::MIN, wraps: 0 }).is_ok());
        assert!(target.check(ExactTotal { low: 5, wraps: -1 }).is_err());
    }

    #[test]
    fn wraps_travel_unless_ten_digits_are_spare() {
        let decimal = |precision| DataType::Decimal128(precision, 2);
        assert!(!carries_wraps(&decimal(15), &decimal(25)));
        assert!(!carries_wraps(&decimal(28), &decimal(38)));
        assert!(carries_wraps(&decimal(29), &decimal(38)));
        assert!(carries_wraps(&DataType::Int64, &DataType::Int64));
    }
}
