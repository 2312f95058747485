//! A task: its work, its address and its context.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use atoll_topology::{Bytes, DomainId, NodeId};

use crate::{ByteCounters, CancelToken, Cancelled, Runtime, WorkerId};

/// The address of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskTarget {
    Node(NodeId),
    Worker(WorkerId),
}

pub(super) type TaskFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
pub(super) type TaskBody<T, E> = Box<dyn FnOnce(TaskContext) -> TaskFuture<T, E> + Send>;

/// A piece of a step, addressed to a node or to a worker. It runs once, on one group's threads.
///
/// Tasks of one step do not wait for one another: there may be fewer workers than tasks. What must
/// wait for others belongs into the next step.
pub struct Task<T, E> {
    pub(super) target: TaskTarget,
    pub(super) body: TaskBody<T, E>,
}

impl<T, E> Task<T, E> {
    /// A task for any worker of a node, or of the nearest node that has workers if it has none.
    pub fn on_node<F, R>(node: NodeId, body: F) -> Self
    where
        F: FnOnce(TaskContext) -> R + Send + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
    {
        Self { target: TaskTarget::Node(node), body: Box::new(|context| Box::pin(body(context))) }
    }

    /// A task for a worker's group. Numbers beyond the last wrap around. In a loose sequence the
    /// tasks of one worker run one after another, in the order of the steps.
    pub fn on_worker<F, R>(worker: WorkerId, body: F) -> Self
    where
        F: FnOnce(TaskContext) -> R + Send + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
    {
        Self {
            target: TaskTarget::Worker(worker),
            body: Box::new(|context| Box::pin(body(context))),
        }
    }
}

impl<T, E> std::fmt::Debug for Task<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("target", &self.target).finish_non_exhaustive()
    }
}

/// State shared by the tasks of one runner.
#[derive(Debug)]
pub(super) struct RunnerShared {
    pub(super) runtime: Runtime,
    /// Group (position) the runner belongs to.
    pub(super) group: usize,
    /// A child of the step's token for this runner alone: asking a token takes its lock, and
    /// workers that ask before every block must not meet there.
    pub(super) token: CancelToken,
    /// Counters of each step of the batch.
    pub(super) counters: Arc<Vec<ByteCounters>>,
}

/// The context of a running task.
#[derive(Clone, Debug)]
pub struct TaskContext {
    pub(super) shared: Arc<RunnerShared>,
    pub(super) step: usize,
    pub(super) task: usize,
}

impl TaskContext {
    /// Its number: tasks are counted from 0 in the order given.
    pub fn task(&self) -> usize {
        self.task
    }

    /// The runtime, for futures spawned by the task and for steps of its own.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Worker it runs on. Another one of the same group may go on with it after an await; on a
    /// thread that replaces a worker (`block_in_place`), the first of the group.
    pub fn worker(&self) -> WorkerId {
        let group = self.runtime().group(self.shared.group);
        self.runtime().current_worker().unwrap_or_else(|| group.workers()[0].id)
    }

    /// Node it really runs on: see [`Runtime::current_node`].
    pub fn node(&self) -> NodeId {
        let group = self.runtime().group(self.shared.group);
        self.runtime().current_node().unwrap_or_else(|| group.node())
    }

    /// Domain of the group it runs in.
    pub fn domain(&self) -> DomainId {
        self.runtime().group(self.shared.group).domain()
    }

    /// Cancelled with the step: by its caller, or because another task failed or panicked.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.shared.token
    }

    /// `Err` once the step is cancelled: `context.check()?` before each block.
    pub fn check(&self) -> Result<(), Cancelled> {
        self.shared.token.check()
    }

    /// Adds bytes the task has read to the step's matrix, under the node it really runs on.
    pub fn count_read(&self, home: NodeId, bytes: Bytes) {
        self.shared.counters[self.step].count(self.node(), home, bytes);
    }
}
