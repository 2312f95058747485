//! The facts on machines of every shape.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_measure::{MeasureOptions, MeasureReport, MeasurementKind, estimate, measure};
use atoll_placement::Kernel;
use atoll_testkit::machines;
use atoll_topology::{Fact, Machine, NodeId, Quantity, Source, Subject};

use crate::support::{World, brief, facts_of, noted};

/// Paths of these facts.
fn paths(facts: &[&Fact]) -> BTreeSet<(NodeId, NodeId)> {
    let path = |fact: &&Fact| match fact.subject {
        Subject::Path { from, to } => (from, to),
        other => panic!("{other} is not a path"),
    };
    facts.iter().map(path).collect()
}

/// Paths from every node with cpus to every node with memory.
fn all_paths(machine: &Machine) -> BTreeSet<(NodeId, NodeId)> {
    let to = |from: NodeId| machine.nodes_with_memory().map(move |to| (from, to.id));
    machine.nodes_with_cpus().flat_map(|from| to(from.id)).collect()
}

fn assert_well_formed(report: &MeasureReport) {
    let mut seen = BTreeSet::new();
    for fact in &report.facts {
        assert!(fact.value.is_finite() && fact.value > 0.0, "{fact:?}");
        assert_eq!(fact.source, Source::Measured);
        assert!(fact.at.is_some());
        if let Some(spread) = fact.spread {
            assert!(spread.min <= fact.value && fact.value <= spread.max, "{fact:?}");
        }
        let load = fact.conditions.load.map(f64::to_bits);
        assert!(seen.insert((fact.subject, fact.quantity, fact.conditions.threads, load)));
    }
}

#[test]
fn every_path_of_every_machine_has_a_latency() {
    for machine in machines::all() {
        let world = World::new(machine);
        let report = world.measure(&brief(&[MeasurementKind::Latency]));
        assert_well_formed(&report);
        let facts = facts_of(&report, Quantity::Latency);
        assert_eq!(paths(&facts), all_paths(&world.machine), "{:?}", report.notes);
        assert_eq!(facts.len(), report.facts.len());
        assert_eq!(world.kernel.mapped().0, 0);
    }
}

#[test]
fn every_path_has_bandwidths_by_threads_and_the_threads_that_saturate_it() {
    let world = World::new(machines::four_nodes());
    let report =
        world.measure(&MeasureOptions { thorough: true, ..brief(&[MeasurementKind::Bandwidth]) });
    assert_well_formed(&report);
    for quantity in [Quantity::ReadBandwidth, Quantity::WriteBandwidth, Quantity::CopyBandwidth] {
        let facts = facts_of(&report, quantity);
        assert_eq!(paths(&facts), all_paths(&world.machine));
        for path in paths(&facts) {
            let at = |fact: &&&Fact| fact.subject == Subject::Path { from: path.0, to: path.1 };
            let threads: BTreeSet<_> =
                facts.iter().filter(at).map(|fact| fact.conditions.threads).collect();
            assert!(threads.is_superset(&[Some(1), Some(2), Some(4)].into()), "{threads:?}");
        }
    }
    let saturation = facts_of(&report, Quantity::SaturationThreads);
    assert_eq!(paths(&saturation), all_paths(&world.machine));
    assert!(saturation.iter().all(|fact| (1.0..=4.0).contains(&fact.value)));
}

#[test]
fn loads_and_cross_traffic_are_conditions_of_their_facts() {
    let world = World::new(machines::two_nodes());
    let report = world.measure(&brief(&[MeasurementKind::Loaded, MeasurementKind::CrossTraffic]));
    assert_well_formed(&report);
    let loaded = facts_of(&report, Quantity::LoadedLatency);
    assert_eq!(loaded.len(), 4 * 4, "{:?}", report.notes);
    let crossed = facts_of(&report, Quantity::CrossTrafficBandwidth);
    assert_eq!(paths(&crossed), all_paths(&world.machine));
    assert!(crossed.iter().all(|fact| fact.conditions.threads == Some(8)));
    assert!(loaded.iter().chain(&crossed).all(|fact| fact.conditions.load.unwrap() > 0.0));
}

#[test]
fn cpus_are_paired_up_to_the_bound_with_the_smaller_first() {
    let world = World::new(machines::four_nodes());
    let report = world.measure(&brief(&[MeasurementKind::CoreToCore]));
    assert_well_formed(&report);
    let pairs: Vec<_> = report.facts.iter().map(|fact| fact.subject.to_string()).collect();
    // 3 of 16 cpus: no more than 3 pairs.
    assert_eq!(pairs, ["cpus 0-5", "cpus 0-10", "cpus 5-10"], "{:?}", report.notes);
    assert!(noted(&report, "3 of 16 cpus"));
}

#[test]
fn progress_counts_every_step_once_and_ends_at_the_total() {
    let world = World::new(machines::eight_uneven_nodes());
    let kernel: Arc<dyn Kernel> = world.kernel.clone();
    let options = brief(&[MeasurementKind::Latency]);
    let mut told = Vec::new();
    measure(&world.machine, &kernel, &options, &mut |progress| told.push(progress)).unwrap();
    assert!(told.is_sorted_by_key(|progress| progress.done));
    assert_eq!((told[0].done, told[0].next.as_str()), (0, "memory of node 0"));
    let last = &told[told.len() - 1];
    assert_eq!((last.done, last.total, last.next.as_str()), (49, 49, "done"));
    assert!(!estimate(&world.machine, &options).unwrap().is_zero());
}

#[test]
fn the_calling_thread_stays_free() {
    let world = World::new(machines::two_nodes());
    let before = world.kernel.thread_cpus().unwrap();
    world.measure(&brief(&MeasurementKind::ALL));
    assert_eq!(world.kernel.thread_cpus().unwrap(), before);
}
