//! Errors of a whole measurement and of single steps.

use atoll_placement::{KernelError, PlacementError};
use atoll_topology::{CpuId, CpuSet};

/// Why nothing can be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// An option is out of range.
    #[error("cannot measure with {what}")]
    Options {
        /// The option and its range.
        what: String,
    },
    /// No cpu to read with.
    #[error("machine '{machine}' has no cpu this process may use; check its affinity and cpuset")]
    NoCpus {
        /// Name of the machine.
        machine: String,
    },
    /// No memory to read from.
    #[error("no node of machine '{machine}' has memory this process may use; check its cpuset")]
    NoMemory {
        /// Name of the machine.
        machine: String,
    },
}

/// Why one step gives no figure; it becomes a note, and the next step is tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeasureStepError {
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The thread runs elsewhere although the kernel reported success.
    #[error("a thread bound to cpu {wanted} runs on cpu {current} and may run on {allowed}")]
    NotBound { wanted: CpuId, current: CpuId, allowed: CpuSet },
    /// A thread could not be started.
    #[error("a thread could not be started: {0}; check ulimit -u and pids.max")]
    Thread(#[from] std::io::Error),
    /// A thread ended early.
    #[error("a measuring thread ended unexpectedly")]
    Ended,
    /// Too little progress to count.
    #[error("the cpus were too busy with other work for a single round")]
    Starved,
}
