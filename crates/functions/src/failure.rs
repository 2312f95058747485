//! Errors of functions that programs tell apart: with PostgreSQL's SQLSTATE.

use std::error::Error;

use datafusion::common::DataFusionError;

/// A call that failed for its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FunctionFailure {
    /// The five characters of its SQLSTATE.
    pub state: &'static str,
    /// What is wrong.
    pub message: String,
}

impl FunctionFailure {
    /// One of this state.
    pub fn error(state: &'static str, message: String) -> DataFusionError {
        Self { state, message }.into_datafusion()
    }

    /// The same as DataFusion carries it.
    pub fn into_datafusion(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

/// Whether an error is that of a regular expression that cannot be read.
pub fn is_of_pattern(error: &(dyn Error + 'static)) -> bool {
    error.is::<regex::Error>()
}
