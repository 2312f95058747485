//! Values that can be summed, by type.

use std::hash::Hash;

use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano, i256};

/// A value that can be summed.
pub(super) trait Summand: ArrowNativeTypeOp + Hash + Eq {
    /// `self + other` modulo 2^w, and whether it wrapped.
    fn plus(self, other: Self) -> (Self, bool);

    /// `self - other` modulo 2^w, and whether it wrapped.
    fn minus(self, other: Self) -> (Self, bool);

    /// The change of [`wraps`](crate::total::ExactTotal::wraps) when adding `self` wraps.
    fn wraps_added(self) -> i64;

    /// The change of [`wraps`](crate::total::ExactTotal::wraps) when subtracting `self` wraps.
    fn wraps_subtracted(self) -> i64;

    /// The largest [`magnitude`](Self::magnitude) that no value of this type exceeds.
    const MAGNITUDE_MAX: u128;

    /// A bound on the absolute values, in a unit of the type's own: not less than the largest, and
    /// cheap to find.
    fn magnitude(values: &[Self]) -> u128;
}

/// Clears the sign: the value itself, or its complement if it is negative. Both are below the same
/// power of two.
macro_rules! unsigned {
    ($value:expr, $bits:expr) => {
        $value ^ ($value >> ($bits - 1))
    };
}

macro_rules! signed {
    ($($native:ty { $($magnitude:tt)* }),*) => {$(
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

            $($magnitude)*
        }
    )*};
}

signed!(
    i32 {
        const MAGNITUDE_MAX: u128 = i32::MAX as u128;

        fn magnitude(values: &[i32]) -> u128 {
            let bits = values.iter().fold(0, |bits, &value| bits | unsigned!(value, 32));
            bits as u128 + 1
        }
    },
    i64 {
        const MAGNITUDE_MAX: u128 = i64::MAX as u128;

        fn magnitude(values: &[i64]) -> u128 {
            let bits = values.iter().fold(0, |bits, &value| bits | unsigned!(value, 64));
            bits as u128 + 1
        }
    },
    // In units of 2^64: the upper halves alone say enough, and take half the work.
    i128 {
        const MAGNITUDE_MAX: u128 = i64::MAX as u128;

        fn magnitude(values: &[i128]) -> u128 {
            let upper = |value: i128| (value >> 64) as i64;
            let bits = values.iter().fold(0, |bits, &value| bits | unsigned!(upper(value), 64));
            bits as u128 + 1
        }
    },
    // In units of 2^128.
    i256 {
        const MAGNITUDE_MAX: u128 = i128::MAX as u128;

        fn magnitude(values: &[i256]) -> u128 {
            let upper = |value: i256| value.to_parts().1;
            let bits = values.iter().fold(0, |bits, &value| bits | unsigned!(upper(value), 128));
            bits as u128 + 1
        }
    }
);

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

    const MAGNITUDE_MAX: u128 = u64::MAX as u128;

    fn magnitude(values: &[u64]) -> u128 {
        values.iter().fold(0, |bits, value| bits | value).into()
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

            const MAGNITUDE_MAX: u128 = u128::MAX - 1;

            /// Never headroom: intervals are always added with checks.
            fn magnitude(_values: &[Self]) -> u128 {
                u128::MAX
            }
        }
    )*};
}

interval!(IntervalDayTime, IntervalMonthDayNano);
