//! [`LiveKernel`]: placement by the Linux this process runs on.

mod explain;
mod meminfo;

use std::ptr::NonNull;

use atoll_sys as sys;
use atoll_sys::{Bitmap, CallError, PolicyMode, Root};
use atoll_topology::{Bytes, CpuId, CpuSet, NodeId, NodeSet};

use crate::{Kernel, KernelError, Mapping, Policy};

/// Addresses asked of `move_pages` in one call: bounds the memory of a large verification, and is
/// far above the 16 at a time that the kernel itself copies.
const HOMES_BATCH: usize = 16_384;

/// The kernel this process runs on. Its errors name the system call (`mbind`, `move_pages`, …).
/// what its errors name.
#[derive(Debug)]
pub struct LiveKernel {
    root: Root,
    page_size: usize,
    huge_page_size: Option<usize>,
}

impl LiveKernel {
    /// The running kernel.
    pub fn new() -> Self {
        Self::with_root(Root::live())
    }

    /// The running kernel, with sysfs and procfs read under another root.
    pub fn with_root(root: Root) -> Self {
        let huge_page_size = meminfo::huge_page_size(&root);
        Self { root, page_size: sys::page_size(), huge_page_size }
    }

    /// Maps `len` bytes that start at a multiple of `align`, by mapping more and giving back the
    /// ends: the kernel aligns large mappings itself only since 6.7, and only some of them.
    fn map_aligned(&self, len: usize, align: usize) -> Result<NonNull<u8>, KernelError> {
        let padded = len.checked_add(align).ok_or_else(|| explain::too_large(len))?;
        let start = sys::mmap(padded).map_err(|error| explain::map(error, padded))?;
        let address = start.as_ptr() as usize;
        let head = address.next_multiple_of(align) - address;
        let tail = padded - head - len;
        // SAFETY: head and tail are the ends of a fresh mapping that nothing refers to, and what
        // remains between them is `len` bytes.
        unsafe {
            if head > 0 {
                let _ = sys::munmap(start, head);
            }
            if tail > 0 {
                let _ = sys::munmap(start.add(head + len), tail);
            }
            Ok(start.add(head))
        }
    }
}

impl Default for LiveKernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel for LiveKernel {
    fn map(&self, len: usize, huge: bool) -> Result<Mapping, KernelError> {
        let len = len
            .checked_next_multiple_of(self.page_size)
            .filter(|len| *len <= isize::MAX as usize)
            .ok_or_else(|| explain::too_large(len))?;
        let start = match self.huge_page_size.filter(|_| huge) {
            Some(align) => {
                let start = self.map_aligned(len, align)?;
                // Base pages serve as well; verification shows what there is.
                let _ = sys::madvise_hugepage(start.as_ptr() as usize, len);
                start
            }
            None => sys::mmap(len).map_err(|error| explain::map(error, len))?,
        };
        // SAFETY: a fresh mapping of `len` bytes, readable and writable, that only the caller knows.
        Ok(unsafe { Mapping::from_raw(start, len) })
    }

    unsafe fn unmap(&self, mapping: Mapping) {
        // SAFETY: the caller vouches for the mapping. The call fails only when splitting a mapping
        // exceeds vm.max_map_count; the memory then stays mapped, which is harmless.
        let _ = unsafe { sys::munmap(mapping.start(), mapping.len()) };
    }

    #[doc(alias = "mbind")]
    fn set_policy(&self, mapping: Mapping, policy: &Policy) -> Result<(), KernelError> {
        let (mode, nodes) = mode_and_nodes(policy);
        let bitmap = Bitmap::from_numbers(nodes.iter().map(u32::from))
            .map_err(|error| explain::failed("mbind", error))?;
        sys::mbind(mapping.address(), mapping.len(), mode, &bitmap)
            .map_err(|error| explain::mbind(error, mode, &nodes))
    }

    #[doc(alias = "MADV_POPULATE_WRITE")]
    fn populate(&self, mapping: Mapping) -> Result<(), KernelError> {
        let start = mapping.address() / self.page_size * self.page_size;
        let len = mapping.address() + mapping.len() - start;
        populated(mapping, sys::madvise_populate_write(start, len))
    }

    #[doc(alias = "move_pages")]
    fn homes(&self, addresses: &[usize]) -> Result<Vec<Option<NodeId>>, KernelError> {
        let mut homes = Vec::with_capacity(addresses.len());
        for batch in addresses.chunks(HOMES_BATCH) {
            let status = sys::page_nodes(batch).map_err(explain::move_pages)?;
            homes.extend(status.into_iter().map(|node| u32::try_from(node).ok().map(NodeId)));
        }
        Ok(homes)
    }

    #[doc(alias = "sched_setaffinity")]
    fn bind_thread(&self, cpus: &CpuSet) -> Result<(), KernelError> {
        // 0 is the calling thread.
        self.bind_other(0, cpus)
    }

    #[doc(alias = "sched_setaffinity")]
    fn bind_other(&self, thread: u32, cpus: &CpuSet) -> Result<(), KernelError> {
        let bitmap = Bitmap::from_numbers(cpus.iter().map(u32::from))
            .map_err(|error| explain::failed("sched_setaffinity", error))?;
        let bound = sys::sched_setaffinity(thread.cast_signed(), &bitmap);
        bound.map_err(|error| explain::bind_thread(error, cpus))
    }

    #[doc(alias = "sched_getaffinity")]
    fn thread_cpus(&self) -> Result<CpuSet, KernelError> {
        let cpus = sys::sched_getaffinity(0).map_err(explain::thread)?;
        Ok(cpus.into_iter().map(CpuId).collect())
    }

    #[doc(alias = "getcpu")]
    fn current_cpu(&self) -> Result<CpuId, KernelError> {
        sys::getcpu().map(|at| CpuId(at.cpu)).map_err(explain::thread)
    }

    fn node_free(&self, node: NodeId) -> Result<Bytes, KernelError> {
        meminfo::sum(&self.root, node, &["MemFree"])
    }

    fn node_reclaimable(&self, node: NodeId) -> Result<Bytes, KernelError> {
        meminfo::sum(&self.root, node, &["Active(file)", "Inactive(file)"])
    }

    fn page_size(&self) -> usize {
        self.page_size
    }

    fn huge_page_size(&self) -> Option<usize> {
        self.huge_page_size
    }
}

/// Touches the pages after all where the kernel does not know how to: before Linux 5.14, or in a
/// sandbox that lacks the advice (gVisor).
fn populated(mapping: Mapping, advised: Result<(), CallError>) -> Result<(), KernelError> {
    match advised {
        Err(error) if matches!(error.errno_name(), "EINVAL" | "ENOSYS" | "EPERM") => {
            // SAFETY: by the contract of `Mapping::from_raw` the bytes are mapped and the caller's
            // alone.
            unsafe { sys::touch_pages(mapping.start(), mapping.len()) };
            Ok(())
        }
        result => result.map_err(|error| explain::populate(error, mapping.len())),
    }
}

fn mode_and_nodes(policy: &Policy) -> (PolicyMode, NodeSet) {
    match policy {
        Policy::Default => (PolicyMode::Default, NodeSet::new()),
        Policy::Local => (PolicyMode::Local, NodeSet::new()),
        Policy::Preferred(node) => (PolicyMode::Preferred, NodeSet::from_iter([*node])),
        Policy::Bind(nodes) => (PolicyMode::Bind, nodes.clone()),
        Policy::Interleave(nodes) => (PolicyMode::Interleave, nodes.clone()),
        Policy::WeightedInterleave(nodes) => (PolicyMode::WeightedInterleave, nodes.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "madvise(MADV_POPULATE_WRITE)";

    /// Which of two pages are present after the second was to be populated and the advice failed.
    fn present_after(errno: i32) -> (Result<(), KernelError>, Vec<bool>) {
        let kernel = LiveKernel::new();
        let page = kernel.page_size();
        let mapping = kernel.map(2 * page, false).unwrap();
        let second = mapping.part(page, page).unwrap();
        let result = populated(second, Err(CallError { call: CALL, errno }));
        let present = sys::mincore(mapping.address(), 2 * page).unwrap();
        // SAFETY: nothing refers to the mapping.
        unsafe { kernel.unmap(mapping) };
        (result, present)
    }

    #[test]
    fn populate_unsupported_pages_touched_one_by_one() {
        const EINVAL: i32 = 22;
        assert_eq!(present_after(EINVAL), (Ok(()), vec![false, true]));
    }

    #[test]
    fn populate_without_memory_is_an_error_and_touches_nothing() {
        const ENOMEM: i32 = 12;
        let (result, present) = present_after(ENOMEM);
        assert!(matches!(result, Err(KernelError::OutOfMemory { call: CALL, .. })), "{result:?}");
        assert_eq!(present, [false, false]);
    }
}
