//! Texts to floats: a number too large or too small for the type is an error, not infinity or zero.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, nullif};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DecimalType, Float64Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;

use atoll_functions::sql_name;
use atoll_sql_common::error::SqlState;

/// Parses texts as floats; with TRY_CAST, invalid texts become NULL.
pub(super) fn read_floats(
    texts: &ArrayRef,
    to: &DataType,
    options: &CastOptions,
) -> Result<ArrayRef> {
    let floats = cast_with_options(texts, to, options)?;
    let wide = cast(&floats, &DataType::Float64)?;
    let values = wide.as_primitive::<Float64Type>();
    if values.values().iter().all(|value| value.is_finite() && *value != 0.0) {
        return Ok(floats);
    }
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let is_lost =
        |row: usize| values.is_valid(row) && is_out_of_range(texts.value(row), values.value(row));
    if options.safe {
        let lost: BooleanArray = (0..values.len()).map(|row| Some(is_lost(row))).collect();
        return Ok(nullif(&floats, &lost)?);
    }
    match (0..values.len()).find(|row| is_lost(*row)) {
        None => Ok(floats),
        Some(row) => Err(SqlState::NUMERIC_VALUE_OUT_OF_RANGE.error(format!(
            "\"{}\" is out of range for type {}",
            texts.value(row).trim(),
            sql_name(to)
        ))),
    }
}

/// Converts a decimal literal to the nearest float, which Arrow's division by a power of ten may miss; None if it is
/// too large for a REAL.
pub(crate) fn float_of_literal(value: &Expr, to: &DataType) -> Option<Expr> {
    let Expr::Literal(value, _) = value else { return None };
    let text = match value {
        ScalarValue::Decimal128(Some(value), precision, scale) => {
            Decimal128Type::format_decimal(*value, *precision, *scale)
        }
        ScalarValue::Decimal256(Some(value), precision, scale) => {
            Decimal256Type::format_decimal(*value, *precision, *scale)
        }
        _ => return None,
    };
    let float = match to {
        DataType::Float64 => ScalarValue::Float64(Some(text.parse().ok()?)),
        DataType::Float32 => {
            let real = text.parse().ok().filter(|value: &f32| value.is_finite())?;
            ScalarValue::Float32(Some(real))
        }
        _ => return None,
    };
    Some(Expr::Literal(float, None))
}

/// Whether a finite number became infinite, or a nonzero number became zero.
fn is_out_of_range(text: &str, value: f64) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_of =
        |digits: std::ops::RangeInclusive<u8>| mantissa.bytes().any(|byte| digits.contains(&byte));
    value.is_infinite() && is_of(b'0'..=b'9') || value == 0.0 && is_of(b'1'..=b'9')
}
