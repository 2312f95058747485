//! Quotients of decimals, rounded half away from zero.
//!
//! PostgreSQL returns at least 16 significant digits. A column has one type, so here the
//! scale comes from the operands' types: 16 digits after the point if 38 digits leave room for them
//! and the whole digits, and never fewer than four more than the dividend has
//! ([`quotient_type`](atoll_primitives::aggregate::quotient_type), which averages use too).

use std::sync::Arc;

use atoll_primitives::aggregate::quotient_type;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array, Decimal256Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    DecimalType, i256,
};
use datafusion::arrow::error::ArrowError;

/// Returns the type of a quotient; None unless the operands are decimals of one width, or one is an integer.
pub(super) fn result_type(left: &DataType, right: &DataType) -> Option<DataType> {
    Some(match operand_types(left, right)? {
        (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) => {
            let (precision, scale) = quotient_type(DECIMAL128_MAX_PRECISION, (p1, s1), (p2, s2));
            DataType::Decimal128(precision, scale)
        }
        (DataType::Decimal256(p1, s1), DataType::Decimal256(p2, s2)) => {
            let (precision, scale) = quotient_type(DECIMAL256_MAX_PRECISION, (p1, s1), (p2, s2));
            DataType::Decimal256(precision, scale)
        }
        _ => return None,
    })
}

/// Returns the types to which operands are cast: decimals of one width.
pub(super) fn operand_types(left: &DataType, right: &DataType) -> Option<(DataType, DataType)> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    if !(left.is_decimal() || right.is_decimal()) {
        return None;
    }
    let decimal = |side: &DataType| {
        Some(match side {
            Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) => Decimal128(*p, *s),
            Decimal256(p, s) => Decimal256(*p, *s),
            other => Decimal128(digits(other)?, 0),
        })
    };
    Some(match (decimal(left)?, decimal(right)?) {
        (Decimal128(p, s), right @ Decimal256(..)) => (Decimal256(p, s), right),
        (left @ Decimal256(..), Decimal128(p, s)) => (left, Decimal256(p, s)),
        both => both,
    })
}

/// Number of digits of the largest integer of a type.
pub(super) fn digits(integer: &DataType) -> Option<u8> {
    Some(match integer {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        _ => return None,
    })
}

/// Computes the quotients; fails if a non-null row has no quotient or one that does not fit.
pub(super) fn divide(
    left: &dyn Datum,
    right: &dyn Datum,
    result: &DataType,
    rows: usize,
) -> Result<ArrayRef, ArrowError> {
    let types = (left.get().0.data_type(), right.get().0.data_type(), result);
    match types {
        (
            DataType::Decimal128(_, s1),
            DataType::Decimal128(_, s2),
            DataType::Decimal128(precision, scale),
        ) => {
            let power = power(*s1, *s2, *scale)?;
            let factor = 10_i128.checked_pow(power);
            let values = each::<Decimal128Type>(left, right, rows, |l, r| {
                let scaled = factor.and_then(|factor| l.checked_mul(factor));
                let exact = scaled.and_then(|scaled| rounded(scaled, r));
                let quotient = match exact {
                    Some(quotient) => Some(quotient),
                    None => wide(i256::from_i128(l), i256::from_i128(r), power)?.to_i128(),
                };
                quotient
                    .filter(|quotient| {
                        Decimal128Type::is_valid_decimal_precision(*quotient, *precision)
                    })
                    .ok_or_else(overflow)
            })?;
            let array = Decimal128Array::new(values.0.into(), values.1);
            Ok(Arc::new(array.with_data_type(result.clone())))
        }
        (
            DataType::Decimal256(_, s1),
            DataType::Decimal256(_, s2),
            DataType::Decimal256(precision, scale),
        ) => {
            let power = power(*s1, *s2, *scale)?;
            let values = each::<Decimal256Type>(left, right, rows, |l, r| {
                Some(wide(l, r, power)?)
                    .filter(|quotient| {
                        Decimal256Type::is_valid_decimal_precision(*quotient, *precision)
                    })
                    .ok_or_else(overflow)
            })?;
            let array = Decimal256Array::new(values.0.into(), values.1);
            Ok(Arc::new(array.with_data_type(result.clone())))
        }
        (left, right, _) => {
            Err(ArrowError::InvalidArgumentError(format!("division of {left} by {right}")))
        }
    }
}

fn overflow() -> ArrowError {
    ArrowError::ArithmeticOverflow(String::new())
}

/// Returns the power of ten by which the dividend is multiplied before the division.
fn power(dividend: i8, divisor: i8, quotient: i8) -> Result<u32, ArrowError> {
    let power = i32::from(quotient) - i32::from(dividend) + i32::from(divisor);
    u32::try_from(power).map_err(|_| {
        ArrowError::InvalidArgumentError("division of decimals of negative scale".to_owned())
    })
}

type Quotients<N> = (Vec<N>, Option<NullBuffer>);

fn each<T: DecimalType>(
    left: &dyn Datum,
    right: &dyn Datum,
    rows: usize,
    quotient: impl Fn(T::Native, T::Native) -> Result<T::Native, ArrowError>,
) -> Result<Quotients<T::Native>, ArrowError> {
    let ((l, l_constant), (r, r_constant)) = (left.get(), right.get());
    let (l, r) = (l.as_primitive::<T>(), r.as_primitive::<T>());
    let of = |constant: bool, nulls: Option<&NullBuffer>| nulls.filter(|_| !constant).cloned();
    let nulls =
        NullBuffer::union(of(l_constant, l.nulls()).as_ref(), of(r_constant, r.nulls()).as_ref());
    let one = |row: usize| {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(T::Native::default());
        }
        let left = l.value(if l_constant { 0 } else { row });
        let right = r.value(if r_constant { 0 } else { row });
        if right == T::Native::default() {
            return Err(ArrowError::DivideByZero);
        }
        quotient(left, right)
    };
    let values = (0..rows).map(one).collect::<Result<_, _>>()?;
    Ok((values, nulls))
}

/// `dividend / divisor`, half away from zero; None if it does not fit 128 bits.
fn rounded(dividend: i128, divisor: i128) -> Option<i128> {
    let (quotient, rest) = match (i64::try_from(dividend), i64::try_from(divisor)) {
        (Ok(dividend), Ok(divisor)) if dividend != i64::MIN => {
            (i128::from(dividend / divisor), i128::from(dividend % divisor))
        }
        _ => (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?),
    };
    let (rest, size) = (rest.unsigned_abs(), divisor.unsigned_abs());
    match rest >= size - rest {
        true if (dividend < 0) == (divisor < 0) => quotient.checked_add(1),
        true => quotient.checked_sub(1),
        false => Some(quotient),
    }
}

/// The same for `dividend · 10^power` in 256 bits.
fn wide(dividend: i256, divisor: i256, power: u32) -> Result<i256, ArrowError> {
    let exact = || {
        let dividend = dividend.checked_mul(i256::from_i128(10).checked_pow(power)?)?;
        let (quotient, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
        let same = (dividend < i256::ZERO) == (divisor < i256::ZERO);
        // Compares negatives: every positive value has one.
        let below = |value: i256| if value > i256::ZERO { value.wrapping_neg() } else { value };
        let (rest, size) = (below(rest), below(divisor));
        match rest <= size.wrapping_sub(rest) {
            true if same => quotient.checked_add(i256::ONE),
            true => quotient.checked_sub(i256::ONE),
            false => Some(quotient),
        }
    };
    exact().ok_or_else(overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (dividend, divisor, expected) in [
            (1, 2, 1),
            (-1, 2, -1),
            (1, -2, -1),
            (3, 2, 2),
            (-3, -2, 2),
            (1, 3, 0),
            (2, 3, 1),
            (-2, 3, -1),
            (7, 7, 1),
            (0, 5, 0),
            (i128::from(i64::MIN), -1, 1_i128 << 63),
        ] {
            assert_eq!(rounded(dividend, divisor), Some(expected), "{dividend} / {divisor}");
            let (dividend, divisor) = (i256::from_i128(dividend), i256::from_i128(divisor));
            assert_eq!(wide(dividend, divisor, 0).unwrap(), i256::from_i128(expected));
        }
        assert_eq!(rounded(i128::MIN, -1), None);
        assert_eq!(rounded(i128::MAX, i128::MAX), Some(1));
        assert_eq!(rounded(i128::MIN + 1, i128::MAX), Some(-1));
    }

    #[test]
    fn the_scale_has_sixteen_digits_where_there_is_room() {
        let decimal = DataType::Decimal128;
        let result = |left, right| result_type(&left, &right);
        assert_eq!(result(decimal(2, 1), DataType::Int64), Some(decimal(17, 16)));
        assert_eq!(result(decimal(15, 2), decimal(15, 2)), Some(decimal(31, 16)));
        assert_eq!(result(decimal(38, 4), decimal(38, 4)), Some(decimal(38, 8)));
        assert_eq!(result(DataType::Int64, decimal(10, 0)), Some(decimal(35, 16)));
        assert_eq!(result(DataType::Int64, DataType::Int64), None);
        assert_eq!(result(DataType::Float64, decimal(10, 0)), None);
    }
}
