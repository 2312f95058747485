//! Places of threads and arrays on every fake machine.

use std::collections::BTreeSet;

use atoll_experiments::{
    Arm, Arrangement, By, Custom, ExperimentOptions, Home, Kind, Operation, Plan, PlanError, Which,
    plan,
};
use atoll_placement::Strategy;
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine, NodeId};

fn experiments(numbers: &[u8]) -> Which {
    Which::Experiments(numbers.iter().copied().collect())
}

fn planned(machine: &Machine, number: u8) -> Plan {
    plan(machine, &experiments(&[number]), &ExperimentOptions::default()).unwrap()
}

fn custom() -> Custom {
    Custom {
        groups: 1,
        threads: 1,
        sizes: vec![Bytes(1 << 20)],
        operations: vec![Operation::Read],
        migrations: vec![0],
        arrangements: vec![Arrangement::CoLocated],
        placements: vec![Strategy::Aligned],
        processes: false,
    }
}

/// Nodes of the cpus at the start of an arm's threads, by group.
fn nodes(machine: &Machine, arm: &Arm) -> Vec<Vec<u32>> {
    let node = |way: &atoll_experiments::CpuRoute| machine.cpu(way.at(0).unwrap()).unwrap().node.0;
    arm.groups.iter().map(|group| group.threads.iter().map(node).collect()).collect()
}

#[test]
fn every_plan_uses_only_cpus_and_nodes_that_there_are() {
    for machine in machines::all() {
        let plan =
            plan(&machine, &experiments(&[1, 2, 3, 4]), &ExperimentOptions::default()).unwrap();
        for arm in &plan.arms {
            for group in &arm.groups {
                assert!(!group.threads.is_empty());
                let ways = group.threads.iter().flat_map(|way| &way.0);
                assert!(ways.into_iter().all(|cpu| machine.cpu(*cpu).is_some()));
                let Home::On(home) = group.home else { panic!("{:?}", group.home) };
                assert!(machine.node(home).unwrap().memory.0 > 0, "{}: {home}", machine.name);
            }
        }
    }
}

#[test]
fn every_arm_has_a_region_of_its_own_and_a_row() {
    for machine in machines::all() {
        let plan =
            plan(&machine, &experiments(&[1, 2, 3, 4]), &ExperimentOptions::default()).unwrap();
        let regions: BTreeSet<u8> = plan.arms.iter().filter_map(|arm| arm.region).collect();
        assert_eq!(regions.len(), plan.arms.len().min(64), "{}", machine.name);
        let mut rows: Vec<usize> = plan.rows.iter().map(|row| row.baseline).collect();
        rows.extend(plan.rows.iter().flat_map(|row| &row.contrasts));
        rows.sort_unstable();
        assert_eq!(rows, (0..plan.arms.len()).collect::<Vec<_>>());
    }
}

#[test]
fn experiment_1_reads_and_writes_its_own_memory_and_the_farthest() {
    let plan = planned(&machines::four_nodes(), 1);
    let arms: Vec<_> =
        plan.arms.iter().map(|arm| (arm.operation, arm.groups[0].home.clone())).collect();
    let home = |node| Home::On(NodeId(node));
    assert_eq!(
        arms,
        [
            (Operation::Read, home(0)),
            (Operation::Read, home(3)),
            (Operation::Write, home(0)),
            (Operation::Write, home(3))
        ]
    );
    assert!(plan.arms.iter().all(|arm| arm.size == Bytes(128 << 20) && arm.migrations == 0));
}

#[test]
fn experiment_2_sends_one_thread_round_all_nodes() {
    let machine = machines::four_nodes();
    let plan = planned(&machine, 2);
    assert_eq!(plan.arms.len(), 8);
    for arm in &plan.arms {
        assert_eq!(arm.threads(), 1);
        let way = &arm.groups[0].threads[0];
        let round: Vec<u32> =
            (0..5).map(|i| machine.cpu(way.at(i).unwrap()).unwrap().node.0).collect();
        assert_eq!(round, [0, 1, 2, 3, 0]);
    }
}

#[test]
fn experiment_3_has_at_every_step_one_thread_on_each_node() {
    for machine in machines::all() {
        let count = machine.nodes_with_cpus().count();
        let plan = planned(&machine, 3);
        for arm in plan.arms.iter().filter(|arm| arm.migrations > 0) {
            assert_eq!(arm.groups.len(), count);
            assert!(!arm.shares_cache);
            for step in 0..=arm.migrations.min(10) {
                let node = |group: &atoll_experiments::Group| {
                    let cpu = group.threads[0].at(u64::from(step)).unwrap();
                    machine.cpu(cpu).unwrap().node
                };
                let nodes: BTreeSet<NodeId> = arm.groups.iter().map(node).collect();
                assert_eq!(nodes.len(), count, "{} step {step}", machine.name);
            }
        }
    }
}

#[test]
fn experiment_3_has_the_migrations_of_figure_2_where_it_is_drawn() {
    let plan = planned(&machines::two_nodes(), 3);
    let counts = |name: &str| -> Vec<u32> {
        let arms = plan.arms.iter().filter(|arm| arm.name.ends_with(name));
        arms.map(|arm| arm.migrations).collect()
    };
    assert_eq!(counts("read 16 MiB"), [0, 3, 50, 100, 150, 200]);
    assert_eq!(counts("write 128 MiB"), [0, 100]);
}

#[test]
fn experiment_4_puts_groups_on_their_node_or_one_thread_of_each_on_every_node() {
    let machine = machines::four_nodes();
    let plan = planned(&machine, 4);
    assert_eq!(plan.arms.len(), 8);
    let co_located = nodes(&machine, &plan.arms[0]);
    let round_robin = nodes(&machine, &plan.arms[1]);
    for group in 0..4 {
        assert_eq!(co_located[group], [group as u32; 4]);
        assert_eq!(round_robin[group], [0, 1, 2, 3]);
    }
    for arm in &plan.arms {
        assert!(arm.processes && arm.shares_cache);
        let cpus: Vec<_> =
            arm.groups.iter().flat_map(|group| &group.threads).map(|way| way.at(0)).collect();
        let distinct: BTreeSet<_> = cpus.iter().collect();
        assert_eq!(distinct.len(), 16, "sixteen threads on sixteen cpus");
    }
}

#[test]
fn one_node_runs_what_it_can_and_names_what_needs_two() {
    let machine = machines::one_node();
    let plan = plan(&machine, &experiments(&[1, 2, 3]), &ExperimentOptions::default()).unwrap();
    assert!(plan.arms.iter().all(|arm| arm.migrations == 0 && !arm.setting.contains("remote")));
    let notes = plan.notes.join("\n");
    for part in ["experiment 1: remote", "experiment 2: migration", "experiment 3", "atoll lab run"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn experiment_4_runs_between_the_domains_of_a_single_node() {
    let mut machine = machines::one_node();
    if machine.domains.len() < 2 {
        machine = Machine::synthetic("node:1(memory=1GiB) l3:2(size=8MiB) core:2 pu:1").unwrap();
    }
    let plan = planned(&machine, 4);
    assert!(plan.notes.iter().any(|note| note.contains("by domain")), "{:?}", plan.notes);
    assert_eq!(plan.arms[0].groups.len(), machine.domains.len());
}

#[test]
fn experiments_that_cannot_run_are_an_error_that_names_the_lab() {
    let machine = Machine::synthetic("node:1(memory=1GiB) core:2 pu:1").unwrap();
    let error = plan(&machine, &experiments(&[4]), &ExperimentOptions::default()).unwrap_err();
    assert!(matches!(&error, PlanError::NotHere(message) if message.contains("atoll lab run")));
    let moved = Custom { migrations: vec![1], ..custom() };
    let error = plan(&machine, &Which::Custom(moved), &ExperimentOptions::default()).unwrap_err();
    assert!(matches!(&error, PlanError::NotHere(message) if message.contains("two nodes")));
}

#[test]
fn the_scale_divides_arrays_and_never_to_nothing() {
    let machine = machines::two_nodes();
    let options = ExperimentOptions { scale: 16, ..ExperimentOptions::default() };
    let plan16 = plan(&machine, &experiments(&[1]), &options).unwrap();
    assert_eq!(plan16.arms[0].size_run, Bytes(8 << 20));
    let tiny = Custom { sizes: vec![Bytes(3)], ..custom() };
    let plan3 = plan(&machine, &Which::Custom(tiny), &options).unwrap();
    assert_eq!(plan3.arms[0].size_run, Bytes(1));
}

#[test]
fn a_custom_run_has_an_arm_for_every_combination() {
    let machine = machines::four_nodes();
    let wide = Custom {
        groups: 3,
        threads: 2,
        sizes: vec![Bytes(64), Bytes(128)],
        operations: vec![Operation::Read, Operation::Write],
        migrations: vec![0, 5],
        arrangements: vec![Arrangement::CoLocated, Arrangement::RoundRobin],
        placements: vec![Strategy::Aligned, Strategy::Interleave, Strategy::Default],
        processes: true,
    };
    let plan = plan(&machine, &Which::Custom(wide), &ExperimentOptions::default()).unwrap();
    assert_eq!(plan.arms.len(), 2 * 2 * 2 * 2 * 3);
    assert_eq!(plan.rows.len(), 4);
    let titles: BTreeSet<String> = plan.arms.iter().map(Arm::title).collect();
    assert_eq!(titles.len(), 48);
    let over: Vec<NodeId> = (0..4).map(NodeId).collect();
    assert!(plan.arms.iter().any(|arm| arm.groups[2].home == Home::Over(over.clone())));
}

#[test]
fn threads_are_dealt_out_by_domain_when_asked() {
    let machine = machines::two_nodes();
    let spread = Custom { threads: 4, arrangements: vec![Arrangement::RoundRobin], ..custom() };
    let options = ExperimentOptions { by: Some(By::Domain), ..ExperimentOptions::default() };
    let plan = plan(&machine, &Which::Custom(spread), &options).unwrap();
    let domain =
        |way: &atoll_experiments::CpuRoute| machine.cpu(way.at(0).unwrap()).unwrap().domain.0;
    let domains: Vec<u32> = plan.arms[0].groups[0].threads.iter().map(domain).collect();
    assert_eq!(domains, [0, 1, 2, 3]);
}

#[test]
fn meaningless_numbers_are_refused_with_a_reason() {
    let machine = machines::two_nodes();
    let refused = |which: Which, options: ExperimentOptions| {
        let error = plan(&machine, &which, &options).unwrap_err();
        assert!(matches!(error, PlanError::Options(_)), "{error}");
        error.to_string()
    };
    let all = || experiments(&[1]);
    let default = ExperimentOptions::default;
    assert!(refused(experiments(&[5]), default()).contains("unknown experiment 5"));
    for options in [
        ExperimentOptions { scale: 0, ..default() },
        ExperimentOptions { repetitions: 0, ..default() },
        ExperimentOptions { repetitions: u32::MAX, ..default() },
        ExperimentOptions { slices: u32::MAX, ..default() },
        ExperimentOptions { accesses: vec![u64::MAX], ..default() },
        ExperimentOptions { accesses: vec![1, 2], ..default() },
        ExperimentOptions { migrations: Some(vec![u32::MAX]), ..default() },
    ] {
        refused(all(), options);
    }
    for custom in [
        Custom { groups: 0, ..custom() },
        Custom { threads: 0, ..custom() },
        Custom { groups: 4096, threads: 4096, ..custom() },
        Custom { sizes: vec![Bytes(u64::MAX)], ..custom() },
        Custom { placements: vec![Strategy::Replicate], ..custom() },
    ] {
        refused(Which::Custom(custom), default());
    }
    let writes = Custom { operations: vec![Operation::Write], ..custom() };
    let dependent = ExperimentOptions { kind: Kind::Dependent, ..default() };
    assert!(refused(Which::Custom(writes), dependent).contains("reads"));
}

#[test]
fn dependent_experiments_are_those_that_read() {
    let options = ExperimentOptions { kind: Kind::Dependent, ..ExperimentOptions::default() };
    let plan = plan(&machines::two_nodes(), &experiments(&[1, 2, 3, 4]), &options).unwrap();
    assert!(plan.arms.iter().all(|arm| arm.operation == Operation::Read));
    assert!(plan.notes.iter().any(|note| note.contains("a store has nothing")));
}

#[test]
fn a_nest_of_nodes_without_memory_or_cpus_is_planned_all_the_same() {
    let machine = machines::sparse_nodes();
    let far =
        Custom { groups: 2, placements: vec![Strategy::Farthest, Strategy::Ahead(1)], ..custom() };
    let plan = plan(&machine, &Which::Custom(far), &ExperimentOptions::default()).unwrap();
    assert_eq!(plan.arms.len(), 2);
}
