//! Estimates the size of a call's result from its arguments.
//!
//! Sizes are those of the values, not of the arrays that hold them: accurate enough to keep a call from
//! exhausting memory.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

use crate::temporal::{Endless, interval_length};

/// Returns the bytes that a call creates from these arguments for this many rows.
pub(super) type ResultBytes = fn(&[ColumnarValue], usize) -> Result<u64>;

/// Functions that may create much from little, by name. Functions that concatenate
/// their arguments, such as `concat`, are not included: their results are as large as their arguments at most.
pub(super) const FUNCTIONS: [(&str, ResultBytes); 9] = [
    ("repeat", repeat),
    ("lpad", pad),
    ("rpad", pad),
    ("replace", replace),
    ("range", series),
    ("generate_series", series),
    ("timestamp_series", timestamp_series),
    ("array_repeat", array_repeat),
    ("array_resize", array_resize),
];

/// Replacements are only counted if their maximum number would exceed this.
const REPLACED_BYTES_MIN: u64 = 64 << 20;

const NANOS_OF_DAY: i64 = 86_400_000_000_000;

/// An integer per row; a constant applies to all of them.
struct RowSizes(Int64Array);

impl RowSizes {
    /// Casts the argument at this index to integers; zeros if it is missing.
    fn from_argument(args: &[ColumnarValue], at: usize) -> Result<Self> {
        Self::convert(args, at, |array| Ok(cast(&array, &DataType::Int64)?))
    }

    /// Lengths of texts in bytes or of lists in elements; zeros for other types.
    fn lengths(args: &[ColumnarValue], at: usize) -> Result<Self> {
        Self::convert(args, at, |array| match length(&array) {
            Ok(lengths) => Ok(cast(&lengths, &DataType::Int64)?),
            Err(_) => Ok(Arc::new(Int64Array::from(vec![0; array.len()]))),
        })
    }

    fn convert(
        args: &[ColumnarValue],
        at: usize,
        numbers: impl FnOnce(ArrayRef) -> Result<ArrayRef>,
    ) -> Result<Self> {
        let array = match args.get(at) {
            Some(ColumnarValue::Array(array)) => array.clone(),
            Some(ColumnarValue::Scalar(value)) => value.to_array_of_size(1)?,
            None => return Ok(Self(Int64Array::from(vec![0]))),
        };
        Ok(Self(numbers(array)?.as_primitive::<Int64Type>().clone()))
    }

    /// Returns the number of a row; 0 for NULL.
    fn at(&self, row: usize) -> i64 {
        if self.is_null(row) { 0 } else { self.0.value(self.place(row)) }
    }

    fn is_null(&self, row: usize) -> bool {
        self.0.is_null(self.place(row))
    }

    fn place(&self, row: usize) -> usize {
        if self.0.len() == 1 { 0 } else { row }
    }

    /// The same, with 0 for negative numbers.
    fn count(&self, row: usize) -> u64 {
        self.at(row).max(0) as u64
    }
}

fn sum(rows: usize, bytes: impl Fn(usize) -> u64) -> u64 {
    (0..rows).map(bytes).fold(0, u64::saturating_add)
}

/// `repeat(text, times)`
fn repeat(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let (texts, times) = (RowSizes::lengths(args, 0)?, RowSizes::from_argument(args, 1)?);
    Ok(sum(rows, |row| texts.count(row).saturating_mul(times.count(row))))
}

/// `lpad(text, characters, …)`
fn pad(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let characters = RowSizes::from_argument(args, 1)?;
    Ok(sum(rows, |row| characters.count(row)))
}

/// `replace(text, from, to)`
fn replace(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let (texts, from, to) =
        (RowSizes::lengths(args, 0)?, RowSizes::lengths(args, 1)?, RowSizes::lengths(args, 2)?);
    let at_most = |row| (texts.count(row) / from.count(row).max(1)).saturating_mul(to.count(row));
    let most = sum(rows, |row| texts.count(row).saturating_add(at_most(row)));
    if most < REPLACED_BYTES_MIN {
        return Ok(most);
    }
    let views = |at: usize| -> Result<_> {
        Ok(cast(&args[at].to_array(rows)?, &DataType::Utf8View)?.as_string_view().clone())
    };
    let (all, sought) = (views(0)?, views(1)?);
    Ok(sum(rows, |row| {
        let found = match all.is_null(row) || sought.is_null(row) || sought.value(row).is_empty() {
            true => 0,
            false => all.value(row).matches(sought.value(row)).count() as u64,
        };
        texts.count(row).saturating_add(found.saturating_mul(to.count(row)))
    }))
}

/// `array_repeat(element, times)`: the elements, and their indices while they are copied.
fn array_repeat(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let times = RowSizes::from_argument(args, 1)?;
    let element = element_bytes(args.first());
    Ok(sum(rows, |row| times.count(row).saturating_mul(element)))
}

/// `array_resize(list, elements, …)`
fn array_resize(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let elements = RowSizes::from_argument(args, 1)?;
    let element = element_bytes(args.get(2));
    Ok(sum(rows, |row| elements.count(row).saturating_mul(element)))
}

fn element_bytes(element: Option<&ColumnarValue>) -> u64 {
    let index = size_of::<u64>() as u64;
    index
        + match element {
            None => index,
            Some(ColumnarValue::Scalar(value)) => value.size() as u64,
            Some(ColumnarValue::Array(array)) => {
                let bytes = array.to_data().get_slice_memory_size().unwrap_or_default();
                (bytes / array.len().max(1)) as u64
            }
        }
}

/// `range(end)`, `range(start, end)`, `range(start, end, step)` over numbers, dates and times.
fn series(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let (start, end) = match args.len() {
        1 => (RowSizes::from_argument(args, 1)?, instants(args, 0)?),
        _ => (instants(args, 0)?, instants(args, 1)?),
    };
    let step = match args.len() {
        3 => steps(args)?,
        _ => RowSizes(Int64Array::from(vec![1])),
    };
    Ok(sum(rows, |row| {
        let distance = end.at(row).abs_diff(start.at(row));
        let (ahead, forward) = (end.at(row) >= start.at(row), step.at(row) >= 0);
        match ahead == forward {
            true => {
                (distance / step.at(row).unsigned_abs().max(1)).saturating_add(1).saturating_mul(8)
            }
            false => 0,
        }
    }))
}

/// `timestamp_series(start, end, step)`: the timestamps, and the spare capacity while they grow.
fn timestamp_series(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let (start, end) = (RowSizes::from_argument(args, 0)?, RowSizes::from_argument(args, 1)?);
    let steps = RowSizes::convert(args, 2, |steps| {
        let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
        let micros = |step| i64::try_from(interval_length(step) / 1000).unwrap_or(i64::MAX);
        Ok(Arc::new(steps.unary::<_, Int64Type>(micros)))
    })?;
    let has_null = |row| [&start, &end, &steps].iter().any(|of| of.is_null(row));
    Ok(sum(rows, |row| {
        // The function itself rejects a zero step and infinite series.
        let is_endless = |of: &RowSizes| Endless::of_moment(of.at(row)).is_some();
        if has_null(row) || steps.at(row) == 0 || is_endless(&start) || is_endless(&end) {
            return 0;
        }
        let (start, end, step) = (start.at(row), end.at(row), steps.at(row));
        match (end >= start) == (step >= 0) {
            true => (end.abs_diff(start) / step.unsigned_abs().max(1)).saturating_mul(16),
            false => 0,
        }
    }))
}

/// Integers unchanged, dates and times in nanoseconds; NULL on overflow.
fn instants(args: &[ColumnarValue], at: usize) -> Result<RowSizes> {
    RowSizes::convert(args, at, |array| {
        let safe = CastOptions { safe: true, ..CastOptions::default() };
        Ok(match array.data_type() {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
                let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
                cast(&cast_with_options(&array, &nanos, &safe)?, &DataType::Int64)?
            }
            _ => cast(&array, &DataType::Int64)?,
        })
    })
}

/// Integers unchanged, intervals in nanoseconds with months of 30 days.
fn steps(args: &[ColumnarValue]) -> Result<RowSizes> {
    RowSizes::convert(args, 2, |array| match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            let nanos = intervals.iter().map(|interval| {
                let step = interval?;
                let days = i64::from(step.months) * 30 + i64::from(step.days);
                Some(days.saturating_mul(NANOS_OF_DAY).saturating_add(step.nanoseconds))
            });
            Ok(Arc::new(nanos.collect::<Int64Array>()))
        }
        _ => Ok(cast(&array, &DataType::Int64)?),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text.to_owned())))
    }

    fn number(number: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(number)))
    }

    #[test]
    fn constants_count_once_and_columns_row_by_row() {
        assert_eq!(repeat(&[text("abc"), number(1_000_000_000)], 1).unwrap(), 3_000_000_000);
        let times = ColumnarValue::Array(Arc::new(Int64Array::from(vec![
            Some(2),
            None,
            Some(-5),
            Some(i64::MAX),
        ])));
        assert_eq!(repeat(&[text("abc"), times.clone()], 3).unwrap(), 6);
        assert_eq!(repeat(&[text("abc"), times.clone()], 4).unwrap(), u64::MAX);
        assert_eq!(pad(&[text("abc"), times], 3).unwrap(), 2);
    }

    #[test]
    fn replacements_are_counted_where_they_could_be_many() {
        let few = [text(&"ab".repeat(1000)), text("b"), text("xyz")];
        assert_eq!(replace(&few, 1).unwrap(), 2000 + 2000 * 3);
        let many = [text(&"ab".repeat(1000)), text("b"), text(&"x".repeat(1 << 20))];
        assert_eq!(replace(&many, 1).unwrap(), 2000 + (1000 << 20));
    }

    #[test]
    fn series_are_as_long_as_their_steps_allow() {
        assert_eq!(series(&[number(10)], 1).unwrap(), 88);
        assert_eq!(series(&[number(5), number(10), number(2)], 1).unwrap(), 24);
        assert_eq!(series(&[number(10), number(5)], 1).unwrap(), 0);
        assert_eq!(series(&[number(10), number(5), number(-1)], 1).unwrap(), 48);
        let ends = [number(i64::MIN), number(i64::MAX)];
        assert_eq!(series(&ends, 1).unwrap(), u64::MAX);
        let date = |days| ColumnarValue::Scalar(ScalarValue::Date32(Some(days)));
        let day = ColumnarValue::Scalar(ScalarValue::new_interval_mdn(0, 1, 0));
        assert_eq!(series(&[date(0), date(9), day], 1).unwrap(), 80);
    }

    #[test]
    fn lists_are_as_large_as_their_elements() {
        let repeated = array_repeat(&[number(7), number(1000)], 1).unwrap();
        assert!((8_000..200_000).contains(&repeated), "{repeated}");
        assert!(array_repeat(&[number(7), number(1 << 40)], 1).unwrap() > 1 << 40);
    }
}
