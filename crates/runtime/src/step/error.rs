//! Why a step did not finish.

use atoll_topology::{NodeId, NodeSet};

/// Why a step did not finish. Whatever the reason, all its tasks have ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError<E> {
    /// A task panicked; the others were cancelled.
    #[error("task {task} of step '{step}' panicked: {message}")]
    Panicked {
        /// Name of the step.
        step: String,
        /// The task, counted from 0 in the order given.
        task: usize,
        /// The panic message.
        message: String,
    },
    /// A task returned an error; the others were cancelled.
    #[error("task {task} of step '{step}' failed: {error}")]
    Failed {
        /// Name of the step.
        step: String,
        /// The task, counted from 0 in the order given.
        task: usize,
        /// The returned error.
        #[source]
        error: E,
    },
    /// The step's token was cancelled before all tasks had finished.
    #[error("step '{step}' was cancelled: {finished} of {tasks} tasks had finished")]
    Cancelled {
        /// Name of the step.
        step: String,
        /// Tasks that had finished.
        finished: usize,
        /// Tasks in all.
        tasks: usize,
    },
    /// A task is addressed to a node the machine does not have. Nothing ran.
    #[error("task {task} of step '{step}' is for node {node}; the machine has nodes {nodes}")]
    NoSuchNode {
        /// Name of the step.
        step: String,
        /// The task, counted from 0 in the order given.
        task: usize,
        /// The requested node.
        node: NodeId,
        /// The machine's nodes.
        nodes: NodeSet,
    },
}
