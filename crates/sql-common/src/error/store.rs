//! The store's errors as DataFusion's.

use atoll_store::database::TransactionError;
use atoll_store::table::TableError;
use datafusion::common::DataFusionError;

use super::{SqlState, ViolatedConstraint};

/// What a table refuses, as DataFusion's error.
pub fn table_error(error: TableError) -> DataFusionError {
    match error {
        TableError::Values(error) => error.into(),
        TableError::Memory(error) => DataFusionError::ResourcesExhausted(error.to_string()),
        TableError::NoHome(error) => SqlState::NOT_IN_PREREQUISITE_STATE.error(error.to_string()),
        // DataFusion 55 plans NULL for a column that an INSERT omits, whether it may be NULL or not.
        TableError::Null { ref column, ref table } => {
            let column = Some(column.clone());
            let violated = ViolatedConstraint { column, ..ViolatedConstraint::of_table(table) };
            SqlState::NOT_NULL_VIOLATION.violation(error.to_string(), violated)
        }
        TableError::Unsupported { .. }
        | TableError::DamagedRow { .. }
        | TableError::Misfit { .. }
        | TableError::Duplicate { .. } => DataFusionError::Execution(error.to_string()),
    }
}

/// What a transaction refuses, as DataFusion's error.
pub fn transaction_error(error: TransactionError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
