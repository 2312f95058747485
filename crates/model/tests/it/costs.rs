//! Facts take precedence over assumptions, and every figure has its origin.

use atoll_model::{Assumptions, Costs};
use atoll_testkit::machines;
use atoll_topology::{
    Conditions, Fact, Knowledge, Machine, Nanos, NodeId, Quantity, Source, Subject,
};

use crate::shipped;

fn path(from: u32, to: u32) -> Subject {
    Subject::Path { from: NodeId(from), to: NodeId(to) }
}

fn costs(known: &Knowledge) -> Costs {
    Costs::from_knowledge(known, &Assumptions::default()).unwrap()
}

fn latency(costs: &Costs, from: u32, to: u32) -> f64 {
    costs.memory(NodeId(from), NodeId(to)).unwrap().0
}

#[test]
fn a_latency_is_the_fact_else_scaled_by_distance_else_assumed() {
    let mut known = Knowledge::from_machine(machines::four_nodes());
    let fact = |subject, value| Fact::new(subject, Quantity::Latency, value, Source::Measured, "m");
    known.facts = vec![fact(path(0, 0), 80.0), fact(path(0, 1), 131.0)];
    let told = costs(&known);
    assert_eq!(latency(&told, 0, 0), 80.0);
    assert_eq!(latency(&told, 0, 1), 131.0, "told");
    assert_eq!(latency(&told, 0, 3), 80.0 * 3.1, "distance 31");
    assert_eq!(latency(&told, 1, 1), 90.0, "assumed");
    assert_eq!(latency(&told, 1, 0), 90.0 * 2.1, "assumed and distance 21");
    let unrated = Machine { distances_source: Source::Assumed, ..known.machine.clone() };
    let unrated = costs(&Knowledge { machine: unrated, ..known });
    assert_eq!(latency(&unrated, 1, 0), 90.0 * 1.6, "distances say nothing");
    assert_eq!(latency(&unrated, 0, 1), 131.0);
}

#[test]
fn the_most_trusted_idle_latency_counts() {
    let mut known = Knowledge::from_machine(machines::two_nodes());
    let fact = |value, source, threads, load| Fact {
        conditions: Conditions { threads, load },
        ..Fact::new(path(0, 1), Quantity::Latency, value, source, "test")
    };
    known.facts = vec![
        fact(1.0, Source::Assumed, None, None),
        fact(2.0, Source::Measured, Some(8), None),
        fact(3.0, Source::Measured, None, Some(5.0)),
        fact(4.0, Source::Declared, Some(1), None),
        fact(5.0, Source::Synthetic, None, None),
        fact(-7.0, Source::Measured, None, None),
        fact(0.0, Source::Measured, None, None),
    ];
    assert_eq!(latency(&costs(&known), 0, 1), 4.0);
}

#[test]
fn a_controller_has_its_own_nodes_bandwidth_and_one_without_cpus_the_best_of_the_others() {
    let mut known = Knowledge::from_machine(machines::eight_uneven_nodes());
    let fact = |from, to, value, threads| Fact {
        conditions: Conditions { threads: Some(threads), load: None },
        ..Fact::new(path(from, to), Quantity::ReadBandwidth, value, Source::Measured, "test")
    };
    known.facts = vec![
        fact(0, 0, 8.0, 1),
        fact(0, 0, 40.0, 4),
        fact(1, 0, 99.0, 4),
        fact(0, 5, 11.0, 4),
        fact(1, 5, 12.0, 4),
    ];
    let costs = costs(&known);
    assert_eq!(costs.bandwidth(NodeId(0)), Some(40.0), "its own, of as many threads as it takes");
    assert_eq!(costs.bandwidth(NodeId(5)), Some(12.0));
    assert_eq!(costs.bandwidth(NodeId(7)), Some(20.0), "assumed");
    assert_eq!(costs.bandwidth(NodeId(3)), None, "no such node");
    assert_eq!(costs.memory(NodeId(0), NodeId(3)), None);
}

#[test]
fn figures_of_one_kind_source_and_origin_are_one_line_with_their_range() {
    let lines = shipped("symas-8").figures().to_vec();
    let remote: Vec<_> = lines.iter().filter(|l| l.name == "latency of remote memory").collect();
    let [line] = remote[..] else { panic!("{remote:?}") };
    assert_eq!((line.least, line.most), (90.0 * 16.0 / 10.0, 90.0 * 22.0 / 10.0), "by distance");
    assert_eq!((line.unit.as_str(), line.source), ("ns", Source::Assumed));
    assert!(lines.iter().all(|line| !line.origin.is_empty()), "{lines:?}");
    assert!(lines.len() < 20, "{lines:?}");
}

#[test]
fn the_machine_of_kiefer_has_the_latencies_of_its_platform_and_says_that_they_are_assumed() {
    let costs = shipped("westmere-ex-4");
    assert_eq!(costs.memory(NodeId(2), NodeId(2)), Some(Nanos(150.0)));
    assert_eq!(costs.memory(NodeId(2), NodeId(0)), Some(Nanos(185.0)));
    assert_eq!(costs.bandwidth(NodeId(3)), Some(24.7));
    let figure = |name: &str| costs.figures().iter().find(|it| it.name == name).unwrap();
    assert_eq!(figure("latency of local memory").source, Source::Assumed);
    assert!(figure("latency of local memory").origin.contains("Li 2013"));
    assert_eq!(figure("bandwidth of a link, one direction").source, Source::Declared);
    assert_eq!(figure("clock frequency").least, 2.13);
}
