//! Why a primitive did not finish.

use std::sync::Arc;

use arrow_schema::{ArrowError, DataType};
use atoll_placement::PlacementError;
use atoll_runtime::{Cancelled, StepError};

/// Why a primitive did not finish. Its input is as it was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PrimitiveError {
    /// Memory that could not be had, or that the budget does not hold.
    #[error(transparent)]
    Memory(#[from] PlacementError),
    /// Cancelled by its caller.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A result that its type does not hold.
    #[error("{what} overflows {data_type}; cast the column to a wider type first")]
    Overflow {
        /// The function and its column.
        what: String,
        /// Type of the result.
        data_type: DataType,
    },
    /// Columns that do not fit together: lengths, types, positions.
    #[error("{what}: {found} given, {expected} expected")]
    Shape {
        /// What was given.
        what: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A type that a primitive does not take.
    #[error("{what} does not support {data_type}; cast it to one of: {supported}")]
    Type {
        /// The primitive and its argument.
        what: &'static str,
        /// Type given.
        data_type: DataType,
        /// Types it takes.
        supported: &'static str,
    },
    /// Arrow did not build what was asked.
    #[error("{0}")]
    Arrow(Arc<ArrowError>),
    /// A panic in a worker, which is a defect.
    #[error("a worker panicked in '{step}': {message}; please report it")]
    Panicked {
        /// The step.
        step: String,
        /// What the panic said.
        message: String,
    },
    /// Work was sent to a node that the machine does not have.
    #[error("{0}")]
    NoSuchNode(String),
}

impl From<ArrowError> for PrimitiveError {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(Arc::new(error))
    }
}

impl From<StepError<PrimitiveError>> for PrimitiveError {
    fn from(error: StepError<PrimitiveError>) -> Self {
        match error {
            StepError::Failed { error, .. } => error,
            StepError::Panicked { step, message, .. } => Self::Panicked { step, message },
            StepError::Cancelled { .. } => Self::Cancelled(Cancelled),
            other @ StepError::NoSuchNode { .. } => Self::NoSuchNode(other.to_string()),
        }
    }
}
