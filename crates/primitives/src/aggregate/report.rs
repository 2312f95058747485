//! Report of an aggregation.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use atoll_runtime::{ByteMatrix, StepReport};

/// One phase: all tasks of a step, or of all steps of a shuffle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// From the start of its first task to the end of its last.
    pub time: Duration,
    /// Bytes of input, pieces and copied tables that were read, by (reader's node, home).
    pub bytes: ByteMatrix,
    /// How the workers spent their time, if it is known.
    pub spent: Option<Spent>,
}

/// Total time of all workers of a phase, by activity (Li 2013, figure 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Reading pieces.
    pub read: Duration,
    /// Updating tables.
    pub update: Duration,
    /// Copying tables to the worker's next node.
    pub copy: Duration,
}

impl Phase {
    pub(super) fn from_report(report: &StepReport) -> Self {
        let (name, bytes) = (report.name.clone(), report.bytes.clone());
        Self { name, time: report.time, bytes, spent: None }
    }

    pub(super) fn with(self, spent: Spent) -> Self {
        Self { spent: Some(spent), ..self }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.update += other.update;
        self.copy += other.copy;
    }
}

/// Measures the time since its last reading.
pub(super) struct Watch(Instant);

impl Watch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.0, Instant::now());
        self.0 - before
    }
}
