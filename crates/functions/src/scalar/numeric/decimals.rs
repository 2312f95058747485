//! Casts numbers and texts to NUMERIC without a scale: DECIMAL with the digits that they have.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::{CastOptions, can_cast_types, cast, cast_with_options};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};

use crate::failure::FunctionFailure;
use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes};
use crate::sql_name;

/// Fraction digits of a value whose type does not define them; 22 digits remain before the point.
pub const UNTOLD_SCALE: i8 = 16;

/// Digits of a float that are significant, as in PostgreSQL.
const DOUBLE_DIGITS: usize = 15;
const REAL_DIGITS: usize = 6;

/// Maximum number of zeros that an exponent adds: those of a float.
const EXPONENT_MAX: u32 = 400;

/// A decimal number in text form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenNumber {
    is_negative: bool,
    /// All digits, those after the point at the end.
    digits: String,
    behind: usize,
}

impl WrittenNumber {
    /// Parses a text and expands its exponent; None unless it is a finite number.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = format!("{whole}{behind}");
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number || exponent.unsigned_abs() > EXPONENT_MAX {
            return None;
        }
        let places = i32::try_from(behind.len()).ok()? - exponent;
        let behind = usize::try_from(places).unwrap_or(0);
        if places < 0 {
            digits.extend(std::iter::repeat_n('0', places.unsigned_abs() as usize));
        }
        let missing = behind.saturating_sub(digits.len());
        digits.insert_str(0, &"0".repeat(missing));
        Some(Self { is_negative: text.starts_with('-'), digits, behind })
    }

    /// Returns the number of digits before the point, without leading zeros, and after it.
    pub fn places(&self) -> (usize, usize) {
        (self.whole().len(), self.behind)
    }

    /// Whether it is negative.
    pub fn is_negative(&self) -> bool {
        self.is_negative && self.digits.bytes().any(|digit| digit != b'0')
    }

    /// Compares absolute values.
    pub fn compare_sizes(&self, other: &Self) -> Ordering {
        let width = self.behind.max(other.behind);
        let padded = |number: &Self| {
            let behind = &number.digits[number.digits.len() - number.behind..];
            format!("{}{behind:0<width$}", number.whole())
        };
        let (one, two) = (padded(self), padded(other));
        one.len().cmp(&two.len()).then_with(|| one.cmp(&two))
    }

    fn whole(&self) -> &str {
        self.digits[..self.digits.len() - self.behind].trim_start_matches('0')
    }
}

impl fmt::Display for WrittenNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        let whole = if self.whole().is_empty() { "0" } else { self.whole() };
        let behind = &self.digits[self.digits.len() - self.behind..];
        let point = if behind.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{behind}")
    }
}

/// Casts to a decimal with the digits of a type.
fn gives(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    use DataType::{Decimal128, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let untold = Decimal128(DECIMAL128_MAX_PRECISION, UNTOLD_SCALE);
    Ok(match given.first() {
        Some(decimal) if decimal.is_decimal() => decimal.clone(),
        Some(Int8 | UInt8) => Decimal128(3, 0),
        Some(Int16 | UInt16) => Decimal128(5, 0),
        Some(Int32 | UInt32) => Decimal128(10, 0),
        Some(Int64) => Decimal128(19, 0),
        Some(UInt64) => Decimal128(20, 0),
        Some(other) if !can_cast_types(other, &untold) => {
            return plan_err!("cannot cast {} to NUMERIC", sql_name(other));
        }
        _ => untold,
    })
}

/// Expands exponents in texts, which Arrow does not parse.
fn written<'t>(texts: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    let plain = texts.map(|text| {
        text.map(|text| match WrittenNumber::parse(text) {
            Some(number) => number.to_string(),
            None => text.to_owned(),
        })
    });
    Arc::new(plain.collect::<StringArray>())
}

/// Returns the significant digits of floats.
fn floats(values: impl Iterator<Item = Option<f64>>, digits: usize) -> ArrayRef {
    let text = |value: f64| format!("{value:.*e}", digits - 1);
    let texts: Vec<Option<String>> = values.map(|value| value.map(text)).collect();
    written(texts.iter().map(Option::as_deref))
}

fn as_numeric(call: &Call) -> Result<ArrayRef> {
    let values = &call.arrays[0];
    let values = match values.data_type() {
        DataType::Utf8 => written(values.as_string::<i32>().iter()),
        DataType::Float64 => floats(values.as_primitive::<Float64Type>().iter(), DOUBLE_DIGITS),
        DataType::Float16 | DataType::Float32 => {
            let singles = cast(values, &DataType::Float32)?;
            let singles = singles.as_primitive::<Float32Type>();
            floats(singles.iter().map(|value| value.map(f64::from)), REAL_DIGITS)
        }
        _ => Arc::clone(values),
    };
    let are_floats = call.arrays[0].data_type().is_floating();
    let options = CastOptions { safe: are_floats, ..CastOptions::default() };
    let numbers = cast_with_options(&values, &call.result, &options)?;
    if numbers.null_count() > values.null_count() {
        let to = sql_name(&call.result);
        let message = format!("cannot cast a value to {to}: it is out of range");
        return Err(FunctionFailure::error("22003", message));
    }
    Ok(numbers)
}

const ALL: &[Entry] = &[Entry {
    name: "as_numeric",
    aliases: &[],
    arguments: "value",
    about: "A number, or a text that is one, as DECIMAL with its own digits; the cast to NUMERIC without digits.",
    example: "5::NUMERIC = 5",
    takes: &[Arguments::Are(&[Takes::Text]), Arguments::Are(&[Takes::Any])],
    gives,
    volatile: false,
    run: as_numeric,
}];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[ALL];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_exponents() {
        for (text, written, places) in [
            ("5000", "5000", (4, 0)),
            (" -1.50 ", "-1.50", (1, 2)),
            ("+.5", "0.5", (0, 1)),
            ("5.", "5", (1, 0)),
            ("1e-5", "0.00001", (0, 5)),
            ("-1.5E2", "-150", (3, 0)),
            ("12.34e+1", "123.4", (3, 1)),
            ("007", "7", (1, 0)),
        ] {
            let number = WrittenNumber::parse(text).expect(text);
            assert_eq!((number.to_string().as_str(), number.places()), (written, places), "{text}");
        }
        for other in
            ["", "x", "1e", "1.2.3", "NaN", "inf", "1e999", "1e-2147483648", "--1", ".", "1_0"]
        {
            assert_eq!(WrittenNumber::parse(other), None, "{other}");
        }
    }
}
