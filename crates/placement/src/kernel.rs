//! What placement asks of the operating system, as a trait: [`LiveKernel`](crate::LiveKernel) asks
//! Linux, `testkit::SimulatedKernel` simulates it, so that every path (placed, refused,
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

/// Anonymous memory from the kernel, or a part of it: start and length in bytes. What
/// [`Kernel::map`] returns starts and ends at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// A mapping of these bytes, for implementations of [`Kernel`].
    ///
    /// # Safety
    /// The range is mapped for reading and writing until [`Kernel::unmap`], and every copy of the
    /// mapping stays with the one who owns the memory: the bytes of what is handed to
    /// [`Kernel::populate`] are not referred to from elsewhere meanwhile.
    pub unsafe fn from_raw(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len }
    }

    /// First byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// First byte as a number.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is not a single byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` bytes from `offset` on; `None` when they reach beyond the end.
    pub fn part(&self, offset: usize, len: usize) -> Option<Self> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the offset lies within one mapping, whose length is at most isize::MAX.
        let start = unsafe { self.start.add(offset) };
        Some(Self { start, len })
    }
}

// SAFETY: a mapping is a range of addresses; who may read or write it is its owner's concern.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The kernel's side of placement. Thread calls act on the calling thread, but for
/// [`bind_other`](Self::bind_other).
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

    /// Touches every page that the mapping or part of one overlaps, so that it gets its home.
    /// Contents stay as they are, and bytes beyond its ends are neither read nor written.
    fn populate(&self, mapping: Mapping) -> Result<(), KernelError>;

    /// Home of the page at each address, according to the kernel (`move_pages` without targets);
    /// `None` for a page not yet written to.
    fn homes(&self, addresses: &[usize]) -> Result<Vec<Option<NodeId>>, KernelError>;

    /// Restricts the calling thread to these cpus (`sched_setaffinity`).
    fn bind_thread(&self, cpus: &CpuSet) -> Result<(), KernelError>;

    /// Restricts another thread of this process, by its number (`gettid`), to these cpus.
    fn bind_other(&self, thread: u32, cpus: &CpuSet) -> Result<(), KernelError>;

    /// Cpus the calling thread may run on (`sched_getaffinity`).
    fn thread_cpus(&self) -> Result<CpuSet, KernelError>;

    /// Cpu the calling thread is running on (`getcpu`).
    fn current_cpu(&self) -> Result<CpuId, KernelError>;

    /// Free memory of a node now.
    fn node_free(&self, node: NodeId) -> Result<Bytes, KernelError>;

    /// File cache of a node: what the kernel gives up before a bound allocation finds no memory.
    /// A preferred one goes to the next node instead and leaves the cache alone.
    fn node_reclaimable(&self, node: NodeId) -> Result<Bytes, KernelError>;

    /// Size of a base page in bytes.
    fn page_size(&self) -> usize;

    /// Size of a transparent huge page in bytes, where the kernel grants them on request.
    fn huge_page_size(&self) -> Option<usize>;
}
