//! What an engine answers.

use atoll_bench::protocol::Answer;

/// What came of a query.
#[derive(Clone, Debug)]
pub(crate) enum EngineOutcome {
    Rows(Answer),
    /// The engine's message.
    Error(String),
    /// The process ended or did not answer.
    Lost(String),
}
