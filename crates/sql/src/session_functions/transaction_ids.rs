//! `txid_current()` and `pg_current_xact_id()`: the number of the current transaction.
//!
//! Numbers grow while a database is open, and begin anew when it is opened again.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use crate::statement_handle::StatementHandle;

const NAMES: [&str; 2] = ["txid_current", "pg_current_xact_id"];

/// Whether a function is one of these, which `atoll.functions` does not list.
pub(crate) fn is_transaction_function(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Registers the functions.
pub(crate) fn register(context: &SessionContext) {
    for name in NAMES {
        // A plan may be used again in another transaction.
        let signature = Signature::nullary(Volatility::Volatile);
        context.register_udf(ScalarUDF::new_from_impl(CurrentTransaction { name, signature }));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentTransaction {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for CurrentTransaction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((transaction, _)) = StatementHandle::transaction_of(&args.config_options) else {
            return exec_err!("{} outside of a statement", self.name);
        };
        let number = i64::try_from(transaction.id().0)
            .map_err(|_| exec_datafusion_err!("the number of the transaction is too large"))?;
        Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(number))))
    }
}
