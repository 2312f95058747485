//! `+`, `-` and `*` of decimals, as fast as the width of their values allows.
//!
//! Arrow computes them in 128 bits with an overflow check for each row. Here each batch's widest value
//! is found first, by OR over all values; if the operands' bits show that no result can overflow,
//! the rows are computed without checks, by a 64-bit multiplication if both sides fit. Such results
//! are less than 2^126, and so less than 10^38: they fit the widest result type, and narrower result types are
//! large enough for every result of their operands' types.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array};
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Decimal128Type};

use super::Operation;

/// Bits of magnitude in a 128-bit value, without its sign.
const BITS_MAX: u32 = 127;

/// Bits of magnitude in a 64-bit value.
const BITS_NARROW: u32 = 63;

/// Computes the result if the operands' bits exclude an overflow.
pub(super) fn unchecked(
    operation: Operation,
    left: &dyn Datum,
    right: &dyn Datum,
    result: &DataType,
    rows: usize,
) -> Option<ArrayRef> {
    let DataType::Decimal128(_, scale) = result else { return None };
    let (left, right) = (Operand::new(left)?, Operand::new(right)?);
    let nulls = NullBuffer::union(left.nulls.as_ref(), right.nulls.as_ref());
    let values = match operation {
        Operation::Multiply => multiply(&left, &right, rows)?,
        Operation::Add => add(&left.scaled_to(*scale)?, &right.scaled_to(*scale)?, rows)?,
        Operation::Subtract => subtract(&left.scaled_to(*scale)?, &right.scaled_to(*scale)?, rows)?,
        _ => return None,
    };
    Some(Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(result.clone())))
}

/// One side of an operation.
#[derive(Clone, Debug)]
struct Operand {
    values: DecimalValues,
    nulls: Option<NullBuffer>,
    scale: i8,
    /// Bits of magnitude of the widest value (including the slots of nulls).
    bits: u32,
    /// Factor by which the values are multiplied first; `bits` includes its bits.
    factor: i128,
}

#[derive(Clone, Debug)]
enum DecimalValues {
    Rows(ScalarBuffer<i128>),
    One(i128),
}

impl Operand {
    /// Creates a side; None if it is not a 128-bit decimal, or is a null constant.
    fn new(datum: &dyn Datum) -> Option<Self> {
        let (array, constant) = datum.get();
        let DataType::Decimal128(_, scale) = array.data_type() else { return None };
        let array = array.as_primitive::<Decimal128Type>();
        let (values, nulls) = match constant {
            true if array.is_null(0) => return None,
            true => (DecimalValues::One(array.value(0)), None),
            false => (DecimalValues::Rows(array.values().clone()), array.nulls().cloned()),
        };
        // v ^ (v >> 127) has the bits of |v|, or of |v| - 1 if v is negative: enough for a bound.
        let magnitude = |value: &i128| (value ^ (value >> 127)) as u128;
        let widest = match &values {
            DecimalValues::One(value) => magnitude(value),
            DecimalValues::Rows(rows) => rows.iter().fold(0, |all, value| all | magnitude(value)),
        };
        let bits = u128::BITS - widest.leading_zeros();
        Some(Self { values, nulls, scale: *scale, bits, factor: 1 })
    }

    /// Returns the same values at a scale at least as large; None if that might overflow.
    fn scaled_to(mut self, scale: i8) -> Option<Self> {
        let digits = u32::try_from(i32::from(scale) - i32::from(self.scale)).ok()?;
        self.factor = 10_i128.checked_pow(digits)?;
        self.bits += u128::BITS - (self.factor.unsigned_abs() - 1).leading_zeros();
        self.scale = scale;
        (self.bits < BITS_MAX).then_some(self)
    }
}

/// Computes products; None if one might overflow.
fn multiply(left: &Operand, right: &Operand, rows: usize) -> Option<Vec<i128>> {
    // |v| may be one more than its bits show: v = -2^bits. Hence "below" and not "up to".
    if left.bits + right.bits + 1 >= BITS_MAX {
        return None;
    }
    // If both sides fit 64 bits, one instruction multiplies them.
    let narrow = left.bits <= BITS_NARROW && right.bits <= BITS_NARROW;
    Some(match narrow {
        true => pairs(left, right, rows, |l, r| i128::from(l as i64) * i128::from(r as i64)),
        false => pairs(left, right, rows, i128::wrapping_mul),
    })
}

/// Computes sums; None if one might overflow.
fn add(left: &Operand, right: &Operand, rows: usize) -> Option<Vec<i128>> {
    let (l, r) = (left.factor, right.factor);
    (left.bits.max(right.bits) + 1 < BITS_MAX)
        .then(|| pairs(left, right, rows, |a, b| a.wrapping_mul(l).wrapping_add(b.wrapping_mul(r))))
}

/// Computes differences; None if one might overflow.
fn subtract(left: &Operand, right: &Operand, rows: usize) -> Option<Vec<i128>> {
    let (l, r) = (left.factor, right.factor);
    (left.bits.max(right.bits) + 1 < BITS_MAX)
        .then(|| pairs(left, right, rows, |a, b| a.wrapping_mul(l).wrapping_sub(b.wrapping_mul(r))))
}

#[inline(always)]
fn pairs(
    left: &Operand,
    right: &Operand,
    rows: usize,
    op: impl Fn(i128, i128) -> i128,
) -> Vec<i128> {
    match (&left.values, &right.values) {
        (DecimalValues::Rows(l), DecimalValues::Rows(r)) => {
            l.iter().zip(r.iter()).map(|(l, r)| op(*l, *r)).collect()
        }
        (DecimalValues::Rows(l), DecimalValues::One(r)) => l.iter().map(|l| op(*l, *r)).collect(),
        (DecimalValues::One(l), DecimalValues::Rows(r)) => r.iter().map(|r| op(*l, *r)).collect(),
        (DecimalValues::One(l), DecimalValues::One(r)) => vec![op(*l, *r); rows],
    }
}
