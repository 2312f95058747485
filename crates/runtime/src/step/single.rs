//! A single step.

use super::batch::{self, StepSettings};
use super::{Steal, StepError, StepReport, Task, address};
use crate::{CancelToken, Runtime};

/// A set of tasks to be run to completion; made by [`Runtime::step`].
#[derive(Debug)]
#[must_use = "a step does nothing until it is run"]
pub struct Step<T, E> {
    runtime: Runtime,
    name: String,
    tasks: Vec<Task<T, E>>,
    settings: StepSettings,
}

/// The outcome of a step.
#[derive(Debug)]
#[must_use = "a step may have failed"]
pub struct StepOutcome<T, E> {
    /// The tasks' results in the order of the tasks, or the error.
    pub result: Result<Vec<T>, StepError<E>>,
    /// The report, also if the step failed.
    pub report: StepReport,
}

impl Runtime {
    /// A step of these tasks, to be run with [`Step::run`].
    pub fn step<T, E>(&self, name: impl Into<String>, tasks: Vec<Task<T, E>>) -> Step<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let settings = StepSettings::default();
        Step { runtime: self.clone(), name: name.into(), tasks, settings }
    }
}

impl<T: Send + 'static, E: Send + 'static> Step<T, E> {
    /// How far waiting tasks may be stolen; within their node by default.
    pub fn steal(mut self, steal: Steal) -> Self {
        self.settings.steal = steal;
        self
    }

    /// Cancels the step when this token is cancelled.
    pub fn cancel(mut self, token: &CancelToken) -> Self {
        self.settings.cancel = token.clone();
        self
    }

    /// Runs all tasks and returns when the last has ended, also after a failure or a cancellation.
    ///
    /// If the future is dropped earlier, the tasks are cancelled and end on their own: running tasks
    /// at their next check, waiting tasks never start.
    pub async fn run(self) -> StepOutcome<T, E> {
        let Self { runtime, name, tasks, settings } = self;
        let mut report =
            StepReport { name: name.clone(), tasks: tasks.len(), ..StepReport::default() };
        let dealt = match address::deal(&runtime, name, tasks) {
            Ok(dealt) => dealt,
            Err(error) => return StepOutcome { result: Err(error), report },
        };
        let end = batch::run(&runtime, &settings, vec![dealt]).await;
        report = end.reports.into_iter().next().unwrap_or(report);
        let result = end.result.map(|steps| steps.into_iter().flatten().collect());
        StepOutcome { result, report }
    }
}
