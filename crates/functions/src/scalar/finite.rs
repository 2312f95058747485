//! DataFusion's functions of dates and timestamps, from which those that are endless are kept.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::prelude::SessionContext;

use crate::failure::FunctionFailure;
use crate::temporal::{has_endless, set_aside};
use crate::wrapped::{Around, wrap};

/// Wraps the functions.
pub(super) fn register(context: &SessionContext) {
    let keeps = |argument| FiniteOnly { argument, keeps: true };
    wrap(context, "date_bin", keeps(1));
    wrap(context, "to_local_time", keeps(0));
    wrap(context, "to_unixtime", FiniteOnly { argument: 0, keeps: false });
}

/// A function that is called with NULL for what is endless.
#[derive(Debug)]
struct FiniteOnly {
    /// The place of the moment among the arguments.
    argument: usize,
    /// Whether what is endless is the result; NULL otherwise.
    keeps: bool,
}

impl Around for FiniteOnly {
    fn invoke(
        &self,
        inner: &dyn ScalarUDFImpl,
        mut args: ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        if let Some(origin) = args.args.get(self.argument + 1)
            && is_endless(origin)?
        {
            let message = format!("{}: origin out of range; give a finite one", inner.name());
            return Err(FunctionFailure::error("22008", message));
        }
        let moment = args.args.get(self.argument);
        let Some(moment) = moment.map(|moment| moment.to_array(rows)).transpose()? else {
            return inner.invoke_with_args(args);
        };
        let Some((finite, aside)) = set_aside(&moment)? else {
            return inner.invoke_with_args(args);
        };
        args.args[self.argument] = ColumnarValue::Array(Arc::clone(&finite));
        let results = inner.invoke_with_args(args)?.into_array(rows)?;
        Ok(ColumnarValue::Array(match self.keeps {
            true => aside.put_back(&results)?,
            false => results,
        }))
    }
}

fn is_endless(value: &ColumnarValue) -> Result<bool> {
    Ok(match value {
        ColumnarValue::Array(values) => has_endless(values),
        ColumnarValue::Scalar(value) => has_endless(&value.to_array()?),
    })
}
