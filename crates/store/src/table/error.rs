//! Errors about the rows of a table.

use arrow_schema::{ArrowError, DataType};
use atoll_placement::{PlacementError, StrategyError};
use thiserror::Error;

use super::row::Key;

/// An error about the rows of a table.
#[derive(Debug, Error)]
pub enum TableError {
    /// Values that cannot be converted to the types of the table.
    #[error(transparent)]
    Values(#[from] ArrowError),
    /// No memory, or none left within the limit.
    #[error(transparent)]
    Memory(#[from] PlacementError),
    /// The machine has no home for the chunk under the table's placement.
    #[error(transparent)]
    NoHome(#[from] StrategyError),
    /// A NULL in a NOT NULL column.
    #[error("NULL in column '{column}' of table '{table}', which is declared NOT NULL")]
    Null {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// A column type that tables cannot store.
    #[error(
        "column '{column}' has the type {data_type}, which tables do not store; cast it to another type"
    )]
    Unsupported {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// The bytes of a row are invalid.
    #[error("row {row} of the rows to be read is damaged: {problem}")]
    DamagedRow {
        /// Its number among the rows to be decoded.
        row: usize,
        /// What is wrong.
        problem: String,
    },
    /// The change does not belong to this version of the table: a bug or damage.
    #[error("a change does not fit table '{table}': {problem}")]
    Misfit {
        /// The table.
        table: String,
        /// What does not fit.
        problem: String,
    },
    /// Rows with equal keys where a constraint forbids them.
    #[error(
        "rows of table '{table}' have equal values in the columns of '{constraint}', which must be unique"
    )]
    Duplicate {
        /// The table.
        table: String,
        /// The constraint.
        constraint: String,
        /// The key that several rows have.
        key: Key,
    },
}
