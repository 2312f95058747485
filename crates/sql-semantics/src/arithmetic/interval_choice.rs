//! `greatest`, `least` and `nullif` of intervals, and of values that contain intervals, by length.

use atoll_functions::temporal::measured_rows;
use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::{SortOptions, interleave, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::Rows;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// Which argument a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Choice {
    Greatest,
    Least,
    /// The first, unless it equals the second.
    Unequal,
}

/// Returns the choice that the function with this name makes.
pub(super) fn choice_named(function: &str) -> Option<Choice> {
    match function {
        "greatest" => Some(Choice::Greatest),
        "least" => Some(Choice::Least),
        "nullif" => Some(Choice::Unequal),
        _ => None,
    }
}

/// The function that chooses among values of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct IntervalChoice {
    choice: Choice,
    signature: Signature,
}

impl IntervalChoice {
    pub(super) fn new(choice: Choice) -> Self {
        Self { choice, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// Returns the argument chosen for a row; None for NULL. Among equal ones it is the first.
    fn chosen(&self, values: &[ArrayRef], keys: &[Rows], row: usize) -> Option<usize> {
        let is_there = |at: &usize| values[*at].is_valid(row);
        let there = (0..values.len()).filter(is_there);
        match self.choice {
            Choice::Greatest => there
                .reduce(|best, at| if keys[at].row(row) > keys[best].row(row) { at } else { best }),
            Choice::Least => there
                .reduce(|best, at| if keys[at].row(row) < keys[best].row(row) { at } else { best }),
            Choice::Unequal => {
                let is_equal = (1..values.len())
                    .all(|at| is_there(&at) && keys[at].row(row) == keys[0].row(row));
                (is_there(&0) && !is_equal).then_some(0)
            }
        }
    }
}

impl ScalarUDFImpl for IntervalChoice {
    fn name(&self) -> &str {
        match self.choice {
            Choice::Greatest => "greatest_interval",
            Choice::Least => "least_interval",
            Choice::Unequal => "nullif_interval",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given.first() {
            Some(first) => Ok(first.clone()),
            None => exec_err!("{} of no intervals", self.name()),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&arguments.args)?;
        let options = SortOptions { descending: false, nulls_first: false };
        let keys = values.iter().map(|values| measured_rows(values, options));
        let keys = keys.collect::<std::result::Result<Vec<Rows>, _>>()?;
        let rows = values.first().map_or(0, |values| values.len());
        let chosen = (0..rows).map(|row| self.chosen(&values, &keys, row));
        let chosen: Vec<Option<usize>> = chosen.collect();
        let places: Vec<(usize, usize)> =
            chosen.iter().enumerate().map(|(row, at)| (at.unwrap_or(0), row)).collect();
        let arrays: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
        let picked = interleave(&arrays, &places)?;
        // Rows without a choice are NULL.
        let is_there = chosen.iter().enumerate();
        let is_there = is_there.map(|(row, at)| at.map(|_| row as u32));
        let picked = take(&picked, &is_there.collect::<UInt32Array>(), None)?;
        Ok(ColumnarValue::Array(picked))
    }
}
