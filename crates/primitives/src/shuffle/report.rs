//! What a shuffle came to.

use std::time::Duration;

use atoll_runtime::{ByteMatrix, StepReport};

/// A shuffle that went through.
#[derive(Debug)]
pub struct Shuffled<S> {
    /// The state of each worker after its last visit, by worker.
    pub states: Vec<S>,
    /// What was done.
    pub report: ShuffleReport,
}

/// What a shuffle did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShuffleReport {
    /// From its start to the end of its last visit.
    pub time: Duration,
    /// One report for each step; a single one for all without waiting (loose).
    pub steps: Vec<StepReport>,
    /// In a loose migration the arrivals of a thread at a place where another one still was.
    pub convoys: u64,
}

impl ShuffleReport {
    /// Bytes read by (reader's node, home), over all steps.
    pub fn bytes(&self) -> ByteMatrix {
        let mut sum = ByteMatrix::default();
        self.steps.iter().for_each(|step| sum.add(&step.bytes));
        sum
    }
}
