//! DataFusion's functions of dates and timestamps, wrapped so that they do not see infinite values.

use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use crate::failure::FunctionFailure;
use crate::temporal::{call_with_finite, has_endless};
use crate::wrapped::{Around, wrap};

/// Wraps the functions.
pub(in crate::scalar) fn register(context: &SessionContext) {
    let keeps = |argument| FiniteOnly { argument, keeps: true };
    wrap(context, "date_bin", keeps(1));
    wrap(context, "to_local_time", keeps(0));
    wrap(context, "to_unixtime", FiniteOnly { argument: 0, keeps: false });
}

/// A function that gets NULL instead of infinite values.
#[derive(Debug)]
struct FiniteOnly {
    /// The index of the argument.
    argument: usize,
    /// Whether an infinite argument is the result; otherwise NULL.
    keeps: bool,
}

impl Around for FiniteOnly {
    fn invoke(&self, inner: &dyn ScalarUDFImpl, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(origin) = args.args.get(self.argument + 1)
            && is_endless(origin)?
        {
            let message = format!("{}: origin out of range; give a finite one", inner.name());
            return Err(FunctionFailure::error("22008", message));
        }
        call_with_finite(args, self.argument, self.keeps, |args| inner.invoke_with_args(args))
    }
}

fn is_endless(value: &ColumnarValue) -> Result<bool> {
    Ok(match value {
        ColumnarValue::Array(values) => has_endless(values),
        ColumnarValue::Scalar(value) => has_endless(&value.to_array()?),
    })
}
