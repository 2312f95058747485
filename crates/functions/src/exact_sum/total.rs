//! The exact total of a set of values.
//!
//! An [`ExactTotal`] is the sum modulo 2^w in the w bits of the values' own type, and how often it
//! wrapped: exact = low + wraps · 2^w. That needs no wider arithmetic and, where there is headroom
//! (`headroom`), not even a check per value; and it makes addition associative: the same rows give the same total (or
//! overflow) in any order, grouping and number of partitions. Because `low` spans the whole range
//! of the type, a total fits the type exactly when `wraps` is 0.
//!
//! Interval sums consist of months, days and nanoseconds, each with its own range, and one counter
//! cannot distinguish them: every wrap counts upwards, never back, so an interval sum that
//! overflows on the way fails even if later rows would reverse it.

use datafusion::arrow::array::{Array, ArrowNumericType, PrimitiveArray};
use datafusion::arrow::compute::sum;

use crate::exact_sum::headroom::Headroom;
use crate::exact_sum::summand::Summand;

/// The exact sum of some values: `low + wraps · 2^w`, where w is the width of `N` in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExactTotal<N> {
    /// The sum modulo 2^w.
    pub(crate) low: N,
    /// How often it wrapped, upwards minus downwards.
    pub(crate) wraps: i64,
}

impl<N: Summand> ExactTotal<N> {
    /// Adds one value.
    #[inline]
    pub(crate) fn add(&mut self, value: N) {
        let (low, wrapped) = self.low.plus(value);
        self.low = low;
        if wrapped {
            self.wraps += value.wraps_added();
        }
    }

    /// Subtracts a value that was added.
    #[inline]
    pub(crate) fn subtract(&mut self, value: N) {
        let (low, wrapped) = self.low.minus(value);
        self.low = low;
        if wrapped {
            self.wraps += value.wraps_subtracted();
        }
    }

    /// Adds another total.
    pub(crate) fn merge(&mut self, other: Self) {
        self.add(other.low);
        self.wraps += other.wraps;
    }

    /// Subtracts a total that was added.
    pub(crate) fn retract(&mut self, other: Self) {
        self.subtract(other.low);
        self.wraps -= other.wraps;
    }
}

/// The total of `values`, one by one.
pub(crate) fn total_of_values<N: Summand>(values: &[N]) -> ExactTotal<N> {
    let mut total = ExactTotal::default();
    for &value in values {
        total.add(value);
    }
    total
}

/// Returns the total of the non-null values of `array`. With `headroom` they are added without
/// checking for wraps.
pub(crate) fn total_of<T>(
    array: &PrimitiveArray<T>,
    mut headroom: Headroom,
) -> ExactTotal<T::Native>
where
    T: ArrowNumericType<Native: Summand>,
{
    if headroom.admits(array.values()) {
        return ExactTotal { low: sum(array).unwrap_or_default(), wraps: 0 };
    }
    let Some(nulls) = array.nulls() else { return total_of_values(array.values()) };
    let mut total = ExactTotal::default();
    for (start, end) in nulls.valid_slices() {
        total.merge(total_of_values(&array.values()[start..end]));
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::IntervalDayTime;
    use proptest::prelude::*;

    fn exact(total: ExactTotal<i64>) -> i128 {
        i128::from(total.low) + (i128::from(total.wraps) << 64)
    }

    fn hostile() -> impl Strategy<Value = i64> {
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1), any::<i64>()]
    }

    proptest! {
        #[test]
        fn a_total_is_the_sum_in_wider_arithmetic(values in prop::collection::vec(hostile(), 0..300)) {
            let expected: i128 = values.iter().map(|&value| i128::from(value)).sum();
            prop_assert_eq!(exact(total_of_values(&values)), expected);
        }

        #[test]
        fn nulls_count_for_nothing(values in prop::collection::vec(prop::option::of(hostile()), 0..300)) {
            let expected: i128 = values.iter().flatten().map(|&value| i128::from(value)).sum();
            prop_assert_eq!(exact(total_of(&Int64Array::from(values), Headroom::unused())), expected);
        }

        #[test]
        fn what_is_retracted_was_never_there(
            values in prop::collection::vec(hostile(), 0..50),
            others in prop::collection::vec(hostile(), 0..50),
        ) {
            let mut total = total_of_values(&values);
            others.iter().for_each(|&value| total.add(value));
            total.retract(total_of_values(&others));
            prop_assert_eq!(total, total_of_values(&values));
        }

        #[test]
        fn the_order_of_the_partitions_does_not_matter(
            left in prop::collection::vec(any::<i128>(), 0..20),
            right in prop::collection::vec(any::<i128>(), 0..20),
        ) {
            let (mut one, mut other) = (total_of_values(&left), total_of_values(&right));
            one.merge(total_of_values(&right));
            other.merge(total_of_values(&left));
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn an_interval_that_overflowed_once_stays_overflowed() {
        let days = |days| IntervalDayTime::new(days, 0);
        let mut total = ExactTotal::default();
        total.add(days(i32::MAX));
        total.add(days(1));
        total.subtract(days(1));
        assert_ne!(total.wraps, 0);
    }
}
