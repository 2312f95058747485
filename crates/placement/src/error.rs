//! Why the kernel did not do what placement asked, and why memory was not placed.

use atoll_topology::{Bytes, NodeId, NodeSet};

use crate::BudgetExceeded;

/// A call the kernel did not carry out. The three kinds ask for different answers: an unsupported
/// call never works here, a refused one works with other rights, a failed one may work later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The kernel lacks the call or the mode (`ENOSYS`, `EOPNOTSUPP`, `EINVAL` for a new mode).
    #[error("{call} is not supported by this kernel: {reason}")]
    Unsupported {
        /// The system call.
        call: &'static str,
        /// What is missing, and since which Linux it exists where known.
        reason: String,
    },
    /// The kernel or a container forbids it (`EPERM`, `EACCES`; seccomp, cpuset, capability).
    #[error("{call} was refused: {reason}")]
    Refused {
        /// The system call.
        call: &'static str,
        /// What forbids it, and how to permit it.
        reason: String,
    },
    /// Memory is used up, of the machine, the node or the cgroup (`ENOMEM`).
    #[error("{call} found no memory: {reason}")]
    OutOfMemory {
        /// The system call.
        call: &'static str,
        /// How much was asked, and where.
        reason: String,
    },
    /// Anything else.
    #[error("{call} failed: {reason}")]
    Failed {
        /// The system call.
        call: &'static str,
        /// The kernel's error.
        reason: String,
    },
}

/// Why memory was not placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The machine has no such node, or the process may not use it.
    #[error(
        "cannot place memory on node {node}, which does not exist; nodes of this machine: \
             {known}"
    )]
    UnknownNode {
        /// The node asked for.
        node: NodeId,
        /// Nodes of the machine.
        known: NodeSet,
    },
    /// No node has memory that this process may use.
    #[error("no node of machine '{machine}' has memory this process may use; check its cpuset")]
    NoMemory {
        /// Name of the machine.
        machine: String,
    },
    /// Strict placement, and the node does not hold what was asked.
    #[error(
        "node {node} has {free} left for {asked} of strictly placed memory; free some there, \
         choose another node, or place without strict"
    )]
    NodeFull {
        /// The node asked for.
        node: NodeId,
        /// What was asked for.
        asked: Bytes,
        /// What the node can give, beyond the kernel's reserve.
        free: Bytes,
    },
    /// All nodes together do not hold what was asked, file caches given up.
    #[error("the machine has {free} left for {asked}; free some, or set a memory limit below it")]
    MachineFull {
        /// What was asked for.
        asked: Bytes,
        /// What all nodes can give, beyond the kernel's reserve.
        free: Bytes,
    },
    /// More than one buffer can hold.
    #[error("{asked} is more than one buffer holds ({limit}); split it")]
    TooLarge {
        /// What was asked for.
        asked: Bytes,
        /// The largest buffer.
        limit: Bytes,
    },
    /// A buffer was asked to become longer than its memory.
    #[error("{asked} bytes do not fit a buffer with room for {capacity}; allocate a larger one")]
    BeyondCapacity {
        /// Length asked for, in bytes.
        asked: usize,
        /// Room in bytes.
        capacity: usize,
    },
    /// The budget does not hold it.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// The kernel did not do it.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl PlacementError {
    /// Whether giving unused memory back to the kernel may help. It does not help a budget, which is
    /// charged for memory in use only.
    pub(crate) fn is_lack_of_memory(&self) -> bool {
        matches!(
            self,
            Self::NodeFull { .. }
                | Self::MachineFull { .. }
                | Self::Kernel(KernelError::OutOfMemory { .. })
        )
    }
}
