//! Errors of primitives.

use std::sync::Arc;

use arrow_schema::{ArrowError, DataType};
use atoll_placement::PlacementError;
use atoll_runtime::{Cancelled, StepError};

/// Why a primitive failed. Its input is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PrimitiveError {
    /// Memory allocation failed or exceeds the budget.
    #[error(transparent)]
    Memory(#[from] PlacementError),
    /// The caller cancelled the primitive.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The result does not fit its type.
    #[error("{what} overflows {data_type}; cast the column to a wider type first")]
    Overflow {
        /// The function and its column.
        what: String,
        /// Type of the result.
        data_type: DataType,
    },
    /// Columns that do not match: lengths, types, positions.
    #[error("{what}: found {found}, expected {expected}")]
    Shape {
        /// The mismatched property.
        what: String,
        /// Its value.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// A type that the primitive does not support.
    #[error("{what} does not support {data_type}; cast it to one of: {supported}")]
    Type {
        /// The primitive and its argument.
        what: &'static str,
        /// The given type.
        data_type: DataType,
        /// The supported types.
        supported: &'static str,
    },
    /// Arrow failed to build a result.
    #[error("{0}")]
    Arrow(Arc<ArrowError>),
    /// A panic in a worker, which is a bug.
    #[error("a worker panicked in '{step}': {message}; please report it")]
    Panicked {
        /// The step.
        step: String,
        /// The panic message.
        message: String,
    },
    /// Work was sent to a node that does not exist on the machine.
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
