//! The report of a step.

use std::time::Duration;

use crate::ByteMatrix;

/// The report of a step, also if it failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepReport {
    /// Its name.
    pub name: String,
    /// From the start of its first task to the end of its last; zero when none ran. The times of
    /// steps that overlap ([`Coordination::Loose`](crate::Coordination::Loose)) overlap too.
    pub time: Duration,
    /// From its submission (in a loose sequence, the sequence's) to the start of its first task;
    /// zero when none ran.
    pub queued: Duration,
    /// Bytes read by (reader's node, home node), as counted by its tasks.
    pub bytes: ByteMatrix,
    /// Number of tasks.
    pub tasks: usize,
    /// Tasks that returned a result.
    pub tasks_finished: usize,
    /// Tasks that ran in another domain than they were assigned to.
    pub tasks_stolen: usize,
    /// Stolen tasks that ran on another node.
    pub tasks_stolen_remote: usize,
    /// Tasks for a node without workers, dealt to the nearest node that has some.
    pub tasks_rehomed: usize,
    /// Tasks that panicked.
    pub panics: usize,
}

/// Measurements of one runner for one step; merged at the join. Times count from the batch's submission.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepTally {
    pub(super) span: Option<(Duration, Duration)>,
    pub(super) finished: usize,
    pub(super) stolen: usize,
    pub(super) stolen_remote: usize,
    pub(super) panics: usize,
}

impl StepTally {
    /// Widens the span by one task's.
    pub(super) fn ran(&mut self, start: Duration, end: Duration) {
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
    }

    /// Adds another runner's.
    pub(super) fn add(&mut self, other: &StepTally) {
        if let Some((start, end)) = other.span {
            self.ran(start, end);
        }
        self.finished += other.finished;
        self.stolen += other.stolen;
        self.stolen_remote += other.stolen_remote;
        self.panics += other.panics;
    }

    /// The report of a step with this tally.
    pub(super) fn report(
        &self,
        name: String,
        tasks: usize,
        rehomed: usize,
        bytes: ByteMatrix,
    ) -> StepReport {
        let (start, end) = self.span.unwrap_or_default();
        StepReport {
            name,
            time: end - start,
            queued: start,
            bytes,
            tasks,
            tasks_finished: self.finished,
            tasks_stolen: self.stolen,
            tasks_stolen_remote: self.stolen_remote,
            tasks_rehomed: rehomed,
            panics: self.panics,
        }
    }
}
