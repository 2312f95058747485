//! The choice of the variant, and the crossovers on the paper's machines.

use atoll_model::simulate::{Observed, Protocol, calibrate};
use atoll_primitives::aggregate::{DIRECTORY, Variant, WorkerNodes, Workload, choose, predict};
use atoll_testkit::machines;
use atoll_topology::{Knowledge, NodeId};

/// Li 2013, section 2: "3.2 GHz" links of two bytes at both edges; table 1; 61 and 99 GB/s.
const SECTION_2: Observed = Observed {
    link_raw: 12.8,
    link: 10.9,
    link_shared: 5.3,
    threads: 12,
    all_remote: 61.0,
    all_local: 99.0,
};

fn protocol() -> Protocol {
    let nehalem = atoll_formats::open("nehalem-ex-4").expect("a machine that ships");
    calibrate(&nehalem, &SECTION_2).expect("it was measured")
}

fn place(knowledge: &Knowledge, per_node: usize, protocol: Protocol) -> WorkerNodes<'_> {
    let nodes = knowledge.machine.nodes_with_cpus().map(|node| node.id);
    let workers: Vec<NodeId> = nodes.flat_map(|node| vec![node; per_node]).collect();
    WorkerNodes { knowledge, workers, protocol }
}

/// Section 4.3: rows of 8 + 8 bytes, a sum of 8 bytes for each group, a piece for each worker.
fn paper(piece_groups: usize, workers: usize) -> Workload {
    Workload {
        rows: 1_600_000_000,
        groups: piece_groups * workers,
        range: None,
        row_bytes: 16,
        group_bytes: 8,
        piece_groups,
        hot_share: 0.0,
    }
}

/// Minimum size of a piece for which the ring is faster than both kinds of migration, within 5 %.
fn crossover(machine: &str) -> f64 {
    let knowledge = atoll_formats::open(machine).expect("a machine that ships");
    let place = place(&knowledge, 8, protocol());
    let is_ahead = |groups: f64| {
        let work = paper(groups as usize, place.workers.len());
        let predicted = predict(&work, &place).expect("its links are known");
        predicted.migrate.max(predicted.migrate_copy) > predicted.ring
    };
    let mut groups = 4096.0;
    assert!(is_ahead(groups), "migration is ahead with small tables");
    while is_ahead(groups) && groups < 1e9 {
        groups *= 1.05;
    }
    groups
}

#[test]
fn the_crossover_of_figure_10_is_predicted_within_a_factor_of_two() {
    let found = crossover("nehalem-ex-4");
    let published = 512.0 * 1024.0;
    assert!((published / 2.0..published * 2.0).contains(&found), "{found}");
}

#[test]
fn migration_is_well_ahead_where_tables_fit_the_second_level_cache() {
    // Section 4.3: "less than 32k keys"; the difference is that of figure 6, 94 by 70.
    let knowledge = atoll_formats::open("nehalem-ex-4").expect("a machine that ships");
    let place = place(&knowledge, 8, protocol());
    let predicted = predict(&paper(1 << 14, 32), &place).expect("its links are known");
    let ahead = predicted.migrate / predicted.ring;
    assert!((94.0 / 70.0 * 0.9..94.0 / 70.0 * 1.1).contains(&ahead), "{predicted:?}");
}

/// The paper has 512k groups on eight sockets, too. The model predicts the crossover much sooner, at some 100k:
/// migrating workers fetch their tables over the four slow links between the chassis. It does not explain which
/// property of the real machine compensates for that.
#[test]
fn on_eight_sockets_the_crossover_is_predicted_too_early() {
    let found = crossover("intel-8");
    let published = 512.0 * 1024.0;
    assert!((published / 10.0..published / 4.0).contains(&found), "{found}");
}

#[test]
fn few_groups_are_local_and_many_are_not() {
    let knowledge = Knowledge::from_machine(machines::one_node());
    let place = place(&knowledge, 4, DIRECTORY);
    let work = |rows, groups, range| Workload {
        rows,
        groups,
        range,
        row_bytes: 16,
        group_bytes: 16,
        piece_groups: 1 << 13,
        hot_share: 0.0,
    };
    let cases = [
        (work(1 << 26, 1 << 10, None), Variant::Local, "1024 groups expected"),
        (work(1 << 26, 1 << 24, None), Variant::Ring, "one node"),
        (work(1 << 26, 1 << 15, Some(1 << 16)), Variant::Local, "cache"),
        (work(1 << 26, 1 << 24, Some(1 << 24)), Variant::Ring, "cache"),
        (work(1000, 1000, None), Variant::Local, "not worth dealing"),
    ];
    for (work, variant, why) in cases {
        let choice = choose(&work, &place);
        assert_eq!(choice.variant, variant, "{}", choice.reason);
        assert!(choice.reason.contains(why), "{}", choice.reason);
        assert!(choice.reason.starts_with(variant.name()), "{}", choice.reason);
    }
}

#[test]
fn on_many_nodes_the_reason_has_the_predictions() {
    let knowledge = atoll_formats::open("nehalem-ex-4").expect("a machine that ships");
    let place = place(&knowledge, 8, protocol());
    let work = Workload { hot_share: 0.0, ..paper(1 << 16, 32) };
    let choice = choose(&work, &place);
    assert!(choice.reason.contains("GB/s"), "{}", choice.reason);
    let hot = choose(&Workload { hot_share: 0.9, ..work }, &place);
    assert!(hot.variant == Variant::Ring && hot.reason.contains("one key"), "{}", hot.reason);
}

#[test]
fn every_machine_gets_a_choice_and_nothing_panics() {
    for machine in machines::all() {
        let knowledge = Knowledge::from_machine(machine);
        for per_node in [0, 1, 3] {
            let place = place(&knowledge, per_node, DIRECTORY);
            for groups in [0, 1, 1 << 20, usize::MAX] {
                let work = Workload { groups, ..paper(1 << 13, 1) };
                let choice = choose(&work, &place);
                assert_ne!(choice.variant, Variant::Auto, "{}", choice.reason);
            }
        }
    }
}

#[test]
fn variants_parse_from_their_names() {
    for variant in Variant::ALL {
        assert_eq!(variant.name().parse(), Ok(variant));
    }
    assert!("ringg".parse::<Variant>().unwrap_err().contains("migrate-copy"));
}
