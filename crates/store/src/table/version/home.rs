//! Homes of rows.

use atoll_placement::ChunkHome;
use atoll_topology::NodeId;

/// The home of rows: whose worker writes them, and in what memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowHome {
    /// The node; `None` if any worker will do.
    pub(super) node: Option<NodeId>,
    pub(super) memory: ChunkHome,
}
