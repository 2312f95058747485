//! Integer operations: wrapped results, and whether any row of the batch overflowed.
//!
//! Each operation returns its wrapped result and a word whose top bit is the overflow flag. A
//! batch's words are combined by OR and checked once. Nothing branches, so the loops are
//! vectorised like those that wrap silently. Rows are checked one by one only if the flag is set and there are
//! nulls, whose slots may hold anything.

use std::ops::{BitOr, Range};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{
    ArrowNativeType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::arrow::error::ArrowError;

use super::Operation;

/// An integer whose operations set the top bit of their second result on overflow.
pub(super) trait Whole: ArrowNativeType + BitOr<Output = Self> {
    fn plus(self, other: Self) -> (Self, Self);
    fn minus(self, other: Self) -> (Self, Self);
    fn times(self, other: Self) -> (Self, Self);
    /// `self · 2^count`.
    fn shifted_left(self, count: Self) -> (Self, Self);
    /// `self / 2^count`, rounded down.
    fn shifted_right(self, count: Self) -> (Self, Self);
    fn top_bit(self) -> bool;
}

macro_rules! shifts {
    () => {
        #[inline(always)]
        fn shifted_left(self, count: Self) -> (Self, Self) {
            let (places, outside) = places(count.into(), Self::BITS);
            let result = self.wrapping_shl(places);
            (result, flag(outside || result.wrapping_shr(places) != self) as Self)
        }

        #[inline(always)]
        fn shifted_right(self, count: Self) -> (Self, Self) {
            let (places, outside) = places(count.into(), Self::BITS);
            (self.wrapping_shr(places), flag(outside) as Self)
        }
    };
}

/// The shift count, and whether the type has fewer bits than that.
#[inline(always)]
fn places(count: i128, bits: u32) -> (u32, bool) {
    (count as u32, !(0..i128::from(bits)).contains(&count))
}

/// All bits set if the condition holds.
#[inline(always)]
fn flag(condition: bool) -> i64 {
    -i64::from(condition)
}

macro_rules! signed_sums {
    () => {
        #[inline(always)]
        fn plus(self, other: Self) -> (Self, Self) {
            let sum = self.wrapping_add(other);
            (sum, (self ^ sum) & (other ^ sum))
        }

        #[inline(always)]
        fn minus(self, other: Self) -> (Self, Self) {
            let difference = self.wrapping_sub(other);
            (difference, (self ^ other) & (self ^ difference))
        }

        #[inline(always)]
        fn top_bit(self) -> bool {
            self < 0
        }
    };
}

macro_rules! unsigned_sums {
    () => {
        #[inline(always)]
        fn plus(self, other: Self) -> (Self, Self) {
            let sum = self.wrapping_add(other);
            (sum, (self & other) | ((self | other) & !sum))
        }

        #[inline(always)]
        fn minus(self, other: Self) -> (Self, Self) {
            let difference = self.wrapping_sub(other);
            (difference, (!self & other) | ((!self | other) & difference))
        }

        #[inline(always)]
        fn top_bit(self) -> bool {
            self.leading_zeros() == 0
        }
    };
}

/// Products in a type twice as wide.
macro_rules! narrow_products {
    ($wide:ty) => {
        #[inline(always)]
        fn times(self, other: Self) -> (Self, Self) {
            let exact = self as $wide * other as $wide;
            let product = exact as Self;
            (product, flag(product as $wide != exact) as Self)
        }
    };
}

macro_rules! wide_products {
    () => {
        #[inline(always)]
        fn times(self, other: Self) -> (Self, Self) {
            let (product, overflowed) = self.overflowing_mul(other);
            (product, flag(overflowed) as Self)
        }
    };
}

macro_rules! whole {
    ($($native:ty { $($methods:tt)* })*) => {
        $(impl Whole for $native {
            $($methods)*
            shifts!();
        })*
    };
}

whole! {
    i8 { signed_sums!(); narrow_products!(i16); }
    i16 { signed_sums!(); narrow_products!(i32); }
    i32 { signed_sums!(); narrow_products!(i64); }
    i64 { signed_sums!(); wide_products!(); }
    u8 { unsigned_sums!(); narrow_products!(u16); }
    u16 { unsigned_sums!(); narrow_products!(u32); }
    u32 { unsigned_sums!(); narrow_products!(u64); }
    u64 { unsigned_sums!(); wide_products!(); }
}

/// Returns the operation for integers of one type; None for other types.
pub(super) fn compute(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
    rows: usize,
) -> Option<Result<ArrayRef, ArrowError>> {
    let (data_type, other) = (left.get().0.data_type(), right.get().0.data_type());
    if data_type != other {
        return None;
    }
    Some(match data_type {
        DataType::Int8 => typed::<Int8Type>(operation, left, right, rows),
        DataType::Int16 => typed::<Int16Type>(operation, left, right, rows),
        DataType::Int32 => typed::<Int32Type>(operation, left, right, rows),
        DataType::Int64 => typed::<Int64Type>(operation, left, right, rows),
        DataType::UInt8 => typed::<UInt8Type>(operation, left, right, rows),
        DataType::UInt16 => typed::<UInt16Type>(operation, left, right, rows),
        DataType::UInt32 => typed::<UInt32Type>(operation, left, right, rows),
        DataType::UInt64 => typed::<UInt64Type>(operation, left, right, rows),
        _ => return None,
    })
}

fn typed<T: ArrowPrimitiveType<Native: Whole>>(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
    rows: usize,
) -> Result<ArrayRef, ArrowError> {
    let sides = Operands::<T>::new(left, right, rows);
    match operation {
        Operation::Add => sides.checked(T::Native::plus),
        Operation::Subtract | Operation::Negate => sides.checked(T::Native::minus),
        Operation::Multiply => sides.checked(T::Native::times),
        Operation::Divide => numeric::div(left, right),
        Operation::ShiftLeft => sides.checked(T::Native::shifted_left),
        Operation::ShiftRight => sides.checked(T::Native::shifted_right),
    }
}

/// Both operands of a batch. Constants are not null.
struct Operands<'a, T: ArrowPrimitiveType> {
    left: OperandSide<'a, T::Native>,
    right: OperandSide<'a, T::Native>,
    nulls: Option<NullBuffer>,
    rows: usize,
}

#[derive(Clone, Copy)]
enum OperandSide<'a, N> {
    Rows(&'a [N]),
    One(N),
}

impl<N: Copy> OperandSide<'_, N> {
    fn at(&self, row: usize) -> N {
        match self {
            Self::Rows(rows) => rows[row],
            Self::One(value) => *value,
        }
    }
}

impl<'a, T: ArrowPrimitiveType<Native: Whole>> Operands<'a, T> {
    fn new(left: &'a dyn Datum, right: &'a dyn Datum, rows: usize) -> Self {
        let ((left, left_nulls), (right, right_nulls)) = (side::<T>(left), side::<T>(right));
        Self { left, right, nulls: NullBuffer::union(left_nulls, right_nulls), rows }
    }

    #[inline(always)]
    fn checked(
        &self,
        op: impl Fn(T::Native, T::Native) -> (T::Native, T::Native),
    ) -> Result<ArrayRef, ArrowError> {
        let rows = self.rows;
        let (values, flags) = match (self.left, self.right) {
            (OperandSide::Rows(l), OperandSide::Rows(r)) => in_blocks(rows, |range, out| {
                each(out.iter_mut().zip(&l[range.clone()]).zip(&r[range]), |((out, l), r)| {
                    (out, op(*l, *r))
                })
            }),
            (OperandSide::Rows(l), OperandSide::One(r)) => in_blocks(rows, |range, out| {
                each(out.iter_mut().zip(&l[range]), |(out, l)| (out, op(*l, r)))
            }),
            (OperandSide::One(l), OperandSide::Rows(r)) => in_blocks(rows, |range, out| {
                each(out.iter_mut().zip(&r[range]), |(out, r)| (out, op(l, *r)))
            }),
            (OperandSide::One(l), OperandSide::One(r)) => {
                let (value, flag) = op(l, r);
                (vec![value; rows], flag)
            }
        };
        if flags.top_bit() && self.overflows(op) {
            return Err(ArrowError::ArithmeticOverflow(String::new()));
        }
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), self.nulls.clone())))
    }

    /// Whether a non-null row overflows.
    fn overflows(&self, op: impl Fn(T::Native, T::Native) -> (T::Native, T::Native)) -> bool {
        let Some(nulls) = &self.nulls else { return true };
        nulls.valid_indices().any(|row| op(self.left.at(row), self.right.at(row)).1.top_bit())
    }
}

/// Rows computed at a time: their results stay in the L1 cache until they are moved out. If they were collected
/// directly, the flags would go through memory, and nothing would be vectorised.
const BLOCK: usize = 512;

/// Computes the results of all rows and their flags, block by block.
#[inline(always)]
fn in_blocks<N: Whole>(
    rows: usize,
    mut block: impl FnMut(Range<usize>, &mut [N]) -> N,
) -> (Vec<N>, N) {
    let mut buffer = [N::default(); BLOCK];
    let (mut values, mut flags) = (Vec::with_capacity(rows), N::default());
    for start in (0..rows).step_by(BLOCK) {
        let range = start..rows.min(start + BLOCK);
        let results = &mut buffer[..range.len()];
        flags = flags | block(range, results);
        values.extend_from_slice(results);
    }
    (values, flags)
}

/// Stores the results; combines all flags.
#[inline(always)]
fn each<'a, N: Whole, R>(
    rows: impl Iterator<Item = R>,
    compute: impl Fn(R) -> (&'a mut N, (N, N)),
) -> N {
    let mut flags = N::default();
    for row in rows {
        let (out, (result, flag)) = compute(row);
        *out = result;
        flags = flags | flag;
    }
    flags
}

fn side<T: ArrowPrimitiveType>(
    datum: &dyn Datum,
) -> (OperandSide<'_, T::Native>, Option<&NullBuffer>) {
    let (array, constant) = datum.get();
    let array = array.as_primitive::<T>();
    match constant {
        true => (OperandSide::One(array.value(0)), None),
        false => (OperandSide::Rows(array.values()), array.nulls()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::{Int8Array, Int64Array, Scalar, UInt8Array, UInt64Array};

    /// Checks every pair of bytes against wider arithmetic.
    fn check_all<T>(exact: impl Fn(Operation, i64, i64) -> Option<i64>)
    where
        T: ArrowPrimitiveType<Native: Whole + TryFrom<i64> + Into<i64>>,
    {
        let values: Vec<i64> = (-128..=255).collect();
        let natives: Vec<T::Native> =
            values.iter().filter_map(|value| T::Native::try_from(*value).ok()).collect();
        for operation in [
            Operation::Add,
            Operation::Subtract,
            Operation::Multiply,
            Operation::ShiftLeft,
            Operation::ShiftRight,
        ] {
            for &left in &natives {
                for &right in &natives {
                    let array = |value| PrimitiveArray::<T>::from_value(value, 1);
                    let found = compute(operation, &array(left), &array(right), 1);
                    let found = found
                        .and_then(Result::ok)
                        .map(|found| found.as_primitive::<T>().value(0).into());
                    let expected = exact(operation, left.into(), right.into())
                        .filter(|value| T::Native::try_from(*value).is_ok());
                    assert_eq!(found, expected, "{operation:?} of {left:?} and {right:?}");
                }
            }
        }
    }

    fn exact(operation: Operation, left: i64, right: i64) -> Option<i64> {
        match operation {
            Operation::Add => Some(left + right),
            Operation::Subtract => Some(left - right),
            Operation::Multiply => Some(left * right),
            Operation::ShiftLeft => (0..8).contains(&right).then(|| left << right),
            Operation::ShiftRight => (0..8).contains(&right).then(|| left >> right),
            _ => None,
        }
    }

    #[test]
    fn all_bytes_are_right_or_overflow() {
        check_all::<Int8Type>(exact);
        check_all::<UInt8Type>(exact);
    }

    #[test]
    fn the_widest_integers_are_right_or_overflow() {
        let values = [i64::MIN, i64::MIN + 1, -1, 0, 1, 3_037_000_500, i64::MAX - 1, i64::MAX];
        for left in values {
            for right in values {
                let (l, r) = (Int64Array::from(vec![left]), Int64Array::from(vec![right]));
                let found = |operation| {
                    let result = compute(operation, &l, &r, 1).and_then(Result::ok);
                    result.map(|result| result.as_primitive::<Int64Type>().value(0))
                };
                assert_eq!(found(Operation::Add), left.checked_add(right));
                assert_eq!(found(Operation::Subtract), left.checked_sub(right));
                assert_eq!(found(Operation::Multiply), left.checked_mul(right));
            }
        }
        let most = UInt64Array::from(vec![u64::MAX]);
        let one = Scalar::new(UInt64Array::from(vec![1]));
        assert!(compute(Operation::Add, &most, &one, 1).is_some_and(|result| result.is_err()));
        assert!(compute(Operation::Subtract, &most, &one, 1).is_some_and(|result| result.is_ok()));
    }

    #[test]
    fn the_slot_of_a_null_does_not_overflow() {
        let slots = Int8Array::new(vec![127, 1].into(), Some(vec![false, true].into()));
        let one = Scalar::new(Int8Array::from(vec![1]));
        let sum = compute(Operation::Add, &slots, &one, 2).and_then(Result::ok);
        let expected = Int8Array::from(vec![None, Some(2)]);
        assert_eq!(sum.expect("no row overflows").as_primitive::<Int8Type>(), &expected);
        let valid = Int8Array::new(vec![127, 1].into(), Some(vec![true, false].into()));
        assert!(compute(Operation::Add, &valid, &one, 2).is_some_and(|sum| sum.is_err()));
        let bytes = UInt8Array::from(vec![255]);
        assert!(compute(Operation::Add, &bytes, &bytes, 1).is_some_and(|sum| sum.is_err()));
    }
}
