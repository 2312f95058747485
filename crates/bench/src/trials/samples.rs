//! Samples of benchmarks that measure several subjects in turn, round by round, each sample kept at once.

use std::fmt;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::results::{CaseResult, TrialCase, TrialResults};
use super::stop::RunStop;

/// What a subject measured in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SampleCase {
    /// Settings by name.
    pub(crate) settings: Value,
    pub(crate) subject: String,
    /// From 0, those that do not count included.
    pub(crate) round: u32,
}

impl fmt::Display for SampleCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for value in self.settings.as_object().into_iter().flat_map(|settings| settings.values()) {
            match value {
                Value::String(text) => write!(f, "{text}, ")?,
                other => write!(f, "{other}, ")?,
            }
        }
        write!(f, "{}, round {}", self.subject, self.round + 1)
    }
}

impl TrialCase for SampleCase {
    fn key(&self) -> String {
        self.to_string()
    }
}

impl<P> TrialResults<P> {
    /// The samples of a case, kept by an earlier command or measured now; `None` after a signal.
    ///
    /// # Errors
    /// When measuring fails, or its result cannot be kept.
    pub(crate) fn samples(
        &self,
        case: SampleCase,
        stop: &RunStop,
        measure: impl FnOnce() -> Result<Vec<f64>>,
    ) -> Result<Option<Vec<f64>>> {
        if stop.is_stopped() {
            return Ok(None);
        }
        if let Some(CaseResult { answer, .. }) = self.get(&case)? {
            return Ok(answer);
        }
        let measured = measure();
        // A signal may have ended the client in the middle of its work.
        if stop.is_stopped() {
            return Ok(None);
        }
        let samples = measured?;
        self.put(&CaseResult::new(case, Ok(&samples)))?;
        Ok(Some(samples))
    }
}
