//! `infinity` and `-infinity`: dates and timestamps that arithmetic never reaches.
//!
//! They are the largest and the smallest numbers of the type. Code that computes with the number of a date or
//! timestamp checks here first: single values with [`Endless::of_moment`] and [`Endless::of_days`], arrays with
//! [`set_aside`], which removes them before a kernel runs and restores them in its results.

use datafusion::arrow::array::types::{Date32Type, Int64Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, TimestampMicrosecondType};
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// Positive or negative infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endless {
    /// `-infinity`
    Past,
    /// `infinity`
    Future,
}

impl Endless {
    /// Returns the infinity that a timestamp of any unit is; None for finite ones.
    pub fn of_moment(value: i64) -> Option<Self> {
        match value {
            i64::MIN => Some(Self::Past),
            i64::MAX => Some(Self::Future),
            _ => None,
        }
    }

    /// Returns the infinity that a date is, in days since 1970; None for finite ones.
    pub fn of_days(days: i32) -> Option<Self> {
        match days {
            i32::MIN => Some(Self::Past),
            i32::MAX => Some(Self::Future),
            _ => None,
        }
    }

    /// Returns its number as a timestamp.
    pub fn moment(self) -> i64 {
        match self {
            Self::Past => i64::MIN,
            Self::Future => i64::MAX,
        }
    }

    /// Returns its number as a date.
    pub fn days(self) -> i32 {
        match self {
            Self::Past => i32::MIN,
            Self::Future => i32::MAX,
        }
    }

    /// Returns its value as a float.
    pub fn number(self) -> f64 {
        match self {
            Self::Past => f64::NEG_INFINITY,
            Self::Future => f64::INFINITY,
        }
    }

    /// Returns its text.
    pub fn word(self) -> &'static str {
        match self {
            Self::Past => "-infinity",
            Self::Future => "infinity",
        }
    }
}

/// Timestamps in microseconds, except infinite ones.
#[derive(Clone, Debug)]
pub(crate) struct Moments(PrimitiveArray<TimestampMicrosecondType>);

impl Moments {
    /// Reads the timestamps of an array.
    pub(crate) fn new(moments: PrimitiveArray<TimestampMicrosecondType>) -> Self {
        Self(moments)
    }

    /// Returns microseconds since 1970, or the infinity as the error.
    pub(crate) fn at(&self, row: usize) -> Result<i64, Endless> {
        let micros = self.0.value(row);
        Endless::of_moment(micros).map_or(Ok(micros), Err)
    }
}

/// Whether any date or timestamp is infinite.
pub fn has_endless(values: &dyn Array) -> bool {
    // Values under NULL count as well; the caller then only takes the slower path.
    match values.data_type() {
        DataType::Date32 => {
            let days = values.as_primitive::<Date32Type>().values();
            days.iter().any(|days| matches!(*days, i32::MIN | i32::MAX))
        }
        DataType::Timestamp(..) => {
            let raw = values.to_data();
            let raw = &raw.buffer::<i64>(0)[..values.len()];
            raw.iter().any(|value| matches!(*value, i64::MIN | i64::MAX))
        }
        _ => false,
    }
}

/// Replaces infinite dates or timestamps by NULL and sets them aside; None if all are finite.
///
/// # Errors
/// Never: Arrow can cast between these types and their numbers.
pub fn set_aside(values: &dyn Array) -> Result<Option<(ArrayRef, SetAside)>, ArrowError> {
    if !has_endless(values) {
        return Ok(None);
    }
    let is_date = *values.data_type() == DataType::Date32;
    let numbers = match is_date {
        true => values.as_primitive::<Date32Type>().unary::<_, Int64Type>(|days| {
            Endless::of_days(days).map_or(days.into(), Endless::moment)
        }),
        false => cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
    };
    let is_finite = |value: i64| Endless::of_moment(value).is_none();
    let finite = numbers.unary_opt::<_, Int64Type>(|value| is_finite(value).then_some(value));
    let finite = match is_date {
        true => cast(&cast(&finite, &DataType::Int32)?, &DataType::Date32)?,
        false => cast(&finite, values.data_type())?,
    };
    Ok(Some((finite, SetAside(numbers))))
}

/// The infinite dates or timestamps that were hidden from a kernel.
#[derive(Debug)]
pub struct SetAside(Int64Array);

impl SetAside {
    /// The infinity in each row; a single one applies to all rows.
    pub fn endless(&self, row: usize) -> Option<Endless> {
        let at = if self.0.len() == 1 { 0 } else { row };
        self.0.is_valid(at).then(|| self.0.value(at)).and_then(Endless::of_moment)
    }

    /// Restores the infinite values in the kernel's results.
    ///
    /// # Errors
    /// When the results are neither dates nor timestamps.
    pub fn put_back(&self, results: &dyn Array) -> Result<ArrayRef, ArrowError> {
        self.put_back_beside(results, None)
    }

    /// The same after a kernel with another operand, with NULL where that operand is NULL.
    ///
    /// # Errors
    /// When the results are neither dates nor timestamps.
    pub fn put_back_beside(
        &self,
        results: &dyn Array,
        other: Option<&NullBuffer>,
    ) -> Result<ArrayRef, ArrowError> {
        let to = results.data_type().clone();
        let is_date = to == DataType::Date32;
        let whole = match is_date {
            true => cast(&cast(results, &DataType::Int32)?, &DataType::Int64)?,
            false => cast(results, &DataType::Int64)?,
        };
        let whole = whole.as_primitive::<Int64Type>();
        let number = |endless: Endless| match is_date {
            true => endless.days().into(),
            false => endless.moment(),
        };
        let of = |row: usize| match self.endless(row) {
            Some(_) if other.is_some_and(|nulls| nulls.is_null(row)) => None,
            Some(endless) => Some(number(endless)),
            None => whole.is_valid(row).then(|| whole.value(row)),
        };
        let all: Int64Array = (0..whole.len()).map(of).collect();
        match is_date {
            true => cast(&cast(&all, &DataType::Int32)?, &to),
            false => cast(&all, &to),
        }
    }
}

/// Arrow's cast between dates and timestamps, such as local times to instants; infinite values stay infinite.
///
/// # Errors
/// If a finite value does not fit and the options make that an error.
pub fn cast_moments(
    values: &ArrayRef,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef, ArrowError> {
    match set_aside(values)? {
        Some((finite, aside)) => aside.put_back(&cast_with_options(&finite, to, options)?),
        None => cast_with_options(values, to, options),
    }
}

/// Applies a kernel for finite values that returns dates or timestamps.
pub(crate) fn finite_only<E: From<ArrowError>>(
    values: &ArrayRef,
    kernel: impl FnOnce(&ArrayRef) -> Result<ArrayRef, E>,
) -> Result<ArrayRef, E> {
    match set_aside(values)? {
        Some((finite, aside)) => Ok(aside.put_back(&kernel(&finite)?)?),
        None => kernel(values),
    }
}

/// Calls a function of dates or timestamps with NULL instead of the infinite values of one argument. In these rows
/// the result is the infinite value if it `keeps` them, otherwise the function's result for NULL.
///
/// # Errors
/// Those of the function.
pub fn call_with_finite(
    mut args: ScalarFunctionArgs,
    argument: usize,
    keeps: bool,
    call: impl FnOnce(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let rows = args.number_rows;
    let moments = args.args.get(argument).map(|moments| moments.to_array(rows)).transpose()?;
    let set_aside = moments.map(|moments| set_aside(&moments)).transpose()?.flatten();
    let Some((finite, aside)) = set_aside else { return call(args) };
    args.args[argument] = ColumnarValue::Array(finite);
    let results = call(args)?.into_array(rows)?;
    Ok(ColumnarValue::Array(match keeps {
        true => aside.put_back(&results)?,
        false => results,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    use datafusion::arrow::array::{Date32Array, TimestampMicrosecondArray};
    use datafusion::arrow::datatypes::TimeUnit;

    #[test]
    fn endless_values_stay_what_they_are_in_every_unit() {
        let days: ArrayRef =
            Arc::new(Date32Array::from(vec![Some(i32::MAX), None, Some(1), Some(i32::MIN)]));
        let options = CastOptions { safe: false, ..CastOptions::default() };
        for unit in [TimeUnit::Second, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            let moments =
                cast_moments(&days, &DataType::Timestamp(unit, None), &options).expect("they fit");
            let numbers = cast(&moments, &DataType::Int64).expect("a timestamp has a number");
            let numbers = numbers.as_primitive::<Int64Type>();
            assert_eq!((numbers.value(0), numbers.value(3)), (i64::MAX, i64::MIN), "{unit:?}");
            assert!(numbers.is_null(1), "{unit:?}");
            let back = cast_moments(&moments, &DataType::Date32, &options).expect("they fit");
            assert_eq!(&back, &days, "{unit:?}");
        }
    }

    #[test]
    fn an_infinite_timestamp_has_no_microseconds() {
        let moments = Moments::new(TimestampMicrosecondArray::from(vec![i64::MIN, 7, i64::MAX]));
        let at: Vec<_> = (0..3).map(|row| moments.at(row)).collect();
        assert_eq!(at, [Err(Endless::Past), Ok(7), Err(Endless::Future)]);
    }

    #[test]
    fn an_infinite_constant_is_restored_in_all_rows() {
        let one = TimestampMicrosecondArray::from(vec![i64::MAX]);
        let (finite, aside) = set_aside(&one).expect("it has a number").expect("it is endless");
        assert!(finite.is_null(0));
        let results = TimestampMicrosecondArray::from(vec![None, None]);
        let all = aside.put_back(&results).expect("they are timestamps");
        assert_eq!(all.as_primitive::<TimestampMicrosecondType>().values(), &[i64::MAX; 2]);
        assert!(set_aside(&Date32Array::from(vec![0])).expect("a date").is_none());
    }
}
