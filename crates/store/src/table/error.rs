//! What can go wrong with the rows of a table.

use arrow_schema::{ArrowError, DataType};
use atoll_placement::{PlacementError, StrategyError};
use thiserror::Error;

use super::row::Key;

/// What can go wrong with the rows of a table.
#[derive(Debug, Error)]
pub enum TableError {
    /// Values that cannot be brought into the types of the table.
    #[error(transparent)]
    Values(#[from] ArrowError),
    /// No memory, or none left within the limit.
    #[error(transparent)]
    Memory(#[from] PlacementError),
    /// The machine has no home for the chunk under the table's placement.
    #[error(transparent)]
    NoHome(#[from] StrategyError),
    /// A NULL where none may be.
    #[error("NULL in column '{column}' of table '{table}', which is declared NOT NULL")]
    Null {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// A type of which a table cannot change single rows.
    #[error(
        "column '{column}' has the type {data_type}, which tables do not store; cast it to another type"
    )]
    Unsupported {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// The bytes of a row are not one.
    #[error("row {row} of those to be read is damaged: {problem}")]
    DamagedRow {
        /// Its number among those that were to be decoded.
        row: usize,
        /// What was found.
        problem: String,
    },
    /// A change that is not one of this version of the table: an error of what made it, or damage.
    #[error("a change does not fit table '{table}': {problem}")]
    Misfit {
        /// The table.
        table: String,
        /// What does not fit.
        problem: String,
    },
    /// Rows with equal keys where a constraint forbids them.
    #[error(
        "rows of table '{table}' have equal values in the columns of '{constraint}', which are to be unique"
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
