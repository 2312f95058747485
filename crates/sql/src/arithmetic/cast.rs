//! Casts that may round, fail or depend on a time zone, and those of nested values to texts.
//!
//! Decimals become integers, and decimals of a smaller scale, by rounding half away from zero; floats
//! become integers by rounding half to even. So does PostgreSQL; Arrow cuts off what is behind the
//! point. A value that does not fit is an error, and null under TRY_CAST.
//!
//! These are functions and not casts because DataFusion compares `CAST(x AS t) = c` as `x = c`, which is
//! wrong where several values of x become c, where one of them fails, and where TIMESTAMPs become
//! TIMESTAMPTZs by a time zone other than UTC.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Float32Type,
    Float64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::divide::digits;
use super::nested_text::{is_nested, nested_texts};
use crate::timezone::is_utc;
use atoll_functions::sql_name;

/// CAST, or TRY_CAST, to a type that may not hold every value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedCast {
    to: DataType,
    /// Whether what does not fit becomes null.
    is_try: bool,
    signature: Signature,
}

impl CheckedCast {
    /// The cast between these types; none where DataFusion's does the same.
    pub(super) fn new(from: &DataType, to: &DataType, is_try: bool) -> Option<Self> {
        may_change(from, to).then(|| Self {
            to: to.clone(),
            is_try,
            signature: Signature::any(1, Volatility::Immutable),
        })
    }

    fn cast(&self, values: &ArrayRef) -> Result<ArrayRef> {
        convert(values, &self.to, self.is_try).map_err(|error| match self.blame(values) {
            Some(_) if values.data_type().is_string() => DataFusionError::from(error),
            Some(value) => exec_datafusion_err!(
                "cannot cast {value} to {}: {}",
                sql_name(&self.to),
                match &self.to {
                    DataType::Timestamp(_, Some(time_zone)) => {
                        format!("this local time is skipped or ambiguous in {time_zone}")
                    }
                    _ => "the value is out of range".to_owned(),
                }
            ),
            None => DataFusionError::from(error),
        })
    }

    /// The first value that does not fit.
    fn blame(&self, values: &ArrayRef) -> Option<String> {
        let fitting = convert(values, &self.to, true).ok()?;
        let row = (0..values.len()).find(|row| values.is_valid(*row) && fitting.is_null(*row))?;
        let formatter = ArrayFormatter::try_new(values, &FormatOptions::default()).ok()?;
        formatter.value(row).try_to_string().ok()
    }
}

impl ScalarUDFImpl for CheckedCast {
    fn name(&self) -> &str {
        if self.is_try { "try_cast" } else { "cast" }
    }

    /// Casts do not show in the names of columns.
    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [value] => Ok(value.schema_name().to_string()),
            _ => exec_err!("a cast of {} values", arguments.len()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = self.is_try || arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(values)] => ColumnarValue::Array(self.cast(values)?),
            [ColumnarValue::Scalar(value)] => {
                let values = self.cast(&value.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)
            }
            other => return exec_err!("a cast of {} values", other.len()),
        })
    }
}

/// Whether a value may be rounded, not fit or be moved.
fn may_change(from: &DataType, to: &DataType) -> bool {
    if let (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(time_zone))) = (from, to) {
        return !is_utc(time_zone);
    }
    if from.is_string() && matches!(to, DataType::Timestamp(..))
        || is_nested(from) && to.is_string()
    {
        return true;
    }
    let from_places = places(from);
    match (from_places, places(to)) {
        (Some(_), Some(_)) if from == to => false,
        (Some(_), Some(_)) if from.is_integer() && to.is_integer() => {
            let (from, to) = (super::bounds::range(from), super::bounds::range(to));
            from.zip(to).is_none_or(|(from, to)| from.0 < to.0 || from.1 > to.1)
        }
        (Some(_), Some(_)) if to.is_integer() => true,
        (Some(from), Some(to)) => from.whole > to.whole || from.behind > to.behind,
        (None, Some(_)) => from.is_floating() && to.is_integer(),
        _ => false,
    }
}

/// Digits before and behind the point.
struct DigitCount {
    whole: i16,
    behind: i16,
}

fn places(data_type: &DataType) -> Option<DigitCount> {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let behind = i16::from(*scale);
            Some(DigitCount { whole: i16::from(*precision) - behind, behind })
        }
        integer => digits(integer).map(|whole| DigitCount { whole: whole.into(), behind: 0 }),
    }
}

fn convert(values: &ArrayRef, to: &DataType, is_try: bool) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: is_try, ..CastOptions::default() };
    if is_nested(values.data_type()) && to.is_string() {
        return cast_with_options(&nested_texts(values)?, to, &options);
    }
    if values.data_type().is_string() && matches!(to, DataType::Timestamp(..)) {
        let texts = cast_with_options(values, &DataType::Utf8, &options)?;
        return cast_with_options(&with_seconds(&texts), to, &options);
    }
    let rounded = if to.is_integer() { rounded(values, &options)? } else { Arc::clone(values) };
    cast_with_options(&rounded, to, &options)
}

/// Texts such as '2020-01-01 10:00', which has no seconds, as Arrow reads them.
fn with_seconds(texts: &ArrayRef) -> ArrayRef {
    let texts = texts.as_string::<i32>();
    if texts.iter().flatten().all(|text| seconds_at(text).is_none()) {
        return Arc::new(texts.clone());
    }
    let filled = texts.iter().map(|text| {
        text.map(|text| match seconds_at(text) {
            Some(at) => format!("{}:00{}", &text[..at], &text[at..]),
            None => text.to_owned(),
        })
    });
    Arc::new(filled.collect::<StringArray>())
}

/// Where the seconds are missing in a text that has hours and minutes: `2020-01-01 10:00+02`.
fn seconds_at(text: &str) -> Option<usize> {
    const MINUTES_END: usize = "2020-01-01 10:00".len();
    let bytes = text.as_bytes();
    let has_minutes = bytes.get(MINUTES_END - 3) == Some(&b':')
        && matches!(bytes.get(MINUTES_END - 6), Some(b' ' | b'T'))
        && bytes.get(MINUTES_END - 2..MINUTES_END)?.iter().all(u8::is_ascii_digit);
    let goes_on =
        bytes.get(MINUTES_END).is_some_and(|next| matches!(next, b':' | b'.' | b'0'..=b'9'));
    (has_minutes && !goes_on && text.is_char_boundary(MINUTES_END)).then_some(MINUTES_END)
}

/// Whole numbers of the same kind.
fn rounded(values: &ArrayRef, options: &CastOptions) -> Result<ArrayRef, ArrowError> {
    match values.data_type() {
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>();
            let whole: Float32Array = values.unary(f32::round_ties_even);
            Ok(Arc::new(whole))
        }
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            let whole: Float64Array = values.unary(f64::round_ties_even);
            Ok(Arc::new(whole))
        }
        DataType::Decimal256(_, scale) if *scale > 0 => {
            cast_with_options(values, &DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0), options)
        }
        other if other.is_decimal() => {
            cast_with_options(values, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0), options)
        }
        _ => Ok(Arc::clone(values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::arrow::array::{Decimal128Array, Int32Array};
    use datafusion::arrow::datatypes::{Int32Type, TimeUnit};

    #[test]
    fn only_casts_that_round_or_fail_are_taken() {
        use DataType::{Decimal128, Float64, Int8, Int32, Int64, UInt8, UInt64, Utf8};
        for (from, to, expected) in [
            (Int32, Int64, false),
            (Int64, Int32, true),
            (UInt8, Int8, true),
            (Int8, UInt64, true),
            (Int32, Decimal128(10, 0), false),
            (Int32, Decimal128(10, 1), true),
            (Decimal128(10, 2), Decimal128(12, 4), false),
            (Decimal128(10, 2), Decimal128(10, 1), true),
            (Decimal128(10, 2), Decimal128(10, 4), true),
            (Decimal128(3, 0), Int64, true),
            (Float64, Int64, true),
            (Float64, Decimal128(10, 2), false),
            (Decimal128(10, 2), Float64, false),
            (Utf8, Int32, false),
            (Utf8, DataType::Timestamp(TimeUnit::Microsecond, None), true),
        ] {
            assert_eq!(may_change(&from, &to), expected, "{from} to {to}");
        }
    }

    #[test]
    fn decimals_round_half_away_from_zero_and_floats_half_to_even() {
        let decimals: ArrayRef = Arc::new(
            Decimal128Array::from(vec![15, 25, -25, 24, -24, 0])
                .with_precision_and_scale(10, 1)
                .expect("the values fit"),
        );
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 2.5, -2.5, 2.4, -2.4, -0.0]));
        let integers = |values| {
            let cast = convert(values, &DataType::Int32, false).expect("the values fit");
            cast.as_primitive::<Int32Type>().clone()
        };
        assert_eq!(integers(&decimals), Int32Array::from(vec![2, 3, -3, 2, -2, 0]));
        assert_eq!(integers(&floats), Int32Array::from(vec![2, 2, -2, 2, -2, 0]));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_or_null() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(127.5)]));
        let cast = |is_try| {
            CheckedCast::new(&DataType::Float64, &DataType::Int8, is_try)
                .expect("the cast may fail")
                .cast(&floats)
        };
        let message = cast(false).expect_err("128 does not fit").strip_backtrace();
        assert!(message.contains("cannot cast 127.5 to TINYINT"), "{message}");
        let nulls = cast(true).expect("what does not fit is null");
        assert_eq!(nulls.null_count(), 2);
    }
}
