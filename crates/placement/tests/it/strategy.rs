//! A table of strategies over shapes of machines; what is not in the table holds for all of them.

use atoll_placement::{ChunkHome, Homes, MemoryHome, Policy, Strategy, StrategyError};
use atoll_testkit::machines;
use atoll_topology::{CpuSet, Machine, NodeId, NodeSet};

fn nodes(list: &str) -> NodeSet {
    NodeSet::parse(list).unwrap()
}

fn parse(text: &str) -> Strategy {
    text.parse().unwrap()
}

fn every_strategy() -> Vec<Strategy> {
    let all = "default aligned ahead(1) ahead(3) farthest interleave spread subset(2) subset(99) \
               local preferred(0) weighted-interleave replicate";
    all.split_whitespace().map(parse).collect()
}

/// The homes of the first chunks that a worker on `node` loads.
fn chunk_homes(machine: &Machine, strategy: &str, node: u32, chunks: usize) -> Vec<u32> {
    let home = |chunk| match parse(strategy).chunk_home(machine, NodeId(node), chunk) {
        Ok(ChunkHome::Node(node)) => node.0,
        other => panic!("{strategy}: {other:?}"),
    };
    (0..chunks).map(home).collect()
}

#[test]
fn chunks_of_one_home_go_where_the_strategy_says() {
    let (one, two, square) = (machines::one_node(), machines::two_nodes(), machines::four_nodes());
    let (uneven, sparse) = (machines::eight_uneven_nodes(), machines::sparse_nodes());
    for (machine, strategy, worker, home) in [
        (&one, "aligned", 0, 0),
        (&one, "ahead(1)", 0, 0),
        (&one, "farthest", 0, 0),
        (&one, "preferred(0)", 0, 0),
        (&two, "aligned", 1, 1),
        (&two, "local", 1, 1),
        (&two, "ahead(1)", 1, 0),
        (&two, "ahead(2)", 1, 1),
        (&two, "farthest", 0, 1),
        (&two, "preferred(1)", 0, 1),
        // In the square the next node can be near or far; the farthest is always the opposite one.
        (&square, "ahead(1)", 3, 0),
        (&square, "ahead(65535)", 0, 3),
        (&square, "farthest", 0, 3),
        (&square, "farthest", 1, 2),
        (&square, "farthest", 3, 0),
        // Numbers with a gap: the next after node 2 is node 4.
        (&uneven, "ahead(1)", 2, 4),
        (&uneven, "ahead(1)", 8, 0),
        (&uneven, "farthest", 0, 8),
        // Node 5 has no cpus, and nodes 7 and 8 are equally far from it.
        (&uneven, "aligned", 5, 5),
        (&uneven, "farthest", 5, 7),
        // Node 6 has no memory: node 2 is the first of its nearest.
        (&uneven, "aligned", 6, 2),
        (&uneven, "local", 6, 2),
        (&uneven, "ahead(1)", 6, 4),
        (&uneven, "farthest", 6, 5),
        (&uneven, "preferred(6)", 0, 2),
        (&sparse, "ahead(1)", 8, 252),
        (&sparse, "ahead(5)", 8, 0),
    ] {
        let homes = chunk_homes(machine, strategy, worker, 3);
        assert_eq!(homes, [home; 3], "{}: {strategy} from node {worker}", machine.name);
    }
}

#[test]
fn farthest_homes_of_equal_distance_do_not_pile_up_on_one_node() {
    let machine = machines::sub_numa_clusters();
    let homes: Vec<u32> =
        (0..4).flat_map(|node| chunk_homes(&machine, "farthest", node, 1)).collect();
    assert_eq!(homes, [2, 2, 0, 0]);
    let machine = machines::two_nodes();
    assert_eq!(chunk_homes(&machine, "farthest", 1, 1), [0]);
}

#[test]
fn chunks_over_several_nodes_are_dealt_out_in_turn_regardless_of_the_loader() {
    let uneven = machines::eight_uneven_nodes();
    for worker in [0, 6] {
        for strategy in ["interleave", "spread"] {
            let homes = chunk_homes(&uneven, strategy, worker, 9);
            assert_eq!(homes, [0, 1, 2, 4, 5, 7, 8, 0, 1], "{strategy}");
        }
        assert_eq!(chunk_homes(&uneven, "subset(3)", worker, 5), [0, 1, 2, 0, 1]);
    }
    assert_eq!(chunk_homes(&machines::two_nodes(), "subset(99)", 0, 3), [0, 1, 0]);
}

#[test]
fn weighted_chunks_follow_the_memory_of_the_nodes() {
    let machine = machines::eight_uneven_nodes();
    let mut counts = std::collections::BTreeMap::new();
    for home in chunk_homes(&machine, "weighted-interleave", 0, 2 * 253) {
        *counts.entry(home).or_insert(0) += 1;
    }
    let expected = [(0, 128), (1, 64), (2, 32), (4, 16), (5, 256), (7, 8), (8, 2)];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn default_sets_no_policy_and_replicate_copies_everywhere() {
    for machine in machines::all() {
        let node = machine.nodes[0].id;
        let chunk = |strategy: Strategy| strategy.chunk_home(&machine, node, 7).unwrap();
        assert_eq!(chunk(Strategy::Default), ChunkHome::Unbound);
        assert_eq!(chunk(Strategy::Replicate), ChunkHome::CopyPerNode);
    }
}

#[test]
fn every_home_has_memory_and_every_bound_thread_has_cpus() {
    for machine in machines::all() {
        let with_memory: NodeSet = machine.nodes_with_memory().map(|node| node.id).collect();
        for strategy in every_strategy() {
            for node in &machine.nodes {
                let name = format!("{}: {strategy} for node {}", machine.name, node.id);
                for chunk in [0, 1, usize::MAX] {
                    match strategy.chunk_home(&machine, node.id, chunk).unwrap() {
                        ChunkHome::Node(home) => assert!(with_memory.contains(home), "{name}"),
                        ChunkHome::Unbound | ChunkHome::CopyPerNode => {}
                    }
                }
                let homes = strategy.home_of(&machine, node.id).unwrap();
                assert!(homes.cpus.is_none_or(|cpus| !cpus.is_empty()), "{name}");
                assert!(nodes_of(&homes.memory).is_subset(&with_memory), "{name}");
            }
        }
    }
}

fn nodes_of(memory: &MemoryHome) -> NodeSet {
    match memory {
        MemoryHome::CopyPerNode(nodes)
        | MemoryHome::Once(
            Policy::Bind(nodes) | Policy::Interleave(nodes) | Policy::WeightedInterleave(nodes),
        ) => nodes.clone(),
        MemoryHome::Once(Policy::Preferred(node)) => NodeSet::from_iter([*node]),
        MemoryHome::Once(Policy::Default | Policy::Local) => NodeSet::new(),
    }
}

#[test]
fn instances_get_the_threads_and_policy_of_the_papers() {
    let machine = machines::four_nodes();
    let all = || nodes("0-3");
    for (strategy, cpus, policy) in [
        ("default", None, Policy::Default),
        ("aligned", Some("4-7"), Policy::Preferred(NodeId(1))),
        ("ahead(1)", Some("4-7"), Policy::Preferred(NodeId(2))),
        ("farthest", Some("4-7"), Policy::Preferred(NodeId(2))),
        ("interleave", Some("4-7"), Policy::Interleave(all())),
        ("spread", None, Policy::Interleave(all())),
        ("subset(2)", Some("0-7"), Policy::Interleave(nodes("0-1"))),
        ("local", None, Policy::Local),
        ("preferred(3)", None, Policy::Preferred(NodeId(3))),
        ("weighted-interleave", None, Policy::WeightedInterleave(all())),
    ] {
        let cpus = cpus.map(|list| CpuSet::parse(list).unwrap());
        let homes = parse(strategy).home_of(&machine, NodeId(1)).unwrap();
        assert_eq!(homes, Homes { cpus, memory: MemoryHome::Once(policy) }, "{strategy}");
    }
    let homes = Strategy::Replicate.home_of(&machine, NodeId(0)).unwrap();
    assert_eq!(homes.memory, MemoryHome::CopyPerNode(all()));
}

#[test]
fn memory_nodes_borrow_the_cpus_of_the_nearest_node_that_has_some() {
    let machine = machines::sparse_nodes();
    let cpus = |node: u32| Some(machine.node(NodeId(node)).unwrap().cpus.clone());
    let homes = Strategy::Aligned.home_of(&machine, NodeId(254)).unwrap();
    assert_eq!(homes.memory, MemoryHome::Once(Policy::Preferred(NodeId(254))));
    assert_eq!(homes.cpus, cpus(0));
}

#[test]
fn a_node_that_is_not_there_is_an_error_that_lists_those_that_are() {
    let machine = machines::eight_uneven_nodes();
    for strategy in every_strategy() {
        let node = NodeId(3);
        let expected = StrategyError::UnknownNode { node, known: nodes("0-2,4-8") };
        assert_eq!(strategy.chunk_home(&machine, node, 0), Err(expected.clone()), "{strategy}");
        assert_eq!(strategy.home_of(&machine, node), Err(expected), "{strategy}");
    }
    let error = Strategy::Preferred(NodeId(9)).chunk_home(&machine, NodeId(0), 0).unwrap_err();
    assert!(error.to_string().contains("node 9 does not exist; nodes of this machine: 0-2,4-8"));
}

#[test]
fn a_machine_without_usable_memory_is_an_error_not_a_panic() {
    let mut machine = machines::one_node();
    machine.nodes[0].memory = atoll_topology::Bytes(0);
    for strategy in every_strategy() {
        match strategy {
            Strategy::Default | Strategy::Replicate => {}
            _ => {
                let error = strategy.chunk_home(&machine, NodeId(0), 0).unwrap_err();
                assert!(error.to_string().contains("has memory"), "{strategy}: {error}");
            }
        }
    }
    machine.nodes.clear();
    assert!(Strategy::Aligned.home_of(&machine, NodeId(0)).is_err());
}
