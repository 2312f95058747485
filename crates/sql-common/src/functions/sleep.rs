//! `pg_sleep(seconds)`, which waits without blocking a worker.
//!
//! The registered function is a placeholder for an asynchronous function, which the physical planner runs in a separate
//! operator. That operator waits on a timer, so other statements continue, and a cancelled or timed-out statement
//! ends the wait. DataFusion's asynchronous functions have no documentation, so they cannot be registered themselves.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// Returns the function to register.
pub fn pg_sleep() -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Float64], Volatility::Volatile);
    ScalarUDF::new_from_impl(Sleep { signature })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sleep {
    signature: Signature,
}

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let about = "Waits for this many seconds for each row; other statements continue.";
    Documentation::builder(DocSection::default(), about, "pg_sleep(seconds)")
        .with_sql_example("pg_sleep(0.5)")
        .build()
});

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let waiting = AsyncScalarUDF::new(Arc::new(self.clone())).into_scalar_udf();
        let call = ScalarFunction::new_udf(Arc::new(waiting), args);
        Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(call)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        not_impl_err!("pg_sleep here; call it in a select list or in WHERE")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [seconds] = take_function_args(self.name(), args.args)?;
        let seconds = seconds.into_array(args.number_rows)?;
        let seconds = seconds.as_primitive::<Float64Type>();
        for seconds in seconds.iter().flatten() {
            match Duration::try_from_secs_f64(seconds) {
                Ok(time) => tokio::time::sleep(time).await,
                // Longer than any wait.
                Err(_) if seconds > 0.0 => std::future::pending().await,
                Err(_) => {}
            }
        }
        let slept: StringArray = seconds.iter().map(|seconds| seconds.map(|_| "")).collect();
        Ok(ColumnarValue::Array(Arc::new(slept)))
    }
}
