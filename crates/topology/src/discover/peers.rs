//! A cpu and the cpus that it may share a core or a cache with.

use super::nodes::Nodes;
use crate::{CpuId, CpuSet, NodeId};

/// A cpu among the usable cpus of its node.
pub(super) struct Peers<'a> {
    pub(super) cpu: CpuId,
    pub(super) node: NodeId,
    pub(super) usable: &'a CpuSet,
    pub(super) nodes: &'a Nodes,
}

impl Peers<'_> {
    /// The first usable cpu on the same node in a set that should contain the cpu itself. All members of a group name
    /// the same leader, so groups stay separate even if their lists disagree.
    pub(super) fn leader(&self, group: &CpuSet) -> CpuId {
        let peer = |cpu: &CpuId| self.usable.contains(*cpu) && self.nodes.is_home(self.node, *cpu);
        group.iter().find(peer).unwrap_or(self.cpu)
    }

    /// The first usable cpu of the node.
    pub(super) fn node_leader(&self) -> CpuId {
        self.leader(self.usable)
    }
}
