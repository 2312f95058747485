//! Why rows did not become chunks.

use arrow_schema::ArrowError;
use atoll_placement::{PlacementError, StrategyError};
use thiserror::Error;

/// Why rows did not become chunks of a table.
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
}
