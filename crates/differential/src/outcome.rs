//! Answers of the engines.

use atoll_bench::protocol::Answer;

/// The outcome of a query.
#[derive(Clone, Debug)]
pub(crate) enum EngineOutcome {
    Rows(Answer),
    /// The engine's message.
    Error(String),
    /// The process ended or did not answer.
    Lost(String),
}
