//! Calibrates the counter before the program starts: of some pages on each node, the node
//! and the guest-physical address. The counter sees the same pages by their block addresses only, and
//! learns so which of these are which node's.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use atoll_sys::{Bitmap, CallError, Root, RootError};
use atoll_topology::{NodeId, NodeSet, SetError};

/// Pages heard of on each node.
pub const PAGES_PER_NODE: usize = 32;

/// From one of these pages to the next: they lie apart, so that they are not one huge page or one run
/// of physical memory.
const STRIDE_PAGES: usize = 5;

/// Nodes that have memory, as a list of numbers.
const NODES_WITH_MEMORY: &str = "/sys/devices/system/node/has_memory";

/// An entry of the pagemap: bit 63 says that the page is in memory, bits 0 to 54 are its frame.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// Why the calibration failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// sysfs does not list the nodes.
    #[error("cannot determine which nodes have memory: {0}")]
    Nodes(#[from] RootError),
    /// The list of sysfs is malformed.
    #[error("cannot determine which nodes have memory: {NODES_WITH_MEMORY}: {0}")]
    List(#[from] SetError),
    /// The counter has no marker for a node of this number.
    #[error("node number {0} is too large; the counter supports numbers up to {last}", last = atoll_marker::NODES - 1)]
    Number(NodeId),
    /// The kernel refused a call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Pages would not go to a node.
    #[error(
        "{stayed} of {PAGES_PER_NODE} pages could not be put on node {node} ({reason}); give the node more memory, or leave it without any"
    )]
    NoRoom {
        /// The node.
        node: NodeId,
        /// Pages elsewhere.
        stayed: usize,
        /// The kernel's status of the first of them.
        reason: String,
    },
    /// The kernel's table of pages cannot be read.
    #[error("/proc/self/pagemap: {0}")]
    Pagemap(#[from] io::Error),
    /// It hides physical addresses.
    #[error("/proc/self/pagemap hides physical addresses; run as root")]
    Hidden,
    /// A page moved during its calibration.
    #[error(
        "a page of node {0} was moved meanwhile; run again, with /proc/sys/kernel/numa_balancing at 0"
    )]
    Moved(NodeId),
}

/// Announces pages on every node with memory to the counter; returns their number. Outside of the lab this
/// does nothing but move a few pages of its own. Needs root, for the physical addresses.
pub fn calibrate() -> Result<usize, CalibrateError> {
    // Addresses and pages are announced per cpu: the announcing thread is bound to one.
    std::thread::scope(|scope| {
        scope.spawn(tell_of_all).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn tell_of_all() -> Result<usize, CalibrateError> {
    stay_here()?;
    let text = Root::live().read_text(NODES_WITH_MEMORY)?;
    let nodes = NodeSet::parse(text.trim())?;
    let pagemap = File::open("/proc/self/pagemap")?;
    for node in nodes.iter() {
        tell_of(node, &pagemap)?;
    }
    atoll_marker::ready();
    Ok(nodes.len() * PAGES_PER_NODE)
}

/// Binds the thread to the cpu it runs on.
fn stay_here() -> Result<(), CallError> {
    let cpu = atoll_sys::getcpu()?.cpu;
    let only = Bitmap::from_numbers([cpu]).unwrap_or_default();
    atoll_sys::sched_setaffinity(0, &only)
}

fn tell_of(node: NodeId, pagemap: &File) -> Result<(), CalibrateError> {
    let number = u8::try_from(node.0).ok().filter(|number| *number < atoll_marker::NODES);
    let number = number.ok_or(CalibrateError::Number(node))?;
    let page = atoll_sys::page_size();
    let mut memory = vec![0_u8; (PAGES_PER_NODE * STRIDE_PAGES + 1) * page];
    let bytes = bytes_apart(&mut memory, page);
    let addresses: Vec<usize> = bytes.iter().map(|byte| std::ptr::from_ref(*byte).addr()).collect();
    put(node, &addresses)?;
    let physical = physical_addresses(pagemap, &addresses, page)?;
    for (byte, physical) in bytes.iter().zip(&physical) {
        atoll_marker::say(*physical);
        atoll_marker::witness(number, byte);
    }
    let stayed = physical_addresses(pagemap, &addresses, page)? == physical;
    stayed.then_some(()).ok_or(CalibrateError::Moved(node))
}

/// A byte of each announced page, written, so that there is a page.
fn bytes_apart(memory: &mut [u8], page: usize) -> Vec<&u8> {
    let to_boundary = memory.as_ptr().addr().wrapping_neg() % page;
    let pages = memory[to_boundary..].chunks_mut(STRIDE_PAGES * page).take(PAGES_PER_NODE);
    pages
        .map(|stretch| {
            stretch[0] = 1;
            &stretch[0]
        })
        .collect()
}

/// Moves the pages to a node.
fn put(node: NodeId, addresses: &[usize]) -> Result<(), CalibrateError> {
    let target = node.0 as i32;
    let homes = atoll_sys::move_pages(addresses, &vec![target; addresses.len()])?;
    let elsewhere: Vec<i32> = homes.into_iter().filter(|home| *home != target).collect();
    let Some(first) = elsewhere.first() else { return Ok(()) };
    let reason = match first {
        errno @ ..0 => atoll_sys::errno_name(-errno).to_string(),
        other => format!("the first is on node {other}"),
    };
    Err(CalibrateError::NoRoom { node, stayed: elsewhere.len(), reason })
}

/// Guest-physical addresses of pages.
fn physical_addresses(
    pagemap: &File,
    addresses: &[usize],
    page: usize,
) -> Result<Vec<u64>, CalibrateError> {
    let of_page = |address: &usize| {
        let mut entry = [0; size_of::<u64>()];
        let offset = address / page * size_of::<u64>();
        pagemap.read_exact_at(&mut entry, offset as u64)?;
        physical_address(u64::from_le_bytes(entry), page)
    };
    addresses.iter().map(of_page).collect()
}

fn physical_address(entry: u64, page: usize) -> Result<u64, CalibrateError> {
    match entry & FRAME {
        frame if entry & PRESENT != 0 && frame != 0 => Ok(frame * page as u64),
        _ => Err(CalibrateError::Hidden),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_the_first_of_pages_that_lie_apart() {
        let page = atoll_sys::page_size();
        let mut memory = vec![0; (PAGES_PER_NODE * STRIDE_PAGES + 1) * page];
        let range = memory.as_ptr_range();
        let bytes = bytes_apart(&mut memory, page);
        let addresses: Vec<usize> =
            bytes.iter().map(|byte| std::ptr::from_ref(*byte).addr()).collect();
        assert_eq!(addresses.len(), PAGES_PER_NODE);
        assert!(bytes.iter().all(|byte| **byte == 1 && range.contains(&std::ptr::from_ref(*byte))));
        assert!(addresses.iter().all(|address| address.is_multiple_of(page)));
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] == STRIDE_PAGES * page));
    }

    #[test]
    fn a_page_without_a_frame_has_no_physical_address() {
        assert_eq!(physical_address(PRESENT | 0x1234, 4096).unwrap(), 0x123_4000);
        assert_eq!(physical_address(PRESENT | 1 << 56 | 2, 4096).unwrap(), 0x2000);
        for hidden in [0, PRESENT, 0x1234] {
            assert!(matches!(physical_address(hidden, 4096), Err(CalibrateError::Hidden)));
        }
    }

    #[test]
    fn this_machine_reports_its_own_nodes_if_allowed() {
        match calibrate() {
            Ok(pages) => assert!(pages > 0 && pages.is_multiple_of(PAGES_PER_NODE)),
            Err(error) => atoll_testkit::skip(atoll_testkit::Need::Permission, error),
        }
    }
}
