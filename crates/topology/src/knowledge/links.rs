//! Assumed links for machines without declared ones.

use crate::{Link, LinkId, Machine, NodeId};

/// Maximum number of nodes between which links are assumed: the largest machines with one interconnect have as many,
/// and the work is cubic.
pub const LINKS_ASSUMED_NODES_MAX: usize = 256;

/// Links that the distances suggest, each of the kind `assumed`: two nodes are neighbours unless some
/// third node is nearer to both of them than they are to each other. (Of symmetric distances this is
/// the relative neighbourhood graph: Toussaint 1980.)
///
/// Firmware gives larger distances to nodes that are more hops away, so intermediate nodes are detected; the graph is
/// always connected, and if all distances are equal, every pair is linked. It cannot detect missing links that the
/// firmware does not report, as is common for uneven interconnects: never present these links as facts. For asymmetric
/// distances the larger counts. Empty beyond [`LINKS_ASSUMED_NODES_MAX`] nodes.
///
/// To use them for routes, set [`Machine::links`] to these and `links_source` to assumed.
pub fn links_assumed(machine: &Machine) -> Vec<Link> {
    let count = machine.nodes.len();
    if count > LINKS_ASSUMED_NODES_MAX {
        return Vec::new();
    }
    let distance = |a: usize, b: usize| machine.distances[a][b].max(machine.distances[b][a]);
    let between = |a, b| {
        (0..count).any(|c| distance(a, c).max(distance(b, c)) < distance(a, b) && c != a && c != b)
    };
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    let id = |node: usize| machine.nodes[node].id;
    pairs
        .filter(|&(a, b)| !between(a, b))
        .zip(0..)
        .map(|((a, b), number)| link(LinkId(number), id(a), id(b)))
        .collect()
}

fn link(id: LinkId, a: NodeId, b: NodeId) -> Link {
    Link { id, a, b, kind: "assumed".to_owned() }
}
