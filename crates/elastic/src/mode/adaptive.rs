//! Adaptive (section 3.2.1): "the cores are allocated on nodes with more accessed pages and cores with the least number
//! of accessed pages are released". It is dense within a node, and everywhere if no pages are known.

use atoll_topology::{CoreId, NodeId};

use super::{CoreChoice, dense};

/// A core moves to another node if that has this many times the pages of its own: counts from sampling, or of pages
/// that threads read in turn, vary by less.
const EXCHANGE_RATIO: u64 = 2;

/// A free core on the node with most accessed pages; among equal nodes, the nearest to the node with most.
pub fn give(choice: &CoreChoice<'_>) -> Option<CoreId> {
    let Some(top) = choice.pages.top() else { return dense::give(choice) };
    choice
        .beside_given(choice.nodes_free().into_iter().min_by_key(|node| rank(choice, top, *node))?)
}

/// A given core on the node with fewest accessed pages; among equal nodes, the farthest.
pub fn release(choice: &CoreChoice<'_>) -> Option<CoreId> {
    let Some(top) = choice.pages.top() else { return dense::release(choice) };
    let last = choice.nodes_given().into_iter().max_by_key(|node| {
        let (_, few, far, node) = rank(choice, top, *node);
        (few, far, node)
    })?;
    choice.loneliest(last)
}

/// A given core on the node with fewest pages, and a free one on a node with many more.
pub fn exchange(choice: &CoreChoice<'_>) -> Option<(CoreId, CoreId)> {
    let (away, to) = (release(choice)?, give(choice)?);
    let pages = |id| choice.table.core(id).map(|core| choice.pages.pages(core.node));
    let (few, many) = (pages(away)?, pages(to)?);
    (many > few.saturating_mul(EXCHANGE_RATIO)).then_some((away, to))
}

/// Lower values come first.
fn rank(choice: &CoreChoice<'_>, top: NodeId, node: NodeId) -> (bool, u64, u32, NodeId) {
    let few = u64::MAX - choice.pages.pages(node);
    (choice.saturated.contains(&node), few, choice.table.distance(top, node), node)
}
