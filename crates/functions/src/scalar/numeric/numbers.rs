//! Numbers.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int8Type, Int32Type};
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::failure::FunctionFailure;
use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, double, flag, whole};
use crate::scalar::text::texts::entry;
use crate::sql_name;

const DOUBLE: &[Arguments] = &[Arguments::Are(&[Takes::Double])];
const TWO_DOUBLES: &[Arguments] = &[Arguments::Are(&[Takes::Double, Takes::Double])];
const TWO_WHOLE: &[Arguments] = &[Arguments::Are(&[Takes::Whole, Takes::Whole])];

fn of_doubles(call: &Call, of: impl Fn(f64) -> Result<f64>) -> Result<ArrayRef> {
    let values = call.double(0);
    call.doubles(|row| Ok(Some(of(values.value(row))?)))
}

fn of_two_doubles(call: &Call, of: impl Fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (call.double(0), call.double(1));
    call.doubles(|row| Ok(Some(of(left.value(row), right.value(row)))))
}

/// The next even number away from zero.
fn even(value: f64) -> f64 {
    let size = value.abs().ceil();
    let even = if size % 2.0 == 0.0 { size } else { size + 1.0 };
    if value < 0.0 { -even } else { even }
}

/// The gamma function, by Lanczos' approximation (g = 7, 9 terms).
fn ln_gamma(value: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if value < 0.5 {
        let sine = (std::f64::consts::PI * value).sin().abs();
        return (std::f64::consts::PI / sine).ln() - ln_gamma(1.0 - value);
    }
    let value = value - 1.0;
    let base = value + 7.5;
    let sum = TERMS[1..]
        .iter()
        .enumerate()
        .fold(TERMS[0], |sum, (at, term)| sum + term / (value + at as f64 + 1.0));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (value + 0.5) * base.ln() - base + sum.ln()
}

fn gamma(call: &Call) -> Result<ArrayRef> {
    of_doubles(call, |value| {
        if value == 0.0 {
            return call.fails("the gamma function is undefined for 0");
        }
        // Products of integers are exact as long as doubles are.
        if value.fract() == 0.0 && (1.0..=23.0).contains(&value) {
            return Ok((1..value as u64).map(|factor| factor as f64).product());
        }
        let sign = if value < 0.0 && value.floor() % 2.0 != 0.0 { -1.0 } else { 1.0 };
        Ok(sign * ln_gamma(value).exp())
    })
}

fn sign(call: &Call) -> Result<ArrayRef> {
    let doubles = cast(&call.arrays[0], &DataType::Float64)?;
    let doubles: &PrimitiveArray<_> =
        doubles.as_primitive::<datafusion::arrow::datatypes::Float64Type>();
    call.plain::<Int8Type>(|row| {
        let value = doubles.value(row);
        Ok(Some(i8::from(value > 0.0) - i8::from(value < 0.0)))
    })
}

/// Counts the bits that are 1, in the width of the type.
fn bit_count(call: &Call) -> Result<ArrayRef> {
    let wide = cast(&call.arrays[0], &DataType::Decimal128(38, 0))?;
    let wide = wide.as_primitive::<Decimal128Type>();
    let bits = call.arrays[0].data_type().primitive_width().unwrap_or(8) as u32 * 8;
    let mask = u128::MAX >> (128 - bits);
    call.plain::<Int8Type>(|row| Ok(Some((wide.value(row) as u128 & mask).count_ones() as i8)))
}

fn gcd(left: i64, right: i64) -> u64 {
    let (mut left, mut right) = (left.unsigned_abs(), right.unsigned_abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

fn common(call: &Call, of: impl Fn(i64, i64) -> Option<i64>) -> Result<ArrayRef> {
    let (left, right) = (call.whole(0), call.whole(1));
    call.wholes(|row| match of(left.value(row), right.value(row)) {
        Some(value) => Ok(Some(value)),
        None => {
            let (left, right) = (left.value(row), right.value(row));
            call.fails(format_args!("the result for {left} and {right} does not fit BIGINT"))
        }
    })
}

fn lcm(left: i64, right: i64) -> Option<i64> {
    if left == 0 || right == 0 {
        return Some(0);
    }
    let each = left.unsigned_abs() / gcd(left, right);
    each.checked_mul(right.unsigned_abs()).and_then(|value| i64::try_from(value).ok())
}

/// Divides and truncates to an integer.
fn div(call: &Call) -> Result<ArrayRef> {
    let by_zero = || FunctionFailure::error("22012", "division by zero".to_owned());
    if call.result == DataType::Int64 {
        let (left, right) = (call.whole(0), call.whole(1));
        return call.wholes(|row| match (left.value(row), right.value(row)) {
            (_, 0) => Err(by_zero()),
            (left, right) => match left.checked_div(right) {
                Some(quotient) => Ok(Some(quotient)),
                None => {
                    call.fails_as("22003", format_args!("{left} / {right} does not fit BIGINT"))
                }
            },
        });
    }
    let (left, right) = (call.double(0), call.double(1));
    call.doubles(|row| match right.value(row) {
        0.0 => Err(by_zero()),
        divisor => Ok(Some((left.value(row) / divisor).trunc())),
    })
}

/// Returns the number of the histogram bucket, of equal width between two bounds, that contains a number.
fn width_bucket(call: &Call) -> Result<ArrayRef> {
    if call.count() == 2 {
        return bucket_of_list(call);
    }
    let (counts, value) = (call.whole(3), |at: usize, row: usize| call.double(at).value(row));
    call.wholes(|row| {
        let (x, low, high, count) =
            (value(0, row), value(1, row), value(2, row), counts.value(row));
        if count <= 0 || low == high || !low.is_finite() || !high.is_finite() || x.is_nan() {
            return call.fails("expects finite bounds that differ and a count above 0");
        }
        let share = (x - low) / (high - low);
        Ok(Some(if share < 0.0 {
            0
        } else if share >= 1.0 {
            count.checked_add(1).unwrap_or(count)
        } else {
            (share * count as f64) as i64 + 1
        }))
    })
}

/// Counts the sorted bounds that are not greater than a number.
fn bucket_of_list(call: &Call) -> Result<ArrayRef> {
    let (values, bounds) = (call.double(0), call.list(1));
    call.wholes(|row| {
        let of_row = bounds.value(row);
        if of_row.null_count() > 0 {
            return call.fails_as("22004", "thresholds must not contain NULL");
        }
        let of_row = of_row.as_primitive::<Float64Type>();
        let value = values.value(row);
        let is_below = |bound: &f64| value.is_nan() || *bound <= value;
        Ok(Some(of_row.values().partition_point(is_below) as i64))
    })
}

/// Returns the float next to another one in the direction of a third.
fn nextafter(from: f64, to: f64) -> f64 {
    match from.partial_cmp(&to) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Equal) => to,
        Some(std::cmp::Ordering::Less) => from.next_up(),
        Some(std::cmp::Ordering::Greater) => from.next_down(),
    }
}

fn half_even(call: &Call) -> Result<ArrayRef> {
    let (values, digits) = (call.double(0), call.whole(1));
    call.doubles(|row| {
        let scale = 10_f64.powi(digits.value(row).clamp(-400, 400) as i32);
        let rounded = (values.value(row) * scale).round_ties_even() / scale;
        Ok(Some(if rounded.is_finite() { rounded } else { values.value(row) }))
    })
}

/// Returns the number of fraction digits of a decimal: of its type, or without trailing zeros.
fn scale(call: &Call, all: bool) -> Result<ArrayRef> {
    let of_type = match call.arrays[0].data_type() {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => i32::from(*scale).max(0),
        _ => 0,
    };
    if all || of_type == 0 {
        return call.plain::<Int32Type>(|_| Ok(Some(of_type)));
    }
    let texts = cast(&call.arrays[0], &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    call.plain::<Int32Type>(|row| {
        let behind = texts.value(row).split_once('.').map_or("", |(_, behind)| behind);
        Ok(i32::try_from(behind.trim_end_matches('0').len()).ok())
    })
}

fn scale_gives(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    match given.first() {
        Some(DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Null) => {
            Ok(DataType::Int32)
        }
        Some(whole) if whole.is_integer() => Ok(DataType::Int32),
        other => plan_err!(
            "expected a DECIMAL, found {}; cast it: scale(1.50::DECIMAL(3,2))",
            other.map_or_else(String::new, sql_name)
        ),
    }
}

/// The type of the argument, if it is a decimal.
fn own_decimal(given: &[DataType], values: &[Option<&ScalarValue>]) -> Result<DataType> {
    scale_gives(given, values)?;
    Ok(given.first().cloned().unwrap_or(DataType::Null))
}

fn whole_or_double(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(match given.iter().all(DataType::is_integer) {
        true => DataType::Int64,
        false => DataType::Float64,
    })
}

fn tiny(_: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    Ok(DataType::Int8)
}

const ALL: &[Entry] = &[
    entry!("even" [], "number", DOUBLE, double, "The next even number away from zero.", "even(2.9) = 4",
        |call| of_doubles(call, |value| Ok(even(value)))),
    entry!("gamma" [], "number", DOUBLE, double, "The gamma function.", "gamma(5) = 24", gamma),
    entry!("lgamma" [], "number", DOUBLE, double, "The logarithm of the gamma function's size.",
        "lgamma(2) = 0", |call| of_doubles(call, |value| Ok(if value == 1.0 || value == 2.0 { 0.0 } else { ln_gamma(value) }))),
    entry!("sign" [], "number", &[Arguments::Are(&[Takes::Number])], tiny, "-1, 0 or 1.", "sign(-5) = -1", sign),
    entry!("bit_count" [], "integer", &[Arguments::Are(&[Takes::Integer])], tiny,
        "How many bits are 1, in the width of the type.", "bit_count(7) = 3", bit_count),
    entry!("xor" [], "integer, integer", TWO_WHOLE, whole, "The bits that are 1 in one of both.",
        "xor(5, 3) = 6", |call| common(call, |left, right| Some(left ^ right))),
    entry!(
        "gcd"["greatest_common_divisor"],
        "integer, integer",
        TWO_WHOLE,
        whole,
        "The greatest common divisor.",
        "gcd(12, 18) = 6",
        |call| common(call, |left, right| i64::try_from(gcd(left, right)).ok())
    ),
    entry!(
        "lcm"["least_common_multiple"],
        "integer, integer",
        TWO_WHOLE,
        whole,
        "The least common multiple.",
        "lcm(4, 6) = 12",
        |call| common(call, lcm)
    ),
    entry!("fdiv" [], "number, number", TWO_DOUBLES, double,
        "The quotient rounded down.", "fdiv(7, 2) = 3", |call| of_two_doubles(call, |left, right| (left / right).floor())),
    entry!("fmod" [], "number, number", TWO_DOUBLES, double,
        "What fdiv leaves.", "fmod(7.5, 2) = 1.5",
        |call| of_two_doubles(call, |left, right| left - (left / right).floor() * right)),
    entry!("nextafter" [], "number, number", TWO_DOUBLES, double,
        "The next float after the first, towards the second.", "nextafter(1.0, 2.0)",
        |call| of_two_doubles(call, nextafter)),
    entry!(
        "round_even"["roundbankers"],
        "number, digits",
        &[Arguments::Are(&[Takes::Double, Takes::Whole])],
        double,
        "Rounded to this many digits, half to the even digit.",
        "round_even(2.5, 0) = 2",
        half_even
    ),
    entry!("div" [], "number, number", &[Arguments::Are(&[Takes::Whole, Takes::Whole]), Arguments::Are(&[Takes::Double, Takes::Double])],
        whole_or_double, "The quotient without its fraction.", "div(-7, 2) = -3", div),
    entry!("width_bucket" [], "x, low, high, count or x, bounds",
        &[Arguments::Are(&[Takes::Double, Takes::Double, Takes::Double, Takes::Whole]),
            Arguments::Are(&[Takes::Double, Takes::Doubles])], whole,
        "The number, from 1, of the interval that contains a number, of count equal ones between two bounds; 0 below and count + 1 above them. Or the number of bounds in an ordered list that are not above it.",
        "width_bucket(5.35, 0.024, 10.06, 5) = 3", width_bucket),
    entry!("scale" [], "decimal", &[Arguments::Are(&[Takes::Any])], scale_gives,
        "The number of fraction digits in a decimal's type.",
        "scale(8.4100::DECIMAL(8,4)) = 4", |call| scale(call, true)),
    entry!("min_scale" [], "decimal", &[Arguments::Are(&[Takes::Any])], scale_gives,
        "The number of fraction digits that a decimal needs.",
        "min_scale(8.4100::DECIMAL(8,4)) = 2", |call| scale(call, false)),
    entry!("trim_scale" [], "decimal", &[Arguments::Are(&[Takes::Any])], own_decimal,
        "A decimal literal without zeros at its end; other values keep the digits of their type.",
        "trim_scale(8.4100) = 8.41", |call| Ok(Arc::clone(&call.arrays[0]))),
    entry!("isnan" [], "number", DOUBLE, flag, "Whether a number is NaN.", "isnan('nan'::DOUBLE)", |call| {
        let values = call.double(0);
        call.flags(|row| Ok(Some(values.value(row).is_nan())))
    }),
];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];
