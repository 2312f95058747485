//! Dense (figure 2b): cores close to each other, so that threads share caches and a memory controller.

use atoll_topology::{CoreId, NodeId};

use super::CoreChoice;

/// The free core nearest to the given ones: node by node, and within a node domain by domain.
pub fn give(choice: &CoreChoice<'_>) -> Option<CoreId> {
    let home = home(choice)?;
    let far = |node: &NodeId| {
        let started = choice.table.count_on(choice.given, *node);
        let distance = choice.table.distance(home, *node);
        (choice.saturated.contains(node), distance, usize::MAX - started, *node)
    };
    choice.beside_given(choice.nodes_free().into_iter().min_by_key(far)?)
}

/// The given core farthest from most of them.
pub fn release(choice: &CoreChoice<'_>) -> Option<CoreId> {
    let home = home(choice)?;
    let far = |node: &NodeId| {
        let left = choice.table.count_on(choice.given, *node);
        (choice.table.distance(home, *node), usize::MAX - left, *node)
    };
    choice.loneliest(choice.nodes_given().into_iter().max_by_key(far)?)
}

/// The node with most cores; before the first core, the node with most free ones.
fn home(choice: &CoreChoice<'_>) -> Option<NodeId> {
    choice.table.main_node(choice.given).or_else(|| choice.table.main_node(choice.free))
}
