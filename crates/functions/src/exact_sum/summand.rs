//! Values that can be summed, by type.

use std::hash::Hash;

use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano, i256};

/// A value that can be summed.
pub(crate) trait Summand: ArrowNativeTypeOp + Hash + Eq {
    /// `self + other` modulo 2^w, and whether it wrapped.
    fn plus(self, other: Self) -> (Self, bool);

    /// `self - other` modulo 2^w, and whether it wrapped.
    fn minus(self, other: Self) -> (Self, bool);

    /// The change of [`wraps`](crate::exact_sum::total::ExactTotal::wraps) when adding `self` wraps.
    fn wraps_added(self) -> i64;

    /// The change of [`wraps`](crate::exact_sum::total::ExactTotal::wraps) when subtracting `self` wraps.
    fn wraps_subtracted(self) -> i64;

    /// The largest [`magnitude`](Self::magnitude) that no value of this type exceeds.
    const MAGNITUDE_MAX: u128;

    /// A bound on the absolute values, in a type-specific unit: at least the largest one, and
    /// cheap to compute.
    fn magnitude(values: &[Self]) -> u128;
}

/// Integers. `bits` of a value are below the same power of two as its absolute value, and `above` them is the bound.
macro_rules! whole {
    ($($native:ty: max $max:expr, negative $negative:expr, bits $bits:expr, above $above:expr;)*) => {$(
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
                if $negative(self) { -1 } else { 1 }
            }

            fn wraps_subtracted(self) -> i64 {
                -self.wraps_added()
            }

            const MAGNITUDE_MAX: u128 = $max as u128;

            fn magnitude(values: &[Self]) -> u128 {
                let bits = values.iter().fold(0, |bits, &value| bits | $bits(value));
                bits as u128 + $above
            }
        }
    )*};
}

/// Clears the sign: the value itself, or its complement if it is negative.
macro_rules! unsigned {
    ($value:expr, $native:ty) => {
        $value ^ ($value >> (<$native>::BITS - 1))
    };
}

whole! {
    i32: max i32::MAX, negative i32::is_negative, bits |it: i32| unsigned!(it, i32), above 1;
    i64: max i64::MAX, negative i64::is_negative, bits |it: i64| unsigned!(it, i64), above 1;
    // In units of 2^64: the upper halves suffice, and take half the work.
    i128: max i64::MAX, negative i128::is_negative,
        bits |it: i128| unsigned!((it >> 64) as i64, i64), above 1;
    // In units of 2^128.
    i256: max i128::MAX, negative i256::is_negative,
        bits |it: i256| unsigned!(it.to_parts().1, i128), above 1;
    u64: max u64::MAX, negative |_| false, bits |it: u64| it, above 0;
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

            const MAGNITUDE_MAX: u128 = u128::MAX - 1;

            /// Never headroom: intervals are always added with checks.
            fn magnitude(_values: &[Self]) -> u128 {
                u128::MAX
            }
        }
    )*};
}

interval!(IntervalDayTime, IntervalMonthDayNano);
