//! Routes between nodes over the interconnect.

use std::collections::{BTreeMap, VecDeque};

use super::ask;
use crate::{Knowledge, Link, LinkId, NodeId, Quantity, Subject};

/// A path over links.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Links, in order.
    pub links: Vec<LinkId>,
    /// Nodes on the route, including both ends.
    pub nodes: Vec<NodeId>,
    /// The first link with the smallest bandwidth, and that bandwidth in GB/s; None if the bandwidth of a link is
    /// unknown, and on the route from a node to itself.
    pub narrowest: Option<(LinkId, f64)>,
}

impl Route {
    /// Number of links crossed.
    pub fn hops(&self) -> usize {
        self.links.len()
    }
}

/// Bandwidth of the narrowest link of a route; unknown (`None`) is below any figure.
type Width = Option<f64>;

/// An outgoing link of a node.
#[derive(Clone, Copy)]
struct LinkEnd {
    link: LinkId,
    to: NodeId,
    width: Width,
}

/// Outgoing links by node, ordered by id.
struct Graph(BTreeMap<NodeId, Vec<LinkEnd>>);

/// The search state of a node.
#[derive(Clone, Copy)]
struct Reach {
    hops: usize,
    /// Width of the widest route with this number of hops.
    width: Width,
}

impl Knowledge {
    /// The route over [`Machine::links`](crate::Machine): of all routes with the fewest hops the one whose narrowest
    /// link has the largest bandwidth (an unknown bandwidth is below any other), and of those the one with the
    /// lexicographically smallest link ids. A link's bandwidth is the largest read bandwidth of its most trusted facts.
    ///
    /// Returns None if no links connect the two, as on machines with unknown links, and for nodes that the machine does
    /// not have.
    pub fn route(&self, from: NodeId, to: NodeId) -> Option<Route> {
        self.machine.node(from)?;
        self.machine.node(to)?;
        let graph = Graph::from_links(&self.machine.links, |link| self.link_bandwidth(link));
        graph.route(from, to)
    }

    /// Bandwidth of one direction of a link in GB/s.
    pub fn link_bandwidth(&self, link: LinkId) -> Option<f64> {
        let facts = self.on(Subject::Link(link), Quantity::ReadBandwidth);
        ask::saturated(facts).map(|fact| fact.value)
    }
}

impl Graph {
    fn from_links(links: &[Link], width: impl Fn(LinkId) -> Width) -> Self {
        let mut exits: BTreeMap<NodeId, Vec<LinkEnd>> = BTreeMap::new();
        for link in links {
            let (id, width) = (link.id, width(link.id));
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                exits.entry(from).or_default().push(LinkEnd { link: id, to, width });
            }
        }
        for exits in exits.values_mut() {
            exits.sort_by_key(|exit| exit.link);
        }
        Self(exits)
    }

    fn exits(&self, node: NodeId) -> &[LinkEnd] {
        self.0.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Hops and width from every node to the target, by breadth-first search. A node's width is final when it is
    /// visited, since all nodes one hop nearer were visited before.
    fn reaches(&self, target: NodeId) -> BTreeMap<NodeId, Reach> {
        let start = Reach { hops: 0, width: Some(f64::INFINITY) };
        let mut reaches = BTreeMap::from([(target, start)]);
        let mut queue = VecDeque::from([target]);
        while let Some(node) = queue.pop_front() {
            let here = reaches[&node];
            for exit in self.exits(node) {
                let width = narrower(here.width, exit.width);
                let reach = Reach { hops: here.hops + 1, width };
                let known = reaches.entry(exit.to).or_insert_with(|| {
                    queue.push_back(exit.to);
                    reach
                });
                if known.hops == reach.hops && known.width < width {
                    known.width = width;
                }
            }
        }
        reaches
    }

    fn route(&self, from: NodeId, to: NodeId) -> Option<Route> {
        let reaches = self.reaches(to);
        let Reach { width, .. } = *reaches.get(&from)?;
        let mut crossed: Vec<LinkEnd> = Vec::new();
        let mut nodes = vec![from];
        let mut here = from;
        while here != to {
            let hops = reaches[&here].hops - 1;
            let leads_on = |exit: &&LinkEnd| {
                let next = &reaches[&exit.to];
                next.hops == hops && narrower(exit.width, next.width) >= width
            };
            let exit = self.exits(here).iter().find(leads_on)?;
            crossed.push(*exit);
            nodes.push(exit.to);
            here = exit.to;
        }
        let narrowest = crossed.iter().find(|exit| exit.width == width);
        let narrowest = narrowest.and_then(|exit| Some((exit.link, exit.width?)));
        let links = crossed.iter().map(|exit| exit.link).collect();
        Some(Route { links, nodes, narrowest })
    }
}

/// The narrower of two; `None` orders below every figure.
fn narrower(a: Width, b: Width) -> Width {
    if b < a { b } else { a }
}
