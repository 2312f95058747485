//! Several steps, one after another.

use super::address::{self, DealtStep};
use super::batch::{self, BatchEnd, StepSettings};
use super::{Steal, StepError, StepReport, Task};
use crate::{CancelToken, Runtime};

/// Whether the steps of a sequence wait for one another (Li et al. 2013, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordination {
    /// A step starts when the one before has ended, so all workers are in the same step.
    Tight,
    /// No waiting: each worker goes through its own tasks in the order of the steps, as fast as it
    /// can. Tasks of different workers, and all that are addressed to a node, may overlap.
    Loose,
}

/// Steps in their order; made by [`Runtime::sequence`].
#[derive(Debug)]
#[must_use = "a sequence does nothing until it is run"]
pub struct Sequence<T, E> {
    runtime: Runtime,
    coordination: Coordination,
    steps: Vec<(String, Vec<Task<T, E>>)>,
    settings: StepSettings,
}

/// The outcome of a sequence.
#[derive(Debug)]
#[must_use = "a step may have failed"]
pub struct SequenceOutcome<T, E> {
    /// Results by step and task, or the error.
    pub result: Result<Vec<Vec<T>>, StepError<E>>,
    /// One report for each step that was started, also when it failed.
    pub reports: Vec<StepReport>,
}

impl Runtime {
    /// An empty sequence of steps, to be filled with [`Sequence::then`].
    pub fn sequence<T, E>(&self, coordination: Coordination) -> Sequence<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let settings = StepSettings::default();
        Sequence { runtime: self.clone(), coordination, steps: Vec::new(), settings }
    }
}

impl<T: Send + 'static, E: Send + 'static> Sequence<T, E> {
    /// Adds a step after the others.
    pub fn then(mut self, name: impl Into<String>, tasks: Vec<Task<T, E>>) -> Self {
        self.steps.push((name.into(), tasks));
        self
    }

    /// How far waiting tasks may be stolen; within their node by default. In a loose sequence a
    /// worker's tasks are stolen together.
    pub fn steal(mut self, steal: Steal) -> Self {
        self.settings.steal = steal;
        self
    }

    /// Cancels the sequence when this token is cancelled.
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.settings.cancel = token.clone();
        self
    }

    /// Runs all steps and returns when the last task has ended. The first failure ends the
    /// sequence; an address that is wrong in any step ends it before anything runs. When the future
    /// is dropped before, the tasks are cancelled as in [`Step::run`](super::Step::run).
    pub async fn run(self) -> SequenceOutcome<T, E> {
        let Self { runtime, coordination, steps, settings } = self;
        let dealt: Result<Vec<DealtStep<T, E>>, StepError<E>> =
            steps.into_iter().map(|(name, tasks)| address::deal(&runtime, name, tasks)).collect();
        let dealt = match dealt {
            Ok(dealt) => dealt,
            Err(error) => return SequenceOutcome { result: Err(error), reports: Vec::new() },
        };
        let end = match coordination {
            Coordination::Loose => batch::run(&runtime, &settings, dealt).await,
            Coordination::Tight => run_tight(&runtime, &settings, dealt).await,
        };
        SequenceOutcome { result: end.result, reports: end.reports }
    }
}

async fn run_tight<T: Send + 'static, E: Send + 'static>(
    runtime: &Runtime,
    settings: &StepSettings,
    steps: Vec<DealtStep<T, E>>,
) -> BatchEnd<T, E> {
    let (mut results, mut reports) = (Vec::with_capacity(steps.len()), Vec::new());
    for step in steps {
        let end = batch::run(runtime, settings, vec![step]).await;
        reports.extend(end.reports);
        match end.result {
            Ok(result) => results.extend(result),
            Err(error) => return BatchEnd { result: Err(error), reports },
        }
    }
    BatchEnd { result: Ok(results), reports }
}
