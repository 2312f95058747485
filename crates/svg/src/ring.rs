//! Nodes around a ring: no chord passes through a node that it does not link, on any machine. Every picture of the
//! same links has the nodes at the same positions.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;

/// The position of each node; `links` are pairs of nodes, in any order and with duplicates. Linked nodes are near each
/// other; four nodes make a square, two are side by side.
///
/// Takes O(n⁴) time: meant for about 30 nodes.
pub fn places(
    nodes: &BTreeSet<u32>,
    links: impl IntoIterator<Item = (u32, u32)>,
    centre: (f64, f64),
    radius: f64,
) -> BTreeMap<u32, (f64, f64)> {
    let nodes: Vec<u32> = nodes.iter().copied().collect();
    let count = nodes.len() as f64;
    let start = if nodes.len() == 2 { -TAU / 2.0 } else { -TAU / 4.0 - TAU / 2.0 / count };
    let place = |index: u32| {
        let angle = start + TAU * f64::from(index) / count;
        (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
    };
    order(&nodes, links).into_iter().zip(0..).map(|(id, index)| (id, place(index))).collect()
}

/// An order around the ring with short chords: the best of walks along the links from every node, each improved by
/// reversing segments while that shortens the total chord length (2-opt).
fn order(nodes: &[u32], links: impl IntoIterator<Item = (u32, u32)>) -> Vec<u32> {
    let pair = |(a, b): (u32, u32)| {
        let (a, b) = (nodes.binary_search(&a).ok()?, nodes.binary_search(&b).ok()?);
        Some((a.min(b), a.max(b)))
    };
    let pairs: BTreeSet<(usize, usize)> = links.into_iter().filter_map(pair).collect();
    let walks = (0..nodes.len()).map(|start| improved(walk(start, nodes.len(), &pairs), &pairs));
    let best = walks.min_by_key(|order| length(order, &pairs)).unwrap_or_default();
    best.into_iter().map(|place| nodes[place]).collect()
}

/// A walk over all nodes, preferring unvisited linked ones.
fn walk(start: usize, count: usize, pairs: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut order = vec![start];
    while order.len() < count {
        let last = order[order.len() - 1];
        let linked = |next: &usize| pairs.contains(&(last.min(*next), last.max(*next)));
        let mut left = (0..count).filter(|next| !order.contains(next));
        let next = left.clone().find(linked).or_else(|| left.next());
        order.extend(next);
    }
    order
}

fn improved(mut order: Vec<usize>, pairs: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut best = length(&order, pairs);
    loop {
        let before = best;
        for i in 0..order.len() {
            for j in i + 1..order.len() {
                order[i..=j].reverse();
                match length(&order, pairs) {
                    shorter if shorter < best => best = shorter,
                    _ => order[i..=j].reverse(),
                }
            }
        }
        if best == before {
            return order;
        }
    }
}

/// Steps around the ring that all links bridge together.
fn length(order: &[usize], pairs: &BTreeSet<(usize, usize)>) -> usize {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, node)| place[*node] = at);
    let steps = |(a, b): &(usize, usize)| {
        let apart = place[*a].abs_diff(place[*b]);
        apart.min(order.len() - apart)
    };
    pairs.iter().map(steps).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_make_the_order_whichever_way_and_how_often_they_are_told() {
        let nodes = BTreeSet::from([0, 4, 7, 9]);
        let square = [(0, 7), (7, 4), (4, 9), (9, 0)];
        let places_of =
            |links: &[(u32, u32)]| places(&nodes, links.iter().copied(), (0.0, 0.0), 10.0);
        let back = square.map(|(a, b)| (b, a));
        let there = places_of(&square);
        assert_eq!(there, places_of(&[&square[..], &back[..]].concat()));
        for (a, b) in square {
            let ((ax, ay), (bx, by)) = (there[&a], there[&b]);
            assert!((ax - bx).hypot(ay - by) < 15.0, "nodes {a} and {b} are neighbours");
        }
    }

    #[test]
    fn links_to_other_nodes_and_no_links_leave_all_nodes_in_order() {
        let nodes = BTreeSet::from([3, 1, 2]);
        assert_eq!(order(&[1, 2, 3], [(1, 99)]), [1, 2, 3]);
        assert_eq!(places(&nodes, [], (0.0, 0.0), 1.0).len(), 3);
        assert!(places(&BTreeSet::new(), [], (0.0, 0.0), 1.0).is_empty());
    }
}
