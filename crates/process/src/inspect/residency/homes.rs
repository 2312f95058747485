//! The homes of another process's pages: `move_pages` with a null target.

use atoll_sys::{CallError, CallErrorKind, page_nodes_of};
use atoll_topology::NodeId;

/// Why homes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagesError {
    /// The process has ended.
    Ended,
    /// The caller may not trace it.
    Denied,
    /// The kernel has no such call, or a container forbids it.
    Unsupported(String),
}

/// Finds the home of the page at an address of a process, which no file shows.
pub trait PageHomes {
    /// Returns the node of the page at each address; `None` for a page that is not resident.
    fn homes(&self, pid: u32, addresses: &[u64]) -> Result<Vec<Option<NodeId>>, PagesError>;
}

/// The running kernel. Needs the right to trace the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LivePages;

/// `ESRCH`
const NO_PROCESS: &str = "ESRCH";

impl PageHomes for LivePages {
    fn homes(&self, pid: u32, addresses: &[u64]) -> Result<Vec<Option<NodeId>>, PagesError> {
        let addresses: Vec<usize> = addresses.iter().map(|address| *address as usize).collect();
        let nodes = page_nodes_of(pid, &addresses).map_err(explained)?;
        Ok(nodes.into_iter().map(|node| u32::try_from(node).ok().map(NodeId)).collect())
    }
}

fn explained(error: CallError) -> PagesError {
    match error.kind() {
        CallErrorKind::Refused => PagesError::Denied,
        _ if error.errno_name() == NO_PROCESS => PagesError::Ended,
        _ => PagesError::Unsupported(error.to_string()),
    }
}
