//! Where the calling thread may run and runs.

use atoll_topology::{CpuId, CpuSet};

use crate::{Kernel, KernelError};

/// What the kernel says of the calling thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// Cpus it should be bound to.
    pub wanted: CpuSet,
    /// Cpus it may run on.
    pub allowed: CpuSet,
    /// Cpu it was running on.
    pub current: CpuId,
}

impl ThreadReport {
    /// Whether it can run on the wanted cpus only. It may be bound to fewer: the kernel leaves out
    /// cpus that are offline or outside the cpuset.
    pub fn is_bound(&self) -> bool {
        !self.allowed.is_empty() && self.allowed.is_subset(&self.wanted)
    }

    /// Whether it was running on one of the wanted cpus, bound or not.
    pub fn is_inside(&self) -> bool {
        self.wanted.contains(self.current)
    }
}

/// Asks the kernel where the calling thread may run and runs.
#[doc(alias = "sched_getaffinity")]
pub fn verify_thread(kernel: &dyn Kernel, wanted: &CpuSet) -> Result<ThreadReport, KernelError> {
    Ok(ThreadReport {
        wanted: wanted.clone(),
        allowed: kernel.thread_cpus()?,
        current: kernel.current_cpu()?,
    })
}
