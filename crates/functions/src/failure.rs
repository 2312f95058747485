//! Function errors with PostgreSQL's SQLSTATE.

use std::error::Error;

use datafusion::common::DataFusionError;

/// A call that failed because of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FunctionFailure {
    /// The five-character SQLSTATE.
    pub state: &'static str,
    /// The message.
    pub message: String,
}

impl FunctionFailure {
    /// Creates an error with this state.
    pub fn error(state: &'static str, message: String) -> DataFusionError {
        Self { state, message }.into_datafusion()
    }

    /// Converts it to a DataFusionError.
    pub fn into_datafusion(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

/// Whether an error reports an invalid regular expression.
pub fn is_of_pattern(error: &(dyn Error + 'static)) -> bool {
    error.is::<regex::Error>()
}
