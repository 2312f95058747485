//! Tasks that end with their caller and whose panics become errors.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use atoll_runtime::{Runtime, WorkerId};
use atoll_topology::NodeId;
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use futures::FutureExt;
use tokio::task::JoinHandle;

/// A task that is aborted on drop.
#[derive(Debug)]
pub struct BoundTask<T>(JoinHandle<T>);

impl<T> BoundTask<T> {
    /// Binds a spawned task.
    pub fn new(task: JoinHandle<T>) -> Self {
        Self(task)
    }
}

impl<T> BoundTask<Result<T>> {
    /// Waits for the task; a panic becomes an error that says what the task was `doing`.
    pub async fn join(mut self, doing: &str) -> Result<T> {
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

/// Runs each piece of work on a worker of its node if it names one, otherwise on all workers in turn; returns the
/// results in the order of the pieces.
pub async fn on_workers<T: Send + 'static, R: Send + 'static>(
    runtime: &Runtime,
    doing: &str,
    pieces: Vec<(Option<NodeId>, T)>,
    run: fn(T) -> Result<R>,
) -> Result<Vec<R>> {
    let workers = || (0..runtime.worker_count()).map(|worker| WorkerId(worker as u32));
    let all: Vec<WorkerId> = workers().collect();
    let mut running = Vec::with_capacity(pieces.len());
    for (number, (node, piece)) in pieces.into_iter().enumerate() {
        let near: Vec<WorkerId> =
            workers().filter(|worker| Some(runtime.node_of(*worker)) == node).collect();
        let near = if near.is_empty() { &all } else { &near };
        let worker = near[number % near.len()];
        running.push(BoundTask::new(runtime.spawn_on(worker, async move { run(piece) })));
    }
    let mut done = Vec::with_capacity(running.len());
    for task in running {
        done.push(task.join(doing).await?);
    }
    Ok(done)
}

/// Runs the future; a panic becomes an error that says `who` panicked.
pub async fn unpanicked<T>(who: &str, future: impl Future<Output = Result<T>>) -> Result<T> {
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
