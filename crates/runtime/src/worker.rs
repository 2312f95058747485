//! Workers, and the results of their bindings.

use std::fmt;

use atoll_placement::{Kernel, KernelError, verify_thread};
use atoll_topology::{CpuId, CpuSet, DomainId, NodeId};

/// A worker by its number: dense from 0, node-major (by node, then domain, then cpu). Where a
/// worker is addressed, numbers beyond the last wrap around, so that partition p can be given to
/// worker p whatever the number of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A thread of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its number.
    pub id: WorkerId,
    /// Node of its pool.
    pub node: NodeId,
    /// Domain of its group.
    pub domain: DomainId,
    /// Cpus it should be bound to.
    pub cpus: CpuSet,
    /// The operating system's number for the thread (`gettid`).
    pub thread: u32,
    /// The binding as read back from the kernel when the thread started.
    pub binding: Binding,
}

/// The result of a thread's binding, read back from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The thread may run on these cpus, all of them among those asked for.
    Bound {
        /// The mask read back; smaller than asked where a cpuset cuts it.
        cpus: CpuSet,
        /// Cpu the thread was seen on.
        cpu: CpuId,
    },
    /// The call succeeded, but the thread may run, or was seen, outside of the requested cpus.
    Elsewhere {
        /// The mask read back.
        cpus: CpuSet,
        /// Cpu the thread was seen on.
        cpu: CpuId,
    },
    /// The kernel did not carry out the binding.
    Refused(KernelError),
    /// The call succeeded, but the kernel does not report the result.
    Unverified(KernelError),
}

impl Binding {
    /// Whether the thread is known to stay where it was put.
    pub fn is_bound(&self) -> bool {
        matches!(self, Self::Bound { .. })
    }

    /// Binds the calling thread and reads back the result.
    #[doc(alias = "sched_setaffinity")]
    pub(crate) fn achieve(kernel: &dyn Kernel, asked: &CpuSet) -> Self {
        if let Err(error) = kernel.bind_thread(asked) {
            return Self::Refused(error);
        }
        match verify_thread(kernel, asked) {
            Err(error) => Self::Unverified(error),
            Ok(seen) if seen.is_bound() && seen.is_inside() => {
                Self::Bound { cpus: seen.allowed, cpu: seen.current }
            }
            Ok(seen) => Self::Elsewhere { cpus: seen.allowed, cpu: seen.current },
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound { cpus, .. } => write!(f, "bound to {cpus}"),
            Self::Elsewhere { cpus, cpu } => write!(f, "free to run on {cpus}, seen on {cpu}"),
            Self::Refused(error) => write!(f, "not bound: {error}"),
            Self::Unverified(error) => write!(f, "bound, not verified: {error}"),
        }
    }
}
