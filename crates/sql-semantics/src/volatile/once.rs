//! `coalesce` with a volatile argument, which DataFusion evaluates twice: `coalesce(nextval('s'), 0)` skips values.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::compute::is_not_null;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::arithmetic::{Failure, failure};

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(CoalesceOnce::default())));

/// Rewrites such a `coalesce` as a function that evaluates its arguments once.
pub(super) fn once(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(call) if is_coalesce(&call, schema) => {
            let call = ScalarFunction::new_udf(Arc::clone(&FUNCTION), call.args);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        other => Transformed::no(other),
    }
}

/// Whether a call evaluates a volatile argument twice, and may evaluate the following ones for all rows.
fn is_coalesce(call: &ScalarFunction, schema: &DFSchema) -> bool {
    if !matches!(call.func.name(), "coalesce" | "nvl") {
        return false;
    }
    let Some((first, rest)) = call.args.split_first() else { return false };
    let is_safe = |arg: &Expr| !arg.is_volatile() && failure(arg, schema) == Failure::Never;
    first.is_volatile() && rest.iter().all(is_safe)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CoalesceOnce {
    signature: Signature,
}

impl Default for CoalesceOnce {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for CoalesceOnce {
    fn name(&self) -> &str {
        "coalesce_once"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field is returned, not only its type")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(first) = args.arg_fields.first() else {
            return internal_err!("coalesce has arguments");
        };
        let nullable = args.arg_fields.iter().all(|field| field.is_nullable());
        Ok(Arc::new(first.as_ref().clone().with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let mut arrays = arrays.into_iter();
        let Some(mut found) = arrays.next() else { return internal_err!("coalesce has arguments") };
        for next in arrays {
            found = zip(&is_not_null(&found)?, &found, &next)?;
        }
        Ok(ColumnarValue::Array(found))
    }
}
