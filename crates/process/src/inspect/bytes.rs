//! Bytes by the node that holds them.

use std::collections::BTreeMap;

use atoll_topology::NodeId;

/// Bytes by node; under no node if the node is unknown.
pub type NodeBytes = BTreeMap<Option<NodeId>, u64>;

pub(super) fn add(sum: &mut NodeBytes, node: Option<NodeId>, bytes: u64) {
    if bytes > 0 {
        let sum = sum.entry(node).or_insert(0);
        *sum = sum.saturating_add(bytes);
    }
}

pub(super) fn add_all(sum: &mut NodeBytes, other: &NodeBytes) {
    for (node, bytes) in other {
        add(sum, *node, *bytes);
    }
}
