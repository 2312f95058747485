//! Functions that are undefined for some numbers, or whose result may be too large for a float: they fail, as in
//! PostgreSQL, where DataFusion returns NaN or infinity.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use crate::failure::FunctionFailure;
use crate::wrapped::{Around, wrap};

/// Checks a row's arguments and result; returns the error.
type Failure = fn(&[f64], f64) -> Option<(&'static str, &'static str)>;

const FUNCTIONS: [(&str, Failure); 6] = [
    ("exp", overflow),
    ("ln", logarithm),
    ("log", logarithm),
    ("log10", logarithm),
    ("log2", logarithm),
    ("power", power),
];

/// Replaces the functions of the same name by checked ones.
pub(super) fn register(context: &SessionContext) {
    for (name, failure) in FUNCTIONS {
        wrap(context, name, Defined { failure });
    }
    wrap(context, "chr", Characters);
}

fn overflow(args: &[f64], result: f64) -> Option<(&'static str, &'static str)> {
    let is_over = result.is_infinite() && args.iter().all(|arg| arg.is_finite());
    is_over.then_some(("22003", "value out of range: overflow"))
}

fn logarithm(args: &[f64], _: f64) -> Option<(&'static str, &'static str)> {
    if args.contains(&0.0) {
        return Some(("2201E", "cannot take logarithm of zero"));
    }
    if args.iter().any(|arg| *arg < 0.0) {
        return Some(("2201E", "cannot take logarithm of a negative number"));
    }
    // Base 1.
    (args.len() > 1 && args[0] == 1.0).then_some(("22012", "division by zero"))
}

fn power(args: &[f64], result: f64) -> Option<(&'static str, &'static str)> {
    if result.is_nan() && !args.iter().any(|arg| arg.is_nan()) {
        let why = "a negative number raised to a non-integer power yields a complex result";
        return Some(("2201F", why));
    }
    overflow(args, result)
}

/// Checks a function of numbers.
#[derive(Debug)]
struct Defined {
    failure: Failure,
}

impl Around for Defined {
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args.clone();
        let result = inner.invoke_with_args(args)?;
        let rows = match &result {
            ColumnarValue::Array(array) => array.len(),
            ColumnarValue::Scalar(_) => 1,
        };
        let given: Vec<Float64Array> =
            given.iter().map(|value| doubles(value, rows)).collect::<Result<_>>()?;
        let results = doubles(&result, rows)?;
        let mut of_row = Vec::with_capacity(given.len());
        for row in 0..rows {
            if given.iter().any(|arg| arg.is_null(row)) {
                continue;
            }
            of_row.clear();
            of_row.extend(given.iter().map(|arg| arg.value(row)));
            let result = if results.is_null(row) { 0.0 } else { results.value(row) };
            if let Some((state, message)) = (self.failure)(&of_row, result) {
                return Err(FunctionFailure::error(state, message.to_owned()));
            }
        }
        Ok(result)
    }

    /// DataFusion's `log` (55.2) compares its argument to 1, and takes 10 for a base that is not there, in the argument's
    /// type: a decimal without digits before its point has neither.
    fn simplifies(&self, args: &[Expr], info: &SimplifyContext) -> Result<bool> {
        let types = args.iter().map(|arg| info.get_data_type(arg));
        let has_decimal = types.map(|of| Ok(of?.is_decimal()));
        Ok(!has_decimal.collect::<Result<Vec<bool>>>()?.contains(&true))
    }
}

fn doubles(value: &ColumnarValue, rows: usize) -> Result<Float64Array> {
    let array: ArrayRef = cast(&value.to_array(rows)?, &DataType::Float64)?;
    Ok(array.as_primitive::<Float64Type>().clone())
}

/// Checks the code of a character.
#[derive(Debug)]
struct Characters;

impl Around for Characters {
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        for code in &args.args {
            let codes = doubles(code, args.number_rows)?;
            if let Some(failure) = codes.iter().flatten().find_map(no_character) {
                return Err(failure);
            }
        }
        inner.invoke_with_args(args)
    }
}

fn no_character(code: f64) -> Option<DataFusionError> {
    let failure = |state, message: &str| Some(FunctionFailure::error(state, message.to_owned()));
    match code {
        0.0 => failure("54000", "null character not permitted"),
        code if code < 0.0 => failure("22023", "character number must be positive"),
        _ => None,
    }
}
