//! The scalar function that canonicalizes its argument: −0.0 is within every bound that 0.0 is in.

use std::sync::{Arc, LazyLock};

use atoll_store::table::canonical;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarUDF};

use super::constant::canonical_scalar;
use atoll_functions::UnnamedFunction;

/// Its name in plans.
pub(super) const NAME: &str = "canonical";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| UnnamedFunction::make(NAME, Arc::clone, value));

/// Wraps the expression in the function.
pub(super) fn call(expr: Expr) -> Expr {
    UnnamedFunction::call(&FUNCTION, expr)
}

fn value(argument: ColumnarValue) -> Result<ColumnarValue> {
    Ok(match argument {
        ColumnarValue::Array(array) => ColumnarValue::Array(canonical(&array)?),
        ColumnarValue::Scalar(value) => ColumnarValue::Scalar(canonical_scalar(value)?),
    })
}
