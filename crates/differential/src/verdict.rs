//! The verdict on two outcomes of one query.

use crate::outcome::EngineOutcome;
use atoll_bench::answers::{RowOrder, difference};

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Both have the same rows, or both refuse.
    Same,
    /// The other engine does not answer this query: no verdict.
    Unanswered,
    /// Atoll refuses by design: an overflow that the other's wider type holds, what it does not
    /// support, memory under a tight limit. The first line of the message.
    Refused(String),
    /// A defect, and a word for its kind.
    Difference { kind: &'static str, what: String },
}

/// Parts of messages of errors that are Atoll's to give where DuckDB has an answer: its sums and
/// literals are wider, and it has syntax that Atoll names as unsupported.
const BY_DESIGN: [&str; 4] = ["overflow", "out of range", "not supported", "not implemented"];
/// Parts of messages that no user's mistake explains.
const OWN_FAULTS: [&str; 4] = ["Internal error", "bug in DataFusion", "panicked", "External error"];
/// Parts of messages of a query that ran out of memory.
const SHORTAGES: [&str; 3] = ["Resources exhausted", "memory limit", "Failed to allocate"];

/// Compares Atoll's outcome with one that it should equal. Under a tight limit Atoll may run out of
/// memory.
pub(crate) fn verdict(
    expected: &EngineOutcome,
    found: &EngineOutcome,
    order: RowOrder,
    tight: bool,
) -> Verdict {
    match (expected, found) {
        (_, EngineOutcome::Lost(what)) => differs("lost", what),
        (_, EngineOutcome::Error(error)) if contains(error, &OWN_FAULTS) => differs("fault", error),
        (_, EngineOutcome::Error(error)) if tight && contains(error, &SHORTAGES) => refused(error),
        (EngineOutcome::Lost(_) | EngineOutcome::Error(_), EngineOutcome::Error(_)) => {
            Verdict::Same
        }
        (EngineOutcome::Lost(_) | EngineOutcome::Error(_), EngineOutcome::Rows(_)) => {
            Verdict::Unanswered
        }
        (EngineOutcome::Rows(_), EngineOutcome::Error(error)) if contains(error, &BY_DESIGN) => {
            refused(error)
        }
        (EngineOutcome::Rows(_), EngineOutcome::Error(error)) => differs("error", error),
        (EngineOutcome::Rows(expected), EngineOutcome::Rows(found)) => {
            match difference(expected, found, order) {
                Some(what) => differs("rows", &what),
                None => Verdict::Same,
            }
        }
    }
}

fn differs(kind: &'static str, what: &str) -> Verdict {
    Verdict::Difference { kind, what: what.to_owned() }
}

fn refused(error: &str) -> Verdict {
    Verdict::Refused(error.lines().next().unwrap_or_default().to_owned())
}

fn contains(error: &str, parts: &[&str]) -> bool {
    let error = error.to_ascii_lowercase();
    parts.iter().any(|part| error.contains(&part.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_bench::protocol::{Answer, Kind};

    fn rows(values: &[&str]) -> EngineOutcome {
        let values = values.iter().map(|value| vec![Some((*value).to_owned())]).collect();
        EngineOutcome::Rows(Answer { query: 0, ms: 1.0, columns: vec![Kind::Integer], values })
    }

    fn kind(expected: &EngineOutcome, found: &EngineOutcome, tight: bool) -> &'static str {
        match verdict(expected, found, RowOrder::Any, tight) {
            Verdict::Same => "same",
            Verdict::Unanswered => "unanswered",
            Verdict::Refused(_) => "refused",
            Verdict::Difference { kind, .. } => kind,
        }
    }

    #[test]
    fn faults_and_refusals_are_distinguished() {
        let error = |text: &str| EngineOutcome::Error(text.to_owned());
        let two = rows(&["1", "2"]);
        assert_eq!(kind(&two, &rows(&["2", "1"]), false), "same");
        assert_eq!(kind(&two, &rows(&["2"]), false), "rows");
        assert_eq!(kind(&two, &error("sum overflows BIGINT"), false), "refused");
        assert_eq!(kind(&two, &error("no such column"), false), "error");
        assert_eq!(kind(&two, &error("Resources exhausted: 5 MB"), false), "error");
        assert_eq!(kind(&two, &error("Resources exhausted: 5 MB"), true), "refused");
        let refused = error("Binder error");
        assert_eq!(kind(&refused, &error("type error"), false), "same");
        assert_eq!(kind(&refused, &two, false), "unanswered");
        assert_eq!(kind(&refused, &error("Internal error: x"), false), "fault");
        assert_eq!(kind(&two, &EngineOutcome::Lost("gone".to_owned()), true), "lost");
    }
}
