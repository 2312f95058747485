//! Whether what was measured confirms what a paper found.

use std::fmt;

use serde::Serialize;

/// What ours says to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Confirms,
    Contradicts,
    CannotDecide,
}

/// A decision with its reason, or the reason why none can be made.
pub(crate) type Decision = Result<(bool, String), String>;

impl Verdict {
    /// Of a decision, with the reason.
    pub(crate) fn from_decision(decision: Decision) -> (Self, String) {
        match decision {
            Ok((true, because)) => (Self::Confirms, because),
            Ok((false, because)) => (Self::Contradicts, because),
            Err(because) => (Self::CannotDecide, because),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Confirms => "confirms",
            Self::Contradicts => "contradicts",
            Self::CannotDecide => "cannot decide",
        })
    }
}
