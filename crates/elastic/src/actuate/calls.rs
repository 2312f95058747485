//! Kernel calls of the actuators about threads, as a trait, so that tests can fake it.

use atoll_process::inspect::{ProcessId, identify};
use atoll_sys::{Bitmap, CallError, Root, sched_getaffinity, sched_setaffinity};
use atoll_topology::{CpuId, CpuSet};

/// A thread: its number and start time, because numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// Its number.
    pub tid: u32,
    /// When it started, in ticks since boot.
    pub start: u64,
}

/// Threads and where they may run.
pub trait ThreadCalls: std::fmt::Debug {
    /// The thread numbers of a process; empty if it has ended.
    fn threads(&self, process: ProcessId) -> Vec<u32>;

    /// The thread with this number now.
    fn thread(&self, tid: u32) -> Option<ThreadId>;

    /// The cpus on which a thread may run.
    fn affinity(&self, tid: u32) -> Result<CpuSet, CallError>;

    /// Restricts a thread to these cpus.
    fn bind(&self, tid: u32, cpus: &CpuSet) -> Result<(), CallError>;
}

/// The running kernel.
#[derive(Clone, Debug)]
pub struct LiveThreads {
    root: Root,
}

impl LiveThreads {
    /// Reads procfs below this root.
    pub fn new(root: Root) -> Self {
        Self { root }
    }
}

impl ThreadCalls for LiveThreads {
    fn threads(&self, process: ProcessId) -> Vec<u32> {
        let pid = process.pid;
        if identify(&self.root, pid).ok() != Some(process) {
            return Vec::new();
        }
        let names = self.root.list(&format!("/proc/{pid}/task")).unwrap_or_default();
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }

    fn thread(&self, tid: u32) -> Option<ThreadId> {
        // procfs has a directory for every thread, even for those that it does not list.
        let id = identify(&self.root, tid).ok()?;
        Some(ThreadId { tid, start: id.start })
    }

    fn affinity(&self, tid: u32) -> Result<CpuSet, CallError> {
        let cpus = sched_getaffinity(number(tid))?;
        Ok(cpus.into_iter().map(CpuId).collect())
    }

    fn bind(&self, tid: u32, cpus: &CpuSet) -> Result<(), CallError> {
        let numbers = cpus.iter().map(|cpu| cpu.0);
        // A set beyond the kernel's cpus becomes an empty one, which the kernel refuses.
        let mask = Bitmap::from_numbers(numbers).unwrap_or_default();
        sched_setaffinity(number(tid), &mask)
    }
}

/// Zero would be the calling thread: no target has this number.
fn number(tid: u32) -> i32 {
    i32::try_from(tid).ok().filter(|tid| *tid > 0).unwrap_or(i32::MAX)
}
