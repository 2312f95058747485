//! Conversion of the store's errors to DataFusion errors.

use atoll_store::database::TransactionError;
use atoll_store::table::TableError;
use datafusion::common::DataFusionError;

use super::{SqlState, ViolatedConstraint};

/// Converts a table's error to a DataFusion error.
pub fn table_error(error: TableError) -> DataFusionError {
    match error {
        TableError::Values(error) => error.into(),
        TableError::Memory(error) => DataFusionError::ResourcesExhausted(error.to_string()),
        TableError::NoHome(error) => SqlState::NOT_IN_PREREQUISITE_STATE.error(error.to_string()),
        // DataFusion 55 plans NULL for a column that an INSERT omits, even if it is NOT NULL.
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

/// Converts a transaction's error to a DataFusion error.
pub fn transaction_error(error: TransactionError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
