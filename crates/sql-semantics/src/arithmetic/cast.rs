//! Casts that may round, fail or depend on a time zone, casts of nested values to texts, and casts of dates, times and
//! intervals to texts and back.
//!
//! Decimals become integers, and decimals of a smaller scale, rounded half away from zero; floats
//! become integers rounded half to even, as in PostgreSQL; Arrow truncates.
//! A value that does not fit is an error, or null with TRY_CAST.
//!
//! These are functions, not casts, because DataFusion compares `CAST(x AS t) = c` as `x = c`, which is
//! wrong if several values of x become c, if the cast may fail, or if TIMESTAMPs become
//! TIMESTAMPTZs by a time zone other than UTC.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray, StringViewArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Float32Type,
    Float64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::divide::digits;
use super::float_text::read_floats;
use super::moments;
use super::nested_text::{hexadecimal, is_nested, nested_texts};
use super::text_input::{is_bytes, read_texts};
use crate::timezone::is_utc;
use atoll_functions::temporal::{self, StatementClock, is_read, is_temporal, temporal_texts};
use atoll_functions::{sql_name, without_exponent};
use atoll_sql_common::error::SqlState;

/// CAST, or TRY_CAST, to a type that may not hold every value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedCast {
    to: DataType,
    /// Whether values that do not fit become null.
    is_try: bool,
    signature: Signature,
}

impl CheckedCast {
    /// Returns the cast between these types; None if DataFusion's does the same.
    pub(super) fn new(from: &DataType, to: &DataType, is_try: bool) -> Option<Self> {
        may_change(from, to).then(|| Self {
            to: to.clone(),
            is_try,
            signature: Signature::any(1, Volatility::Immutable),
        })
    }

    /// Casts a constant for which DataFusion needs no further properties: a TIMESTAMP to a TIMESTAMPTZ.
    pub(super) fn of_constant(value: &Expr, from: &DataType, to: &DataType) -> Option<Self> {
        let is_local =
            matches!((from, to), (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))));
        let is_literal = |value: &Expr| matches!(value, Expr::Literal(..));
        let is_constant = match value {
            Expr::ScalarFunction(call) => call.args.iter().all(is_literal),
            value => is_literal(value),
        };
        (is_local && is_constant).then(|| Self::of_text(to, false))
    }

    /// Returns the explicit cast of texts to bytes or a nested type, or of bytes to texts.
    pub(super) fn of_text(to: &DataType, is_try: bool) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        Self { to: to.clone(), is_try, signature }
    }

    /// Whether a constant fits.
    pub(super) fn holds(&self, value: &ScalarValue) -> bool {
        value.to_array().and_then(|value| convert(&value, &self.to, false)).is_ok()
    }

    fn cast(&self, values: &ArrayRef, clock: StatementClock<'_>) -> Result<ArrayRef> {
        convert_in(values, &self.to, self.is_try, clock).map_err(|error| match self.blame(values) {
            Some(_) if is_text(values.data_type()) => error,
            Some(value) => SqlState::NUMERIC_VALUE_OUT_OF_RANGE.error(format!(
                "cannot cast {value} to {}: {}",
                sql_name(&self.to),
                match &self.to {
                    DataType::Timestamp(_, Some(time_zone)) => {
                        format!("this local time is skipped or ambiguous in {time_zone}")
                    }
                    _ => "the value is out of range".to_owned(),
                }
            )),
            None => error,
        })
    }

    /// Returns the first value that does not fit.
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

    /// Casts are not part of column names.
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
        let is_time = matches!(self.to, DataType::Time64(_));
        // An infinite timestamp has no time of day.
        let may_be_null = |field: &FieldRef| {
            field.is_nullable() || is_time && matches!(field.data_type(), DataType::Timestamp(..))
        };
        let nullable = self.is_try || arguments.arg_fields.iter().any(may_be_null);
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    /// Dates of timestamps are monotonic; local times may go back when the clocks change.
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match inputs {
            [value]
                if self.to == DataType::Date32
                    && matches!(value.range.data_type(), DataType::Timestamp(_, None)) =>
            {
                value.sort_properties
            }
            _ => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let options = &arguments.config_options;
        let clock = StatementClock::from_options(options);
        Ok(match &arguments.args[..] {
            [ColumnarValue::Array(values)] => ColumnarValue::Array(self.cast(values, clock)?),
            [ColumnarValue::Scalar(value)] => {
                let values = self.cast(&value.to_array()?, clock)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)
            }
            other => return exec_err!("a cast of {} values", other.len()),
        })
    }
}

/// Whether values are texts, plain or dictionary-encoded.
pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => value.is_string(),
        plain => plain.is_string(),
    }
}

/// Whether a value may be rounded, not fit or be shifted.
fn may_change(from: &DataType, to: &DataType) -> bool {
    if let (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(time_zone))) = (from, to) {
        return !is_utc(time_zone);
    }
    if let (DataType::List(from), DataType::List(to)) = (from, to) {
        let (from, to) = (from.data_type(), to.data_type());
        return may_change(from, to)
            || is_bytes(from) && to.is_string()
            || is_text(from) && to.is_binary();
    }
    if is_text(from) && (is_read(to) || to.is_floating() || to.is_decimal())
        || (is_nested(from) || is_temporal(from)) && to.is_string()
        || moments::is_cast(from, to)
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
        _ => *to == DataType::Float32 && is_wider_than_real(from),
    }
}

/// Whether some finite values of a type are too large for a REAL.
fn is_wider_than_real(of: &DataType) -> bool {
    matches!(of, DataType::Float64 | DataType::Decimal256(..))
}

/// Digits before and after the point.
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

/// Casts values for assignment to a column: rounds, and fails if one does not fit.
pub fn assigned(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    CheckedCast::of_text(to, false).cast(values, StatementClock::default())
}

/// Returns the cast for assignment to a column, if DataFusion's differs.
pub fn assigned_value(value: &Expr, from: &DataType, to: &DataType) -> Option<Expr> {
    let cast = ScalarUDF::from(CheckedCast::new(from, to, false)?);
    Some(cast.call(vec![value.clone()]))
}

/// Casts values to another type.
pub fn convert(values: &ArrayRef, to: &DataType, is_try: bool) -> Result<ArrayRef> {
    convert_in(values, to, is_try, StatementClock::default())
}

/// Casts values to another type; texts such as `today` and those of dates and intervals use the clock.
pub fn convert_in(
    values: &ArrayRef,
    to: &DataType,
    is_try: bool,
    clock: StatementClock<'_>,
) -> Result<ArrayRef> {
    let options = CastOptions { safe: is_try, ..CastOptions::default() };
    let from = values.data_type();
    if to.is_string() {
        if is_nested(from) {
            return Ok(cast_with_options(&nested_texts(values, clock.style)?, to, &options)?);
        }
        if let Some(texts) = temporal_texts(values, clock.style)? {
            return Ok(cast_with_options(&texts, to, &options)?);
        }
        if is_bytes(from) {
            return Ok(cast_with_options(&hexadecimal(values)?, to, &options)?);
        }
    }
    if let DataType::List(wanted) = to
        && matches!(from, DataType::List(_))
        && may_change(from, to)
    {
        let lists = values.as_list::<i32>();
        let items = convert_in(lists.values(), wanted.data_type(), is_try, clock)?;
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        return Ok(Arc::new(ListArray::try_new(Arc::clone(wanted), offsets, items, nulls)?));
    }
    if is_text(from) && (to.is_binary() || is_nested(to)) {
        return read_texts(values, to, is_try, clock);
    }
    if is_text(from) && to.is_floating() {
        return read_floats(values, to, &options);
    }
    if is_text(from) && to.is_decimal() {
        return Ok(cast_with_options(&plain_decimals(values)?, to, &options)?);
    }
    if is_text(from) && is_read(to) {
        let texts = cast_with_options(values, &DataType::Utf8, &options)?;
        return Ok(temporal::read_texts(texts.as_string(), to, clock, &options)?);
    }
    if moments::is_cast(from, to) {
        return Ok(moments::convert(values, to, &options)?);
    }
    if let (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))) = (from, to) {
        return Ok(temporal::cast_moments(values, to, &options)?);
    }
    if *to == DataType::Float32 && is_wider_than_real(from) {
        return narrowed(&cast_with_options(values, &DataType::Float64, &options)?, is_try);
    }
    let rounded = if to.is_integer() { rounded(values, &options)? } else { Arc::clone(values) };
    Ok(cast_with_options(&rounded, to, &options)?)
}

/// Texts of decimals, those with an exponent without it, which Arrow does not read.
fn plain_decimals(values: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast_with_options(values, &DataType::Utf8View, &CastOptions::default())?;
    let texts = texts.as_string_view();
    if !texts.iter().flatten().any(|text| text.contains(['e', 'E'])) {
        return Ok(Arc::clone(values));
    }
    let plain = texts.iter().map(|text| text.map(without_exponent));
    Ok(Arc::new(plain.collect::<StringViewArray>()))
}

/// Casts DOUBLEs to REALs; fails if a finite value becomes infinite.
fn narrowed(values: &ArrayRef, is_try: bool) -> Result<ArrayRef> {
    let values = values.as_primitive::<Float64Type>();
    let narrow = |value: f64| {
        let real = value as f32;
        (real.is_finite() || !value.is_finite()).then_some(real)
    };
    let reals: Float32Array = match is_try {
        true => values.unary_opt(narrow),
        false => values.try_unary(|value| {
            let problem = || ArrowError::CastError(format!("{value} is out of range for REAL"));
            narrow(value).ok_or_else(problem)
        })?,
    };
    Ok(Arc::new(reals))
}

/// Casts between integers.
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
        use DataType::{Decimal128, Float32, Float64, Int8, Int32, Int64, UInt8, UInt64, Utf8};
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
            (Float64, Float32, true),
            (Float32, Float64, false),
            (Decimal128(10, 2), Float64, false),
            (Decimal128(38, 0), Float32, false),
            (DataType::Decimal256(39, 0), Float32, true),
            (Utf8, Int32, false),
            (Utf8, Float64, true),
            (Utf8, DataType::Timestamp(TimeUnit::Microsecond, None), true),
            (DataType::Timestamp(TimeUnit::Microsecond, None), Utf8, true),
            (Utf8, DataType::Date32, true),
            (DataType::Timestamp(TimeUnit::Microsecond, None), DataType::Date32, true),
            (
                DataType::Dictionary(Box::new(Int32), Box::new(Utf8)),
                DataType::Timestamp(TimeUnit::Microsecond, None),
                true,
            ),
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
                .cast(&floats, StatementClock::default())
        };
        let message = cast(false).expect_err("128 does not fit").strip_backtrace();
        assert!(message.contains("cannot cast 127.5 to TINYINT"), "{message}");
        let nulls = cast(true).expect("what does not fit is null");
        assert_eq!(nulls.null_count(), 2);
    }
}
