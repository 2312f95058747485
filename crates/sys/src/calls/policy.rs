//! Memory policies of ranges and tasks: `mbind`, `set_mempolicy`, `get_mempolicy`.

use std::ffi::c_void;

use super::{Bitmap, CallError};

/// Room for the nodes of any Linux build. `get_mempolicy` refuses less than the kernel's own count
/// (1024 at most) and more than a page.
const NODES_BITS: usize = 4096;

const MPOL_F_ADDR: u64 = 1 << 1;
const MPOL_F_MEMS_ALLOWED: u64 = 1 << 2;
/// Flags that the kernel reports in the upper bits of a mode.
const MPOL_MODE_FLAGS: i32 =
    libc::MPOL_F_STATIC_NODES | libc::MPOL_F_RELATIVE_NODES | libc::MPOL_F_NUMA_BALANCING;

/// Modes of a memory policy, by the kernel's numbers (`linux/mempolicy.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum PolicyMode {
    /// What applies otherwise: the task's policy for a range, the system's for a task.
    #[doc(alias = "MPOL_DEFAULT")]
    Default = 0,
    /// One node while it has free memory.
    #[doc(alias = "MPOL_PREFERRED")]
    Preferred = 1,
    /// Only these nodes.
    #[doc(alias = "MPOL_BIND")]
    Bind = 2,
    /// Page by page over these nodes.
    #[doc(alias = "MPOL_INTERLEAVE")]
    Interleave = 3,
    /// The node of the cpu that allocates (Linux 3.8).
    #[doc(alias = "MPOL_LOCAL")]
    Local = 4,
    /// These nodes while they have free memory (Linux 5.15).
    #[doc(alias = "MPOL_PREFERRED_MANY")]
    PreferredMany = 5,
    /// Page by page in proportion to the weights in sysfs (Linux 6.9).
    #[doc(alias = "MPOL_WEIGHTED_INTERLEAVE")]
    WeightedInterleave = 6,
}

/// A policy as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPolicy {
    /// The mode's number; compare with `PolicyMode as i32`. A number, because a newer kernel may
    /// report modes that [`PolicyMode`] does not name.
    pub mode: i32,
    /// Numbers of its nodes.
    pub nodes: Vec<u32>,
}

/// Sets the policy of the pages of a range that are not touched yet. `start` is a multiple of the
/// page size.
#[doc(alias = "MPOL_BIND")]
pub fn mbind(start: usize, len: usize, mode: PolicyMode, nodes: &Bitmap) -> Result<(), CallError> {
    let (mask, maxnode) = mask_argument(nodes);
    let mode = mode as libc::c_ulong; // for set_mempolicy the kernel takes an int
    // SAFETY: the kernel checks the range and reads the mask, which outlives the call; a policy
    // changes where later pages come from and no contents.
    match unsafe { libc::syscall(libc::SYS_mbind, start, len, mode, mask, maxnode, 0_u64) } {
        0 => Ok(()),
        _ => Err(CallError::last("mbind")),
    }
}

/// Sets the policy of the calling thread for what it touches from now on.
pub fn set_mempolicy(mode: PolicyMode, nodes: &Bitmap) -> Result<(), CallError> {
    let (mask, maxnode) = mask_argument(nodes);
    // SAFETY: the kernel reads the mask, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, mode as i32, mask, maxnode) } {
        0 => Ok(()),
        _ => Err(CallError::last("set_mempolicy")),
    }
}

/// As [`set_mempolicy`] with [`PolicyMode::Bind`], with automatic NUMA balancing left on among the
/// nodes (Linux 5.12; `EINVAL` before).
#[doc(alias = "MPOL_F_NUMA_BALANCING")]
pub fn set_mempolicy_balancing(nodes: &Bitmap) -> Result<(), CallError> {
    let (mask, maxnode) = mask_argument(nodes);
    let mode = PolicyMode::Bind as i32 | libc::MPOL_F_NUMA_BALANCING;
    // SAFETY: the kernel reads the mask, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, maxnode) } {
        0 => Ok(()),
        _ => Err(CallError::last("set_mempolicy")),
    }
}

/// The policy of the calling thread.
pub fn get_mempolicy() -> Result<TaskPolicy, CallError> {
    query(0, 0)
}

/// The policy of the mapping that holds an address.
#[doc(alias = "get_mempolicy")]
#[doc(alias = "MPOL_F_ADDR")]
pub fn policy_at(address: usize) -> Result<TaskPolicy, CallError> {
    query(address, MPOL_F_ADDR)
}

/// Numbers of the nodes that the calling thread's cpuset lets it allocate from.
#[doc(alias = "get_mempolicy")]
#[doc(alias = "MPOL_F_MEMS_ALLOWED")]
pub fn mems_allowed() -> Result<Vec<u32>, CallError> {
    query(0, MPOL_F_MEMS_ALLOWED).map(|policy| policy.nodes)
}

fn query(address: usize, flags: u64) -> Result<TaskPolicy, CallError> {
    let mut mode = 0_i32;
    let mut nodes = Bitmap::with_room(NODES_BITS);
    // SAFETY: the kernel writes one int and at most NODES_BITS bits, for which there is room; the
    // address is only looked up.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            nodes.words_mut().as_mut_ptr(),
            NODES_BITS,
            address as *const c_void,
            flags,
        )
    };
    match result {
        0 => Ok(TaskPolicy { mode: mode & !MPOL_MODE_FLAGS, nodes: nodes.numbers() }),
        _ => Err(CallError::last("get_mempolicy")),
    }
}

/// Pointer and length as the kernel wants them: null for no nodes, and one bit more than there are,
/// because it takes one off (`get_nodes` in `mm/mempolicy.c`).
fn mask_argument(nodes: &Bitmap) -> (*const u64, usize) {
    match nodes.bits() {
        0 => (std::ptr::null(), 0),
        bits => (nodes.words().as_ptr(), bits + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{BITMAP_NUMBER_MAX, mmap, munmap, page_size, permitted};

    #[test]
    fn the_policy_of_a_range_reads_back_as_set() {
        let start = mmap(page_size()).unwrap();
        let address = start.as_ptr() as usize;
        let Some(allowed) = permitted(mems_allowed()) else { return };
        let node = allowed[0];
        let nodes = Bitmap::from_numbers([node]).unwrap();
        for mode in [PolicyMode::Preferred, PolicyMode::Bind, PolicyMode::Interleave] {
            mbind(address, page_size(), mode, &nodes).unwrap();
            let policy = policy_at(address).unwrap();
            assert_eq!(policy, TaskPolicy { mode: mode as i32, nodes: vec![node] });
        }
        mbind(address, page_size(), PolicyMode::Default, &Bitmap::default()).unwrap();
        assert_eq!(policy_at(address).unwrap().mode, PolicyMode::Default as i32);
        // SAFETY: the mapping is ours and nothing refers to it.
        unsafe { munmap(start, page_size()).unwrap() };
    }

    #[test]
    fn the_policy_of_a_thread_reads_back_as_set() {
        let thread = std::thread::spawn(|| {
            let Some(allowed) = permitted(mems_allowed()) else { return };
            let node = allowed[0];
            set_mempolicy(PolicyMode::Bind, &Bitmap::from_numbers([node]).unwrap()).unwrap();
            assert_eq!(
                get_mempolicy().unwrap(),
                TaskPolicy { mode: PolicyMode::Bind as i32, nodes: vec![node] }
            );
        });
        thread.join().unwrap();
        let Some(own) = permitted(get_mempolicy()) else { return };
        assert_eq!(own.mode, PolicyMode::Default as i32);
    }

    #[test]
    fn a_node_that_is_not_there_is_an_error() {
        if permitted(mems_allowed()).is_none() {
            return;
        }
        let start = mmap(page_size()).unwrap();
        let address = start.as_ptr() as usize;
        for number in [1023, BITMAP_NUMBER_MAX] {
            let nodes = Bitmap::from_numbers([number]).unwrap();
            let error = mbind(address, page_size(), PolicyMode::Bind, &nodes).unwrap_err();
            assert_eq!((error.call, error.errno_name()), ("mbind", "EINVAL"), "node {number}");
        }
        // SAFETY: the mapping is ours and nothing refers to it.
        unsafe { munmap(start, page_size()).unwrap() };
    }
}
