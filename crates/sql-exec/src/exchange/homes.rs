//! The homes of partitions.

use std::fmt;

use atoll_runtime::{Runtime, WorkerId};
use atoll_topology::NodeId;

/// The worker that runs this partition of every plan. Partitions beyond the last worker wrap around.
pub(crate) fn worker_of(partition: usize) -> WorkerId {
    WorkerId(partition as u32)
}

/// The home of this partition of every plan.
pub(crate) fn home_of(runtime: &Runtime, partition: usize) -> NodeId {
    runtime.node_of(worker_of(partition))
}

/// The homes of an operator's partitions, in the order of the partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionHomes(pub(crate) Vec<NodeId>);

impl PartitionHomes {
    /// The homes of `partitions` partitions.
    pub(crate) fn for_partitions(runtime: &Runtime, partitions: usize) -> Self {
        Self((0..partitions).map(|partition| home_of(runtime, partition)).collect())
    }
}

impl fmt::Display for PartitionHomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, home) in self.0.iter().enumerate() {
            write!(f, "{}{home}", if at == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}
