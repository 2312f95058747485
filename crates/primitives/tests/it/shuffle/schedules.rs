//! Visits of schedules.

use std::collections::BTreeSet;

use atoll_primitives::shuffle::{Moved, Schedule};
use atoll_runtime::WorkerId;
use atoll_testkit::machines;
use atoll_topology::{Machine, NodeId};
use proptest::prelude::*;

use super::{declared, machine, ring, shuffles, workers};

/// Each pair of worker and source occurs once, each worker once in a step, at the right place.
#[track_caller]
fn check(machine: &Machine, nodes: &[NodeId]) {
    for shuffle in shuffles() {
        let schedule = Schedule::new(machine, nodes.to_vec(), shuffle);
        let count = schedule.workers();
        let mut met = BTreeSet::new();
        for step in 0..count {
            let visits: Vec<_> = schedule.step(step).collect();
            for (visit, actor) in visits.iter().zip((0..).map(WorkerId)) {
                assert_eq!((visit.step, visit.actor), (step, actor));
                met.insert((visit.worker, visit.source));
                let place = match shuffle.moved {
                    Moved::Pulled => visit.worker,
                    Moved::Pushed | Moved::Threads => visit.source,
                };
                assert_eq!(visit.place, place);
            }
            if shuffle.order == super::Order::Ring {
                let places: BTreeSet<_> = visits.iter().map(|visit| visit.place).collect();
                assert_eq!(places.len(), count, "in a ring no place is taken twice in a step");
            }
        }
        assert_eq!(met.len(), count * count, "{shuffle} of {count} on {}", machine.name);
    }
}

/// A worker on each cpu.
fn all_cpus(machine: &Machine) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = machine.cpus.iter().map(|cpu| cpu.node).collect();
    nodes.sort();
    nodes
}

#[test]
fn every_piece_is_delivered_exactly_once_on_machines_of_all_shapes() {
    for machine in machines::all() {
        let nodes = all_cpus(&machine);
        check(&machine, &nodes);
        check(&machine, &nodes[..1]);
        check(&machine, &[&nodes[..], &nodes[..1]].concat());
    }
    for name in ["nehalem-ex-4", "intel-4-square", "intel-8", "symas-8"] {
        let machine = declared(name);
        let counts = vec![2; machine.nodes.len()];
        check(&machine, &workers(&counts));
    }
}

#[test]
fn the_ring_of_an_even_connected_machine_is_the_papers() {
    let (sockets, threads) = (4, 8);
    let schedule =
        Schedule::new(&declared("nehalem-ex-4"), workers(&[threads; 4]), ring(Moved::Pulled));
    let count = sockets * threads;
    for k in 0..count {
        for t in 0..count {
            let m = (k + t) % count;
            let source = (m % sockets) * threads + m / sockets;
            assert_eq!(schedule.visit(WorkerId(k as u32), t).source, WorkerId(source as u32));
        }
    }
}

#[test]
fn random_orders_are_drawn_from_their_seed_and_differ_between_workers() {
    let machine = machine(&[8]);
    let others = |seed, worker| -> Vec<_> {
        let order = super::Order::Random(seed);
        let shuffle = super::Shuffle { order, ..ring(Moved::Pulled) };
        let schedule = Schedule::new(&machine, workers(&[8]), shuffle);
        schedule.turns(WorkerId(worker)).map(|visit| visit.source).collect()
    };
    assert_eq!(others(1, 3), others(1, 3));
    assert_ne!(others(1, 3), others(2, 3));
    assert_ne!(others(1, 3), others(1, 4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_piece_is_delivered_exactly_once_for_any_workers(
        counts in proptest::collection::vec(0_usize..7, 1..7),
    ) {
        let counts: Vec<usize> = [&[1], &counts[..]].concat();
        let cpus: Vec<u32> = counts.iter().map(|_| 1).collect();
        check(&machine(&cpus), &workers(&counts));
    }
}
