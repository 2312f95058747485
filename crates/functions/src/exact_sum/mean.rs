//! From a total and a count to an average of the result type.

use datafusion::arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, i256};
use datafusion::error::Result;

use crate::exact_sum::finish::Finish;
use crate::exact_sum::groups::Emitted;
use crate::exact_sum::summand::Summand;
use crate::exact_sum::target::TotalTarget;
use crate::exact_sum::total::ExactTotal;

/// A value that can be averaged.
pub(crate) trait Averaged: Summand {
    /// `total · scale / count`; decimals are rounded half away from zero. None if it does not fit.
    /// `count` is not 0.
    fn average(total: ExactTotal<Self>, count: u64, scale: Self) -> Option<Self>;
}

/// Durations: always exact, because an average is between the smallest and the largest value.
impl Averaged for i64 {
    fn average(total: ExactTotal<i64>, count: u64, scale: i64) -> Option<i64> {
        let exact = (i128::from(total.wraps) << 64) + i128::from(total.low);
        i64::try_from(exact.checked_mul(i128::from(scale))? / i128::from(count)).ok()
    }
}

/// 128-bit decimals: uses 256 bits only if the total exceeds 128.
impl Averaged for i128 {
    fn average(total: ExactTotal<i128>, count: u64, scale: i128) -> Option<i128> {
        if total.wraps == 0
            && let Some(average) = decimal_average(total.low, i128::from(count), scale)
        {
            return Some(average);
        }
        let upper = (total.low >> 127) + i128::from(total.wraps);
        let exact = i256::from_parts(total.low as u128, upper);
        average_in_256_bits(exact, count, i256::from_i128(scale))?.to_i128()
    }
}

impl Averaged for i256 {
    fn average(total: ExactTotal<i256>, count: u64, scale: i256) -> Option<i256> {
        if total.wraps != 0 {
            return None;
        }
        average_in_256_bits(total.low, count, scale)
    }
}

/// `total · scale / count`, rounded half away from zero; `None` if it does not fit. `count` is not 0.
///
/// Scales the quotient and the remainder separately, so that only a result that does not fit
/// overflows, and not an intermediate sum.
pub fn decimal_average(total: i128, count: i128, scale: i128) -> Option<i128> {
    let whole = (total / count).checked_mul(scale)?;
    let rest = (total % count).checked_mul(scale)?;
    let up = if 2 * (rest % count).abs() >= count { rest.signum() } else { 0 };
    whole.checked_add(rest / count)?.checked_add(up)
}

fn average_in_256_bits(total: i256, count: u64, scale: i256) -> Option<i256> {
    let count = i256::from_parts(u128::from(count), 0);
    let whole = total.checked_div(count)?.checked_mul(scale)?;
    let rest = total.checked_rem(count)?.checked_mul(scale)?;
    let (part, last) = (rest.checked_div(count)?, rest.checked_rem(count)?);
    let is_half = last.wrapping_abs().wrapping_mul(i256::from_i128(2)) >= count;
    let up = if is_half { rest.signum() } else { i256::ZERO };
    whole.checked_add(part)?.checked_add(up)
}

/// Computes the averages of one aggregate.
#[derive(Clone, Debug)]
pub(crate) struct MeanSpec<N> {
    target: TotalTarget<N>,
    /// The argument's type, which is also the type of a total's low part.
    argument: DataType,
    /// Ten to the power of the additional fraction digits of the result.
    scale: N,
}

impl<N: Averaged> MeanSpec<N> {
    /// Creates the averages of `aggregate` from `argument` to `result`.
    pub(crate) fn new(aggregate: &str, argument: &DataType, result: &DataType) -> Self {
        let digits = decimal_scale(result) - decimal_scale(argument);
        let ten = <N as ArrowNativeType>::usize_as(10);
        Self {
            target: TotalTarget::new(aggregate, result),
            argument: argument.clone(),
            scale: ten.pow_wrapping(u32::from(digits.unsigned_abs())),
        }
    }

    /// Returns the average; null if there are no values.
    fn average(&self, total: ExactTotal<N>, count: u64) -> Result<Option<N>> {
        if count == 0 {
            return Ok(None);
        }
        let low = N::average(total, count, self.scale).ok_or_else(|| self.target.overflow())?;
        self.target.check(ExactTotal { low, wraps: 0 }).map(Some)
    }
}

impl<T: ArrowPrimitiveType<Native: Averaged>> Finish<T> for MeanSpec<T::Native> {
    const COUNTS: bool = true;

    fn total_type(&self) -> &DataType {
        &self.argument
    }

    fn target(&self) -> &TotalTarget<T::Native> {
        &self.target
    }

    fn finish(&self, total: ExactTotal<T::Native>, count: u64) -> Result<Option<T::Native>> {
        self.average(total, count)
    }

    fn finish_all(&self, totals: Emitted<T::Native>, counts: &[u64]) -> Result<PrimitiveArray<T>> {
        let total = |group| ExactTotal {
            low: totals.lows[group],
            wraps: totals.wraps.get(group).copied().unwrap_or(0),
        };
        let groups = counts.iter().enumerate();
        groups.map(|(group, &count)| self.average(total(group), count)).collect()
    }
}

fn decimal_scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::datatypes::TimeUnit;

    use crate::exact_sum::total::total_of_values;

    #[test]
    fn durations_average_although_their_sum_overflows() {
        let duration = DataType::Duration(TimeUnit::Second);
        let mean = MeanSpec::<i64>::new("avg(x)", &duration, &duration);
        let total = total_of_values(&[i64::MAX, i64::MAX, i64::MAX - 3]);
        assert_eq!(mean.average(total, 3).unwrap(), Some(i64::MAX - 1));
    }

    #[test]
    fn a_decimal_average_needs_room_for_itself_only() {
        let mean = MeanSpec::<i256>::new(
            "avg(x)",
            &DataType::Decimal256(72, 0),
            &DataType::Decimal256(76, 4),
        );
        let value = i256::from_i128(10).wrapping_pow(72).wrapping_sub(i256::ONE);
        let total = total_of_values(&[value; 50]);
        let expected = value.wrapping_mul(i256::from_i128(10_000));
        assert_eq!(mean.average(total, 50).unwrap(), Some(expected));
    }

    #[test]
    fn the_average_rounds_half_away_from_zero() {
        let decimal = |scale| DataType::Decimal256(50, scale);
        let mean = MeanSpec::<i256>::new("avg(x)", &decimal(0), &decimal(4));
        let total = |value| ExactTotal { low: i256::from_i128(value), wraps: 0 };
        assert_eq!(mean.average(total(-20), 3).unwrap(), Some(i256::from_i128(-66_667)));
        assert_eq!(mean.average(total(20), 3).unwrap(), Some(i256::from_i128(66_667)));
        assert_eq!(mean.average(total(10), 3).unwrap(), Some(i256::from_i128(33_333)));
        assert_eq!(mean.average(total(0), 0).unwrap(), None);
        let narrow = DataType::Decimal128(10, 0);
        let mean = MeanSpec::<i128>::new("avg(x)", &narrow, &narrow);
        let average = |low, count| mean.average(ExactTotal { low, wraps: 0 }, count).unwrap();
        assert_eq!([average(5, 2), average(-5, 2)], [Some(3), Some(-3)]);
        assert_eq!([average(4, 3), average(-4, 3)], [Some(1), Some(-1)]);
    }

    #[test]
    fn a_decimal_of_128_bits_averages_although_its_sum_left_them() {
        let widest = DataType::Decimal128(38, 0);
        let mean = MeanSpec::<i128>::new("avg(x)", &widest, &widest);
        for value in [10_i128.pow(38) - 1, 1 - 10_i128.pow(38)] {
            assert_eq!(mean.average(total_of_values(&[value; 50]), 50).unwrap(), Some(value));
        }
    }
}
