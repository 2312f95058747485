//! Report of a shuffle.

use std::time::Duration;

use atoll_runtime::{ByteMatrix, StepReport};

/// Result of a shuffle.
#[derive(Debug)]
pub struct Shuffled<S> {
    /// The state of each worker after its last visit, by worker.
    pub states: Vec<S>,
    /// The report.
    pub report: ShuffleReport,
}

/// How a shuffle ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShuffleReport {
    /// From its start to the end of its last visit.
    pub time: Duration,
    /// One report for each step, or a single one for all without waiting (loose).
    pub steps: Vec<StepReport>,
    /// In a loose migration, how often a thread arrived at a place where another one still was.
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
