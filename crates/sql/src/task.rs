//! Tasks that end with their waiter, and whose panics are errors.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use futures::FutureExt;
use tokio::task::JoinHandle;

/// A task that is aborted when this is dropped.
#[derive(Debug)]
pub(crate) struct BoundTask<T>(JoinHandle<T>);

impl<T> BoundTask<T> {
    /// Binds a spawned task.
    pub(crate) fn new(task: JoinHandle<T>) -> Self {
        Self(task)
    }
}

impl<T> BoundTask<Result<T>> {
    /// Waits for the task; a panic in it becomes an error that tells what it was `doing`.
    pub(crate) async fn join(mut self, doing: &str) -> Result<T> {
        (&mut self.0)
            .await
            .map_err(|error| exec_datafusion_err!("a worker {doing} failed: {error}"))?
    }
}

impl<T> Drop for BoundTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs the future; a panic in it becomes an error that tells `who` panicked.
pub(crate) async fn unpanicked<T>(who: &str, future: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(future).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(panic) => Err(panic_error(who, panic.as_ref())),
    }
}

fn panic_error(who: &str, panic: &(dyn Any + Send)) -> DataFusionError {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    exec_datafusion_err!("{who} panicked: {message}; please report this as a bug")
}
