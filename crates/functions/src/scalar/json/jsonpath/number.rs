//! Arithmetic of NUMERIC, with the digits after the point that PostgreSQL gives.

use bigdecimal::num_bigint::{BigInt, Sign as IntSign};
use bigdecimal::{BigDecimal, RoundingMode, Zero};

use super::super::normal::{PLACES_MAX, WHOLE_DIGITS_MAX};
use super::super::value::JsonFailure;
use super::tree::Operation;

/// Digits that a quotient has at least, and digits in which PostgreSQL counts them.
const QUOTIENT_DIGITS: i64 = 16;
const GROUP: i64 = 4;
const QUOTIENT_SCALE_MAX: i64 = 1000;

/// Returns the result of an operation on two numbers.
pub(super) fn computed(
    left: &BigDecimal,
    operation: Operation,
    right: &BigDecimal,
) -> Result<BigDecimal, JsonFailure> {
    let scales = (scale(left), scale(right));
    let greater = scales.0.max(scales.1);
    let divides = matches!(operation, Operation::Divide | Operation::Modulo);
    if divides && right.is_zero() {
        return Err(("22012", "division by zero".to_owned()));
    }
    let result = match operation {
        Operation::Add => (left + right).with_scale(greater),
        Operation::Subtract => (left - right).with_scale(greater),
        Operation::Multiply => (left * right).with_scale(scales.0 + scales.1),
        Operation::Divide => quotient(left, right),
        Operation::Modulo => (left % right).with_scale(greater),
    };
    if scale(&result) > PLACES_MAX as i64 {
        return Ok(result.with_scale_round(PLACES_MAX as i64, RoundingMode::HalfUp));
    }
    match result.digits() as i64 - scale(&result) > WHOLE_DIGITS_MAX as i64 {
        true => Err(("22003", "value overflows numeric format".to_owned())),
        false => Ok(result),
    }
}

fn scale(number: &BigDecimal) -> i64 {
    number.fractional_digit_count()
}

fn quotient(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let (of_left, of_right) = (first_group(left), first_group(right));
    let weight = of_left.0 - of_right.0 - i64::from(of_left.1 <= of_right.1);
    let wanted = QUOTIENT_DIGITS - weight * GROUP;
    let wanted = wanted.max(scale(left)).max(scale(right)).clamp(0, QUOTIENT_SCALE_MAX);
    let (dividend, dividend_scale) = left.as_bigint_and_exponent();
    let (divisor, divisor_scale) = right.as_bigint_and_exponent();
    // One digit more, for rounding.
    let shift = wanted + 1 + divisor_scale - dividend_scale;
    let power = |digits: i64| BigInt::from(10).pow(u32::try_from(digits).unwrap_or(0));
    let digits = match shift >= 0 {
        true => dividend * power(shift) / divisor,
        false => dividend / (divisor * power(-shift)),
    };
    BigDecimal::new(digits, wanted + 1).with_scale_round(wanted, RoundingMode::HalfUp)
}

/// The place of the first group of four digits that is not zero, and its value.
fn first_group(number: &BigDecimal) -> (i64, i64) {
    let (digits, scale) = number.as_bigint_and_exponent();
    if digits.sign() == IntSign::NoSign {
        return (0, 0);
    }
    let digits = digits.magnitude().to_string();
    let place = digits.len() as i64 - scale - 1;
    let count = place.rem_euclid(GROUP) as usize + 1;
    let group = digits.bytes().chain(std::iter::repeat(b'0')).take(count);
    let value = group.fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    (place.div_euclid(GROUP), value)
}
