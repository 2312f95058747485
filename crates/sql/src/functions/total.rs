//! The exact total of a set of values.
//!
//! A [`Total`] is the sum modulo 2^w in the w bits of the values' own type, and how often it
//! wrapped: exact = low + wraps · 2^w. That costs one never-taken branch per value and no wider
//! arithmetic, and it makes addition associative, so the same rows give the same total (or the same
//! overflow) in any order, grouping and number of partitions. Because `low` spans the whole range
//! of the type, a total fits the type exactly when `wraps` is 0.
//!
//! Intervals are sums of months, days and nanoseconds, each with its own range, and one counter
//! cannot tell them apart: there every wrap counts upwards, never back, so an interval sum that
//! overflows on the way fails although later rows would have taken it back.

use std::hash::Hash;

use datafusion::arrow::array::{Array, ArrowNativeTypeOp, ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano, i256};

/// A value that can be summed.
pub(super) trait Summand: ArrowNativeTypeOp + Hash + Eq {
    /// `self + other` modulo 2^w, and whether it wrapped.
    fn plus(self, other: Self) -> (Self, bool);

    /// `self - other` modulo 2^w, and whether it wrapped.
    fn minus(self, other: Self) -> (Self, bool);

    /// The change of [`Total::wraps`] when adding `self` wraps.
    fn wraps_added(self) -> i64;

    /// The change of [`Total::wraps`] when subtracting `self` wraps.
    fn wraps_subtracted(self) -> i64;

    /// The total of `values`.
    fn total(values: &[Self]) -> Total<Self> {
        let mut total = Total::default();
        for &value in values {
            total.add(value);
        }
        total
    }
}

/// The exact sum of some values: `low + wraps · 2^w`, where w is the width of `N` in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total<N> {
    /// The sum modulo 2^w.
    pub(super) low: N,
    /// How often it wrapped, upwards minus downwards.
    pub(super) wraps: i64,
}

impl<N: Summand> Total<N> {
    /// Adds one value.
    #[inline]
    pub(super) fn add(&mut self, value: N) {
        let (low, wrapped) = self.low.plus(value);
        self.low = low;
        if wrapped {
            self.wraps += value.wraps_added();
        }
    }

    /// Takes back one value that was added.
    #[inline]
    pub(super) fn subtract(&mut self, value: N) {
        let (low, wrapped) = self.low.minus(value);
        self.low = low;
        if wrapped {
            self.wraps += value.wraps_subtracted();
        }
    }

    /// Adds another total.
    pub(super) fn merge(&mut self, other: Self) {
        self.add(other.low);
        self.wraps += other.wraps;
    }

    /// Takes back a total that was added.
    pub(super) fn retract(&mut self, other: Self) {
        self.subtract(other.low);
        self.wraps -= other.wraps;
    }
}

/// The total of the values of `array` that are not null.
pub(super) fn total_of<T>(array: &PrimitiveArray<T>) -> Total<T::Native>
where
    T: ArrowPrimitiveType<Native: Summand>,
{
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return T::Native::total(array.values());
    };
    let mut total = Total::default();
    for (start, end) in nulls.valid_slices() {
        total.merge(T::Native::total(&array.values()[start..end]));
    }
    total
}

macro_rules! signed {
    ($($native:ty $({ $($total:item)* })?),*) => {$(
        impl Summand for $native {
            #[inline]
            fn plus(self, other: Self) -> (Self, bool) {
                self.overflowing_add(other)
            }

            #[inline]
            fn minus(self, other: Self) -> (Self, bool) {
                self.overflowing_sub(other)
            }

            fn wraps_added(self) -> i64 {
                if self < Self::default() { -1 } else { 1 }
            }

            fn wraps_subtracted(self) -> i64 {
                -self.wraps_added()
            }

            $($($total)*)?
        }
    )*};
}

signed!(i32, i128, i256, i64 {
    /// Two sums of 32-bit halves without a carry between them, which the compiler vectorises. The
    /// values are biased to unsigned because AVX2 has no arithmetic shift of 64-bit lanes.
    fn total(values: &[i64]) -> Total<i64> {
        /// Of which the halves, each below 2^32, cannot overflow 64 bits.
        const ROWS_MAX: usize = 1 << 31;
        let mut exact = 0_i128;
        for rows in values.chunks(ROWS_MAX) {
            let (mut high, mut low) = (0_u64, 0_u64);
            for &value in rows {
                let biased = value as u64 ^ (1 << 63);
                high += biased >> 32;
                low += biased & 0xffff_ffff;
            }
            let bias = (rows.len() as i128) << 63;
            exact += (i128::from(high) << 32) + i128::from(low) - bias;
        }
        Total { low: exact as i64, wraps: ((exact - i128::from(exact as i64)) >> 64) as i64 }
    }
});

impl Summand for u64 {
    #[inline]
    fn plus(self, other: Self) -> (Self, bool) {
        self.overflowing_add(other)
    }

    #[inline]
    fn minus(self, other: Self) -> (Self, bool) {
        self.overflowing_sub(other)
    }

    fn wraps_added(self) -> i64 {
        1
    }

    fn wraps_subtracted(self) -> i64 {
        -1
    }
}

macro_rules! interval {
    ($($native:ty),*) => {$(
        impl Summand for $native {
            fn plus(self, other: Self) -> (Self, bool) {
                (self.wrapping_add(other), self.checked_add(other).is_none())
            }

            fn minus(self, other: Self) -> (Self, bool) {
                (self.wrapping_sub(other), self.checked_sub(other).is_none())
            }

            fn wraps_added(self) -> i64 {
                1
            }

            fn wraps_subtracted(self) -> i64 {
                1
            }
        }
    )*};
}

interval!(IntervalDayTime, IntervalMonthDayNano);

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::Int64Array;
    use proptest::prelude::*;

    fn exact(total: Total<i64>) -> i128 {
        i128::from(total.low) + (i128::from(total.wraps) << 64)
    }

    fn hostile() -> impl Strategy<Value = i64> {
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1), any::<i64>()]
    }

    proptest! {
        #[test]
        fn a_total_is_the_sum_in_wider_arithmetic(values in prop::collection::vec(hostile(), 0..300)) {
            let expected: i128 = values.iter().map(|&value| i128::from(value)).sum();
            let mut one_by_one = Total::default();
            values.iter().for_each(|&value| one_by_one.add(value));
            prop_assert_eq!(exact(i64::total(&values)), expected);
            prop_assert_eq!(exact(one_by_one), expected);
        }

        #[test]
        fn nulls_count_for_nothing(values in prop::collection::vec(prop::option::of(hostile()), 0..300)) {
            let expected: i128 = values.iter().flatten().map(|&value| i128::from(value)).sum();
            prop_assert_eq!(exact(total_of(&Int64Array::from(values))), expected);
        }

        #[test]
        fn what_is_retracted_was_never_there(
            values in prop::collection::vec(hostile(), 0..50),
            others in prop::collection::vec(hostile(), 0..50),
        ) {
            let mut total = i64::total(&values);
            others.iter().for_each(|&value| total.add(value));
            total.retract(i64::total(&others));
            prop_assert_eq!(total, i64::total(&values));
        }

        #[test]
        fn the_order_of_the_partitions_does_not_matter(
            left in prop::collection::vec(any::<i128>(), 0..20),
            right in prop::collection::vec(any::<i128>(), 0..20),
        ) {
            let (mut one, mut other) = (i128::total(&left), i128::total(&right));
            one.merge(i128::total(&right));
            other.merge(i128::total(&left));
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn an_interval_that_overflowed_once_stays_overflowed() {
        let days = |days| IntervalDayTime::new(days, 0);
        let mut total = Total::default();
        total.add(days(i32::MAX));
        total.add(days(1));
        total.subtract(days(1));
        assert_ne!(total.wraps, 0);
    }
}
