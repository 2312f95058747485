use std::collections::BTreeSet;

use atoll_testkit::machines;
use atoll_topology::{
    Fact, Knowledge, Link, LinkId, Machine, MachineBuilder, NodeId, NodeShape, Quantity, Route,
    Source, Subject, links_assumed,
};
use proptest::prelude::*;

/// A machine of nodes with one cpu each, with links and for some of them a bandwidth in GB/s.
fn linked(nodes: u32, links: &[(u32, u32, Option<u32>)]) -> Knowledge {
    let builder = (0..nodes).fold(MachineBuilder::new("linked"), |builder, id| {
        builder.node(NodeShape::with_cpus(NodeId(id), 1, 1, 1))
    });
    let mut knowledge = Knowledge::from_machine(builder.build().unwrap());
    for (&(a, b, bandwidth), id) in links.iter().zip(0..) {
        let id = LinkId(id);
        let link = Link { id, a: NodeId(a), b: NodeId(b), kind: "QPI".to_owned() };
        knowledge.machine.links.push(link);
        knowledge.facts.extend(bandwidth.map(|value| {
            let subject = Subject::Link(id);
            Fact::new(subject, Quantity::ReadBandwidth, value.into(), Source::Declared, "a test")
        }));
    }
    knowledge
}

fn route(knowledge: &Knowledge, from: u32, to: u32) -> Option<Route> {
    knowledge.route(NodeId(from), NodeId(to))
}

fn links(route: &Route) -> Vec<u32> {
    route.links.iter().map(|link| link.0).collect()
}

/// Every simple path.
fn ways(
    knowledge: &Knowledge,
    nodes: &mut Vec<NodeId>,
    to: NodeId,
    way: &mut Vec<LinkId>,
    found: &mut Vec<Vec<LinkId>>,
) {
    let here = *nodes.last().unwrap();
    if here == to {
        found.push(way.clone());
        return;
    }
    for link in &knowledge.machine.links {
        let next = if link.a == here { link.b } else { link.a };
        if (link.a == here || link.b == here) && !nodes.contains(&next) {
            nodes.push(next);
            way.push(link.id);
            ways(knowledge, nodes, to, way, found);
            way.pop();
            nodes.pop();
        }
    }
}

/// Bandwidth of the narrowest link; below any other where one is unknown.
fn width(knowledge: &Knowledge, way: &[LinkId]) -> f64 {
    let widths = way.iter().map(|&link| knowledge.link_bandwidth(link).unwrap_or(-1.0));
    widths.fold(f64::INFINITY, f64::min)
}

/// The best of all paths, compared one by one.
fn best_way(knowledge: &Knowledge, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
    let mut found = Vec::new();
    ways(knowledge, &mut vec![from], to, &mut Vec::new(), &mut found);
    found.into_iter().min_by(|a, b| {
        let wider = width(knowledge, b).total_cmp(&width(knowledge, a));
        a.len().cmp(&b.len()).then(wider).then(a.cmp(b))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_route_is_the_best_of_all_ways(
        nodes in 2u32..7,
        picks in proptest::collection::vec((0u32..7, 0u32..7, proptest::option::of(1u32..4)), 0..11),
    ) {
        let ends = |(a, b, width)| (a % nodes, b % nodes, width);
        let picks = picks.into_iter().map(ends).filter(|(a, b, _)| a != b);
        let picks: Vec<_> = picks.map(|(a, b, width)| (a.min(b), a.max(b), width)).collect();
        let knowledge = linked(nodes, &picks);
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            let (from, to) = (NodeId(from), NodeId(to));
            let found = knowledge.route(from, to);
            let best = best_way(&knowledge, from, to);
            prop_assert_eq!(found.as_ref().map(|route| route.links.clone()), best.clone());
            let (Some(found), Some(best)) = (found, best) else { continue };
            prop_assert_eq!(found.hops() + 1, found.nodes.len());
            prop_assert_eq!((found.nodes[0], *found.nodes.last().unwrap()), (from, to));
            let known = Some(width(&knowledge, &best)).filter(|&w| w > 0.0 && w.is_finite());
            prop_assert_eq!(found.narrowest.map(|(_, width)| width), known);
            if let Some((link, width)) = found.narrowest {
                prop_assert!(found.links.contains(&link));
                prop_assert_eq!(knowledge.link_bandwidth(link), Some(width));
            }
        }
    }

    #[test]
    fn assumed_links_connect_every_machine(
        nodes in 1usize..9,
        distances in proptest::collection::vec(11u32..40, 81),
    ) {
        let mut machine = linked(nodes as u32, &[]).machine;
        machine.distances = (0..nodes)
            .map(|a| (0..nodes).map(|b| if a == b { 10 } else { distances[a * 9 + b] }).collect())
            .collect();
        machine.links = links_assumed(&machine);
        let knowledge = Knowledge::from_machine(machine);
        for link in &knowledge.machine.links {
            prop_assert!(link.a < link.b);
        }
        for node in 0..nodes as u32 {
            prop_assert!(route(&knowledge, 0, node).is_some());
        }
    }
}

#[test]
fn opposite_corners_of_a_square_are_two_hops_apart_over_the_wider_side() {
    let square = [(0, 1, Some(10)), (0, 2, Some(12)), (1, 3, Some(12)), (2, 3, Some(11))];
    let knowledge = linked(4, &square);
    let found = route(&knowledge, 0, 3).unwrap();
    assert_eq!(links(&found), [1, 3]);
    assert_eq!(found.nodes, [NodeId(0), NodeId(2), NodeId(3)]);
    assert_eq!(found.narrowest, Some((LinkId(3), 11.0)));
    assert_eq!(found.hops(), 2);
}

#[test]
fn a_way_with_an_unknown_bandwidth_comes_after_those_that_are_known() {
    let square = [(0, 1, None), (0, 2, Some(1)), (1, 3, Some(99)), (2, 3, Some(1))];
    assert_eq!(links(&route(&linked(4, &square), 0, 3).unwrap()), [1, 3]);
    let unknown = route(&linked(4, &square[..1]), 1, 0).unwrap();
    assert_eq!((links(&unknown), unknown.narrowest), (vec![0], None));
}

#[test]
fn from_a_node_to_itself_there_is_nothing_to_cross() {
    let found = route(&linked(2, &[]), 1, 1).unwrap();
    assert_eq!((found.hops(), found.nodes, found.narrowest), (0, vec![NodeId(1)], None));
}

#[test]
fn without_links_and_to_unknown_nodes_there_is_no_route() {
    assert_eq!(route(&linked(2, &[]), 0, 1), None);
    assert_eq!(route(&linked(2, &[(0, 1, None)]), 0, 7), None);
    assert_eq!(route(&linked(2, &[(0, 1, None)]), 7, 7), None);
}

fn assumed(machine: &Machine) -> BTreeSet<(u32, u32)> {
    links_assumed(machine).iter().map(|link| (link.a.0, link.b.0)).collect()
}

#[test]
fn assumed_links_of_a_square_are_its_sides() {
    let expected = BTreeSet::from([(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert_eq!(assumed(&machines::four_nodes()), expected);
    assert!(links_assumed(&machines::four_nodes()).iter().all(|link| link.kind == "assumed"));
}

#[test]
fn memory_next_to_one_package_is_assumed_to_be_attached_to_it() {
    let mut machine = linked(3, &[]).machine;
    machine.distances = vec![vec![10, 21, 14], vec![21, 10, 24], vec![14, 24, 10]];
    assert_eq!(assumed(&machine), BTreeSet::from([(0, 1), (0, 2)]));
}

#[test]
fn no_links_are_assumed_between_thousands_of_nodes() {
    let machine = Machine::synthetic("node:257").unwrap();
    assert!(links_assumed(&machine).is_empty());
    assert_eq!(links_assumed(&Machine::synthetic("node:256").unwrap()).len(), 256 * 255 / 2);
}
