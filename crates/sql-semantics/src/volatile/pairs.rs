//! Conditions of outer joins that are evaluated for pairs of rows.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Join, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(OfPair::default())));

/// Makes the condition reference both sides of a join, so that it stays there; None if a side has no columns.
pub(super) fn of_pair(condition: Expr, join: &Join) -> Option<Expr> {
    let mut args = vec![condition];
    for side in [&join.left, &join.right] {
        args.push(Expr::Column(side.schema().columns().into_iter().next()?));
    }
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), args)))
}

/// Returns its first argument; the others are columns that only the plan sees.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfPair {
    signature: Signature,
}

impl Default for OfPair {
    fn default() -> Self {
        Self { signature: Signature::variadic_any(Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for OfPair {
    fn name(&self) -> &str {
        "of_pair"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(condition) => Ok(condition),
            None => internal_err!("of_pair has a condition"),
        }
    }
}
