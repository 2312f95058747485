//! Why a runtime could not be started.

use std::any::Any;

use atoll_placement::KernelError;
use atoll_topology::{CpuSet, DomainId, NodeId};

use crate::{Binding, WorkerId};

/// Why a [`Runtime`](crate::Runtime) could not be started. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The machine has no cpus this process may use.
    #[error(
        "machine '{machine}' has no usable cpus; check the affinity mask (taskset -p) and the cpuset"
    )]
    NoCpus {
        /// Name of the machine.
        machine: String,
    },
    /// The number of threads is out of range.
    #[error(
        "invalid number of threads: {asked}; expected 1 to {max}, or none given for one per cpu"
    )]
    Threads {
        /// The requested number.
        asked: usize,
        /// The maximum.
        max: usize,
    },
    /// The name cannot be a thread's name.
    #[error("{name:?} cannot name a thread: it contains a NUL byte; choose another name")]
    Name {
        /// The name as given.
        name: String,
    },
    /// The domains of a node do not partition its cpus.
    #[error(
        "the domains of node {node} hold cpus {domains}, the node {cpus}: each cpu belongs to one \
         domain of its node; correct the machine's description"
    )]
    Domains {
        /// The node.
        node: NodeId,
        /// Its cpus.
        cpus: CpuSet,
        /// Cpus of its domains together.
        domains: CpuSet,
    },
    /// A binding was not achieved, and the options are strict.
    #[error(
        "worker {worker} was to run on cpus {cpus} (node {node}, domain {domain}) and is {binding}; \
         permit it, or start without strict to go on unbound"
    )]
    NotBound {
        /// The worker.
        worker: WorkerId,
        /// Its node.
        node: NodeId,
        /// Its domain.
        domain: DomainId,
        /// Cpus it should be bound to.
        cpus: CpuSet,
        /// What was found instead.
        binding: Binding,
    },
    /// The workers own none of the cpus that they should run on.
    #[error(
        "workers on cpus {own} cannot be confined to cpus {asked}: name at least one of theirs"
    )]
    NoneLeft {
        /// The requested cpus.
        asked: CpuSet,
        /// The cpus of the workers.
        own: CpuSet,
    },
    /// The kernel refused to move a worker to the cpus that it should be confined to.
    #[error("workers cannot be confined to cpus {asked}: {source}")]
    NotConfined {
        /// The requested cpus.
        asked: CpuSet,
        /// The kernel's error.
        source: KernelError,
    },
    /// The operating system could not create the threads of a group.
    #[error(
        "the {workers} threads of node {node}, domain {domain} could not be started: {reason}; \
         check the limits on threads (ulimit -u, the cgroup's pids.max)"
    )]
    Start {
        /// The node.
        node: NodeId,
        /// The domain.
        domain: DomainId,
        /// Requested number of threads.
        workers: usize,
        /// The operating system's error.
        reason: String,
    },
}

/// The message of a panic, if it is text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}
