//! The scalar function that brings its argument into the canonical form: −0.0 is within every bound that 0.0 is in.

use std::sync::{Arc, LazyLock};

use atoll_store::table::canonical;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarUDF};

use super::constant::canonical_scalar;
use atoll_functions::UnnamedFunction;

/// Its name, as plans show it.
pub(super) const NAME: &str = "canonical";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| UnnamedFunction::make(NAME, Arc::clone, value));

/// The expression in the canonical form.
pub(super) fn call(expr: Expr) -> Expr {
    UnnamedFunction::call(&FUNCTION, expr)
}

fn value(argument: ColumnarValue) -> Result<ColumnarValue> {
    Ok(match argument {
        ColumnarValue::Array(array) => ColumnarValue::Array(canonical(&array)?),
        ColumnarValue::Scalar(value) => ColumnarValue::Scalar(canonical_scalar(value)?),
    })
}
