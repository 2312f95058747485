//! The scalar function that brings its argument into the canonical form.

use std::sync::{Arc, LazyLock};

use atoll_store::table::canonical;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::constant::canonical_scalar;

/// Its name, as plans show it. It is not registered: SQL cannot call it.
pub(super) const NAME: &str = "canonical";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Canonical::new())));

/// The expression in the canonical form.
pub(super) fn call(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    signature: Signature,
}

impl Canonical {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field is returned, not only its type")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let [argument] = take_function_args(NAME, arguments.arg_fields)?;
        Ok(Arc::clone(argument))
    }

    /// The argument's: −0.0 is within every bound that 0.0 is in. Without one, DataFusion's search for
    /// orderings fails where it computes with the bounds of an expression around this one.
    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        let [argument] = take_function_args(NAME, input)?;
        Ok((*argument).clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = take_function_args(NAME, arguments.args)?;
        Ok(match argument {
            ColumnarValue::Array(array) => ColumnarValue::Array(canonical(&array)?),
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(canonical_scalar(value)?),
        })
    }
}
