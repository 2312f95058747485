//! Sparse (figure 2a): cores far apart, so that the target has all memory controllers and caches.

use atoll_topology::{CoreId, NodeId};

use super::{CoreChoice, ElasticCore};

/// A free core of the node with fewest given cores, in its domain with fewest.
pub fn give(choice: &CoreChoice<'_>) -> Option<CoreId> {
    let crowd = |node: &NodeId| {
        let crowd = choice.table.count_on(choice.given, *node);
        (choice.saturated.contains(node), crowd, *node)
    };
    let node = choice.nodes_free().into_iter().min_by_key(crowd)?;
    let company = |core: &&ElasticCore| (choice.table.count_in(choice.given, core.domain), core.id);
    choice.free_on(node).min_by_key(company).map(|core| core.id)
}

/// A given core of the node with most given cores, in its domain with most.
pub fn release(choice: &CoreChoice<'_>) -> Option<CoreId> {
    let crowd = |node: &NodeId| (choice.table.count_on(choice.given, *node), *node);
    let node = choice.nodes_given().into_iter().max_by_key(crowd)?;
    let company = |core: &&ElasticCore| (choice.table.count_in(choice.given, core.domain), core.id);
    choice.given_on(node).max_by_key(company).map(|core| core.id)
}
