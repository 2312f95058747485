//! A primitive's input on one node.

use arrow_array::RecordBatch;
use atoll_topology::NodeId;

/// Rows and the node whose memory holds them. Cloning shares the buffers.
#[derive(Clone, Debug)]
pub struct Part {
    /// Home of the rows; None if unknown: then any worker reads them.
    pub home: Option<NodeId>,
    /// The rows, read in place.
    pub rows: RecordBatch,
}

impl Part {
    /// Rows with this home.
    pub fn new(home: impl Into<Option<NodeId>>, rows: RecordBatch) -> Self {
        Self { home: home.into(), rows }
    }
}
