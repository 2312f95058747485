//! What placement asks of the operating system, as a trait: [`LiveKernel`](crate::LiveKernel) asks
//! Linux, `testkit::SimulatedKernel` keeps a book of its own, so that every path (placed, refused,
//! full, fallen back) runs on a machine with one node.

use std::ptr::NonNull;

use atoll_topology::{Bytes, CpuId, CpuSet, NodeId, NodeSet};

use crate::KernelError;

/// A memory policy, as the kernel knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The task's own policy: first touch unless something else is set.
    Default,
    /// The node of the cpu that touches the page first.
    Local,
    /// This node while it has free memory, then the others by distance.
    Preferred(NodeId),
    /// Only these nodes. A full node brings the OOM killer, not an error: for `--strict` only.
    Bind(NodeSet),
    /// Page by page over these nodes.
    Interleave(NodeSet),
    /// As `Interleave`, in proportion to the weights in sysfs (Linux 6.9).
    WeightedInterleave(NodeSet),
}

/// Anonymous memory from the kernel: start and length in bytes, both multiples of its page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First byte.
    pub start: NonNull<u8>,
    /// Length in bytes.
    pub len: usize,
}

// SAFETY: a mapping is a range of addresses; who may read or write it is its owner's concern.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The kernel's side of placement. Thread calls act on the calling thread.
pub trait Kernel: Send + Sync + std::fmt::Debug {
    /// Maps zeroed, private, anonymous memory; with `huge`, aligned to and advised for transparent
    /// huge pages where the kernel has them. Nothing is touched.
    fn map(&self, len: usize, huge: bool) -> Result<Mapping, KernelError>;

    /// Gives a mapping back.
    ///
    /// # Safety
    /// The mapping came from [`map`](Self::map) of the same kernel, and nothing refers to it.
    unsafe fn unmap(&self, mapping: Mapping);

    /// Sets the policy of a mapping's pages that are not touched yet (`mbind`).
    fn set_policy(&self, mapping: Mapping, policy: &Policy) -> Result<(), KernelError>;

    /// Touches every page of a mapping so that it gets its home. Contents stay as they are.
    fn populate(&self, mapping: Mapping) -> Result<(), KernelError>;

    /// Home of the page at each address, as the kernel tells it (`move_pages` without targets);
    /// `None` for a page not yet touched.
    fn homes(&self, addresses: &[usize]) -> Result<Vec<Option<NodeId>>, KernelError>;

    /// Restricts the calling thread to these cpus (`sched_setaffinity`).
    fn bind_thread(&self, cpus: &CpuSet) -> Result<(), KernelError>;

    /// Cpus the calling thread may run on (`sched_getaffinity`).
    fn thread_cpus(&self) -> Result<CpuSet, KernelError>;

    /// Cpu the calling thread is running on (`getcpu`).
    fn current_cpu(&self) -> Result<CpuId, KernelError>;

    /// Free memory of a node now.
    fn node_free(&self, node: NodeId) -> Result<Bytes, KernelError>;

    /// Size of a base page in bytes.
    fn page_size(&self) -> usize;

    /// Size of a transparent huge page in bytes, where the kernel grants them on request.
    fn huge_page_size(&self) -> Option<usize>;
}
