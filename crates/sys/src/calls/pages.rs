//! Locating and moving pages: `move_pages`, `migrate_pages`.

use std::ffi::c_void;

use super::{Bitmap, CallError};

/// Move only pages that no other process maps (`linux/mempolicy.h`).
const MPOL_MF_MOVE: i32 = 1 << 1;

/// For each address of the calling process, the node of its page, or a negative errno: `-ENOENT`
/// for a page not touched yet, `-EFAULT` for the shared page of zeros and for unmapped addresses.
#[doc(alias = "move_pages")]
pub fn page_nodes(addresses: &[usize]) -> Result<Vec<i32>, CallError> {
    call_move_pages(0, addresses, None)
}

/// The same for the addresses of another process, which takes the right to trace it (`EPERM`
/// otherwise; `ESRCH` once it has ended). A page that several processes map counts as well.
#[doc(alias = "move_pages")]
pub fn page_nodes_of(pid: u32, addresses: &[usize]) -> Result<Vec<i32>, CallError> {
    match i32::try_from(pid) {
        Ok(pid @ 1..) => call_move_pages(pid, addresses, None),
        _ => Err(CallError { call: "move_pages", errno: libc::ESRCH }),
    }
}

/// Moves the page at each address of the calling process to the node at the same position; the
/// result is its node afterwards, or a negative errno. Pages that could not be moved stay usable.
/// `EINVAL` when the two slices differ in length.
pub fn move_pages(addresses: &[usize], nodes: &[i32]) -> Result<Vec<i32>, CallError> {
    if addresses.len() != nodes.len() {
        return Err(CallError { call: "move_pages", errno: libc::EINVAL });
    }
    call_move_pages(0, addresses, Some(nodes))
}

/// Moves all pages of a process, the calling one or another, from nodes of `from` to nodes of `to`; returns the number
/// that could not be moved. Shared pages stay, unless the caller has `CAP_SYS_NICE`. `ESRCH` if there is no such
/// process, `EPERM` without the right to trace it, `EINVAL` if `to` has no node that it may use.
pub fn migrate_pages(pid: u32, from: &Bitmap, to: &Bitmap) -> Result<u64, CallError> {
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else {
        return Err(CallError { call: "migrate_pages", errno: libc::ESRCH });
    };
    let words = from.words().len().max(to.words().len());
    let padded = |set: &Bitmap| {
        let mut padded = set.words().to_vec();
        padded.resize(words, 0);
        padded
    };
    let (from, to) = (padded(from), padded(to));
    // The kernel uses one bit less than the given length.
    let bits = words * 64 + 1;
    // SAFETY: the kernel reads so many words of both sets, which outlive the call.
    let left =
        unsafe { libc::syscall(libc::SYS_migrate_pages, pid, bits, from.as_ptr(), to.as_ptr()) };
    u64::try_from(left).map_err(|_| CallError::last("migrate_pages"))
}

/// `pid` 0 is the calling process.
fn call_move_pages(
    pid: i32,
    addresses: &[usize],
    nodes: Option<&[i32]>,
) -> Result<Vec<i32>, CallError> {
    let mut status = vec![0_i32; addresses.len()];
    let targets = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
    // SAFETY: the three arrays have the stated length and outlive the call. The kernel looks the
    // addresses up and may move pages, which changes neither addresses nor contents.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid,
            addresses.len(),
            addresses.as_ptr().cast::<*const c_void>(),
            targets,
            status.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    };
    match result {
        // Since Linux 4.17 a positive result counts pages that stayed; the status shows which.
        0.. => Ok(status),
        _ => Err(CallError::last("move_pages")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{madvise_populate_write, mmap, munmap, page_size, permitted};

    #[test]
    fn a_page_has_a_node_once_it_is_touched_and_none_before() {
        let page = page_size();
        let start = mmap(2 * page).unwrap();
        let address = start.as_ptr() as usize;
        madvise_populate_write(address, page).unwrap();
        let Some(nodes) = permitted(page_nodes(&[address, address + page])) else { return };
        assert!(nodes[0] >= 0, "{nodes:?}");
        assert_eq!(nodes[1], -libc::ENOENT);
        assert_eq!(move_pages(&[address], &nodes[..1]).unwrap(), nodes[..1]);
        // SAFETY: the mapping is ours and nothing refers to it.
        unsafe { munmap(start, 2 * page).unwrap() };
    }

    #[test]
    fn the_pages_of_a_process_are_found_by_its_number() {
        let value = [7_u8; 64];
        let addresses = [value.as_ptr() as usize];
        let Some(nodes) = permitted(page_nodes_of(std::process::id(), &addresses)) else { return };
        assert_eq!(nodes, page_nodes(&addresses).unwrap());
        assert_eq!(page_nodes_of(i32::MAX as u32, &addresses).unwrap_err().errno_name(), "ESRCH");
        assert_eq!(page_nodes_of(0, &addresses).unwrap_err().errno_name(), "ESRCH");
    }

    #[test]
    fn the_pages_of_a_process_move_where_they_are_already() {
        let nodes = Bitmap::from_numbers([0]).unwrap();
        let Some(left) = permitted(migrate_pages(std::process::id(), &nodes, &nodes)) else {
            return;
        };
        assert_eq!(left, 0);
        for pid in [0, i32::MAX as u32] {
            assert_eq!(migrate_pages(pid, &nodes, &nodes).unwrap_err().errno_name(), "ESRCH");
        }
        let none = Bitmap::from_numbers([]).unwrap();
        let error = migrate_pages(std::process::id(), &nodes, &none).unwrap_err();
        assert_eq!((error.call, error.errno_name()), ("migrate_pages", "EINVAL"));
    }

    #[test]
    fn pages_without_a_node_are_told_apart_from_calls_that_fail() {
        let Some(none) = permitted(page_nodes(&[])) else { return };
        assert!(none.is_empty());
        assert_eq!(page_nodes(&[0]).unwrap(), [-libc::EFAULT]);
        assert_eq!(move_pages(&[0], &[]).unwrap_err().errno_name(), "EINVAL");
        let error = move_pages(&[0], &[i32::MAX]).unwrap_err();
        assert_eq!((error.call, error.errno_name()), ("move_pages", "ENODEV"));
    }
}
