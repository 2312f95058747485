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
    /// The number of threads asked for makes no runtime.
    #[error(
        "{asked} threads were asked for; give a number from 1 to {max}, or none for one per cpu"
    )]
    Threads {
        /// What was asked for.
        asked: usize,
        /// The most that is accepted.
        max: usize,
    },
    /// The name cannot be a thread's name.
    #[error("{name:?} cannot name a thread: it contains a NUL byte; choose another name")]
    Name {
        /// The name as given.
        name: String,
    },
    /// The domains of a node are not a division of its cpus.
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
        /// Cpus it was to be bound to.
        cpus: CpuSet,
        /// What was found instead.
        binding: Binding,
    },
    /// The workers were to run on cpus of which they have none.
    #[error(
        "workers on cpus {own} cannot be confined to cpus {asked}: name at least one of theirs"
    )]
    NoneLeft {
        /// What was asked for.
        asked: CpuSet,
        /// The cpus of the workers.
        own: CpuSet,
    },
    /// The kernel did not let a worker be moved to the cpus that it was to be confined to.
    #[error("workers cannot be confined to cpus {asked}: {source}")]
    NotConfined {
        /// What was asked for.
        asked: CpuSet,
        /// The kernel's word for it.
        source: KernelError,
    },
    /// The operating system did not give the threads of a group.
    #[error(
        "the {workers} threads of node {node}, domain {domain} could not be started: {reason}; \
         check the limits on threads (ulimit -u, the cgroup's pids.max)"
    )]
    Start {
        /// The node.
        node: NodeId,
        /// The domain.
        domain: DomainId,
        /// Threads it was to have.
        workers: usize,
        /// The operating system's word for it.
        reason: String,
    },
}

/// What a panic said, as far as it is text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}
