//! Arrays of values that bound ranges.

use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::Result;

use super::form::RangeType;
use super::functions::clock;
use super::point::RangePoint;
use crate::failure::FunctionFailure;
use crate::scalar::call::Call;
use crate::temporal::{Endless, StatementClock, cast_moments, instant};
use crate::type_name::postgres_name;

/// The values of an argument.
pub(super) struct Points<'c> {
    of: RangeType,
    values: Values,
    clock: StatementClock<'c>,
}

enum Values {
    Wholes(Int64Array),
    Texts(StringArray),
}

/// The value in a row; None for NULL.
pub(super) fn point_of_row(points: &Points<'_>, row: usize) -> Result<Option<RangePoint>> {
    let found = match &points.values {
        Values::Wholes(numbers) if numbers.is_null(row) => return Ok(None),
        Values::Texts(texts) if texts.is_null(row) => return Ok(None),
        Values::Wholes(numbers) if points.of.fits(numbers.value(row)) => {
            Ok(RangePoint::Whole(numbers.value(row)))
        }
        Values::Wholes(_) => {
            let message = format!("{} out of range", points.of.subtype_name());
            Err(FunctionFailure { state: "22003", message })
        }
        Values::Texts(texts) => points.of.read_point(texts.value(row), points.clock),
    };
    found.map(Some).map_err(FunctionFailure::into_datafusion)
}

/// Reads an argument as values that bound ranges of a type, or texts of these.
pub(super) fn points<'c>(call: &'c Call, at: usize, of: RangeType) -> Result<Points<'c>> {
    let array = &call.arrays[at];
    let is_day = matches!(array.data_type(), DataType::Date32 | DataType::Timestamp(_, None));
    let values = match (of, array.data_type()) {
        (_, text) if text.is_string() || text.is_null() => texts(array)?,
        (RangeType::Int4 | RangeType::Int8, whole) if whole.is_integer() => wholes(array)?,
        // Zeros of a NUMERIC whose digits are not declared are those of its column.
        (RangeType::Num, DataType::Decimal128(DECIMAL128_MAX_PRECISION, _)) => plain_texts(array)?,
        (RangeType::Num, number) if number.is_integer() || number.is_decimal() => texts(array)?,
        (RangeType::Date, DataType::Date32) => wholes(&cast(array, &DataType::Int32)?)?,
        (RangeType::Ts, _) if is_day => wholes(&in_micros(array, None)?)?,
        (RangeType::Tstz, DataType::Timestamp(_, Some(zone))) => {
            wholes(&in_micros(array, Some(zone))?)?
        }
        (RangeType::Tstz, _) if is_day => instants(call, &in_micros(array, None)?)?,
        (_, other) => {
            let message = format!(
                "a range of {} has no bounds of type {}; cast them",
                of.subtype_name(),
                postgres_name(other)
            );
            return Err(FunctionFailure::error("42883", message));
        }
    };
    Ok(Points { of, values, clock: clock(call) })
}

fn texts(array: &ArrayRef) -> Result<Values> {
    Ok(Values::Texts(cast(array, &DataType::Utf8)?.as_string().clone()))
}

/// The texts of decimals without zeros at the end of their fractions.
fn plain_texts(array: &ArrayRef) -> Result<Values> {
    let texts = cast(array, &DataType::Utf8)?;
    let plain = texts.as_string::<i32>().iter().map(|text| {
        text.map(|text| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => text,
        })
    });
    Ok(Values::Texts(plain.collect()))
}

fn wholes(array: &ArrayRef) -> Result<Values> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let numbers = cast_with_options(array, &DataType::Int64, &options)?;
    Ok(Values::Wholes(numbers.as_primitive::<Int64Type>().clone()))
}

fn in_micros(array: &ArrayRef, zone: Option<&Arc<str>>) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.cloned());
    Ok(cast_moments(array, &micros, &options)?)
}

/// Local times of the session's zone as instants.
fn instants(call: &Call, local: &ArrayRef) -> Result<Values> {
    let zone = clock(call).time_zone.unwrap_or("UTC");
    let Ok(zone) = zone.parse::<Tz>() else {
        return call.fails("the session's time zone is unknown");
    };
    let local = local.as_primitive::<TimestampMicrosecondType>();
    let at = |micros: i64| match Endless::of_moment(micros) {
        Some(_) => Some(micros),
        None => instant(micros, zone),
    };
    let found: Int64Array = local.iter().map(|micros| micros.and_then(at)).collect();
    match found.null_count() == local.null_count() {
        true => Ok(Values::Wholes(found)),
        false => call.fails_as("22008", "timestamp out of range"),
    }
}
