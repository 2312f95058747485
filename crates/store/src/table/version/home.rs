//! Where rows are.

use atoll_placement::ChunkHome;
use atoll_topology::NodeId;

/// Where rows are: whose worker writes them, and in what memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowHome {
    /// The node; none where any worker will do.
    pub(super) node: Option<NodeId>,
    pub(super) memory: ChunkHome,
}
