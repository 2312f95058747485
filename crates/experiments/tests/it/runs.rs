//! Runs: on machines that are not there, and on this one.

use std::sync::Arc;

use atoll_experiments::{
    ArmOutcome, Arrangement, Custom, ExperimentManifest, ExperimentOptions, ExperimentResults,
    Kind, Operation, PartProgram, Plan, RunConditions, Which, plan, run, serve, table,
};
use atoll_placement::{Kernel, LiveKernel, Strategy};
use atoll_sys::{Root, SharedWords, block_signals};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine};

fn small() -> ExperimentOptions {
    ExperimentOptions {
        accesses: vec![5000],
        repetitions: 2,
        slices: 10,
        scale: 1024,
        ..ExperimentOptions::default()
    }
}

fn custom() -> Custom {
    Custom {
        groups: 2,
        threads: 2,
        sizes: vec![Bytes(100 << 20)],
        operations: vec![Operation::Read],
        migrations: vec![7],
        arrangements: vec![Arrangement::RoundRobin],
        placements: vec![Strategy::Aligned],
        processes: false,
    }
}

fn simulated(machine: Machine) -> (Arc<Machine>, Arc<SimulatedKernel>) {
    let machine = Arc::new(machine);
    (machine.clone(), Arc::new(SimulatedKernel::new(machine)))
}

fn ran(
    machine: &Arc<Machine>,
    kernel: Arc<dyn Kernel>,
    plan: &Plan,
    options: &ExperimentOptions,
) -> Vec<ArmOutcome> {
    let conditions = RunConditions { machine, kernel: &kernel, program: None };
    run(&conditions, plan, options, &mut |_, _| {})
}

#[test]
fn all_experiments_run_on_a_machine_of_four_nodes_and_the_pages_are_where_they_were_wanted() {
    let (machine, kernel) = simulated(machines::four_nodes());
    let which = Which::Experiments((1..=4).collect());
    let options = ExperimentOptions { accesses: vec![500], turn: 100, repetitions: 1, ..small() };
    let plan = plan(&machine, &which, &options).unwrap();
    let mut heard = Vec::new();
    let kernel: Arc<dyn Kernel> = kernel;
    let conditions = RunConditions { machine: &machine, kernel: &kernel, program: None };
    let outcomes = run(&conditions, &plan, &options, &mut |index, _| heard.push(index));
    assert_eq!(heard, (0..plan.arms.len()).collect::<Vec<_>>());
    for outcome in &outcomes {
        assert_eq!(outcome.failure, None, "{}", outcome.arm.title());
        assert_eq!(outcome.achieved.share(), Some(1.0), "{}", outcome.arm.title());
        assert!(outcome.ns.unwrap().min > 0.0);
        assert_eq!(outcome.series.len(), 10);
        assert_eq!(outcome.accesses, 500);
    }
}

#[test]
fn every_thread_is_bound_at_its_start_and_after_every_migration() {
    let (machine, kernel) = simulated(machines::two_nodes());
    let which = Which::Custom(custom());
    let options = ExperimentOptions { repetitions: 3, ..small() };
    let plan = plan(&machine, &which, &options).unwrap();
    let outcomes = ran(&machine, kernel.clone(), &plan, &options);
    assert_eq!(outcomes[0].failure, None);
    // Two arrays are touched by bound threads; four threads go to their start and on seven times.
    assert_eq!(kernel.calls("sched_setaffinity"), 2 + 4 * 3 * (1 + 7));
}

#[test]
fn a_refused_binding_ends_the_run_of_all_threads_with_the_reason() {
    let (machine, kernel) = simulated(machines::two_nodes());
    kernel.refuse("sched_setaffinity");
    let plan = plan(&machine, &Which::Custom(custom()), &small()).unwrap();
    let outcomes = ran(&machine, kernel, &plan, &small());
    let failure = outcomes[0].failure.as_ref().unwrap();
    assert!(failure.contains("sched_setaffinity"), "{failure}");
    assert!(outcomes[0].ns.is_none());
}

#[test]
fn memory_that_cannot_be_had_ends_the_run_of_all_groups_with_the_reason() {
    let (machine, kernel) = simulated(machines::two_nodes());
    kernel.fail("mmap");
    let plan = plan(&machine, &Which::Custom(custom()), &small()).unwrap();
    let outcomes = ran(&machine, kernel, &plan, &small());
    let failure = outcomes[0].failure.as_ref().unwrap();
    assert!(failure.starts_with("cannot allocate an array"), "{failure}");
}

#[test]
fn misplaced_pages_are_reported() {
    let (machine, kernel) = simulated(machines::two_nodes());
    kernel.refuse("mbind");
    let far = Custom { groups: 1, placements: vec![Strategy::Farthest], ..custom() };
    let plan = plan(&machine, &Which::Custom(far), &small()).unwrap();
    let outcomes = ran(&machine, kernel, &plan, &small());
    assert_eq!(outcomes[0].failure, None);
    assert_eq!(outcomes[0].achieved.share(), Some(0.0), "{:?}", outcomes[0].achieved);
}

#[test]
fn this_machine_runs_both_kinds_of_accesses_under_every_placement() {
    let machine = Arc::new(Machine::discover().unwrap());
    let kernel: Arc<dyn Kernel> = Arc::new(LiveKernel::new());
    let placements = [
        Strategy::Default,
        Strategy::Aligned,
        Strategy::Farthest,
        Strategy::Interleave,
        Strategy::Local,
    ];
    for kind in [Kind::Independent, Kind::Dependent] {
        let any = Custom { migrations: vec![0], placements: placements.to_vec(), ..custom() };
        let options = ExperimentOptions { kind, ..small() };
        let plan = plan(&machine, &Which::Custom(any), &options).unwrap();
        for outcome in ran(&machine, kernel.clone(), &plan, &options) {
            // Containers forbid policies; then the reason is reported.
            match &outcome.failure {
                Some(failure) => assert!(failure.contains("mempolicy"), "{failure}"),
                None => assert!(outcome.ns.unwrap().median > 0.0),
            }
        }
    }
}

#[test]
fn accesses_are_chosen_by_the_machines_speed_where_none_are_given() {
    let (machine, kernel) = simulated(machines::one_node());
    let one = Custom { groups: 1, threads: 1, migrations: vec![0], ..custom() };
    let options = ExperimentOptions { accesses: Vec::new(), repetitions: 1, ..small() };
    let plan = plan(&machine, &Which::Custom(one), &options).unwrap();
    let outcomes = ran(&machine, kernel, &plan, &options);
    assert!(outcomes[0].accesses >= 10_000);
}

#[test]
fn the_table_has_conditions_times_ratios_and_missing_values() {
    let (machine, kernel) = simulated(machines::four_nodes());
    let which = Which::Experiments([1].into());
    let plan = plan(&machine, &which, &small()).unwrap();
    let arms = ran(&machine, kernel, &plan, &small());
    let manifest = ExperimentManifest::new(&machine, &Root::live(), &small(), true);
    let notes = vec!["a note".to_owned()];
    let results = ExperimentResults { manifest, arms, rows: plan.rows, notes };
    let text = table(&results);
    for part in ["four_nodes", "Experiment 1: read 128 MiB", "remote (node 3)", "100.0 %", "a note"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("times are the emulator's"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let json = serde_json::to_string(&results).unwrap();
    // Times may differ in the last digit of sixteen; all else is the same.
    let back: ExperimentResults = serde_json::from_str(&json).unwrap();
    let arms = |results: &ExperimentResults| -> Vec<_> {
        results.arms.iter().map(|it| (it.arm.clone(), it.achieved.clone(), it.accesses)).collect()
    };
    assert_eq!(arms(&back), arms(&results));
    assert_eq!((back.manifest, back.rows), (results.manifest, results.rows));
}

#[test]
fn an_invalid_part_is_an_error() {
    let (machine, kernel) = simulated(machines::one_node());
    let kernel: Arc<dyn Kernel> = kernel;
    let shared = SharedWords::create(1).unwrap();
    for text in ["", "{}", "[1", "null"] {
        let error = serve(&machine, &kernel, shared.descriptor(), text).unwrap_err();
        assert!(error.to_string().contains("invalid part of a run"), "{error}");
    }
    let plan = plan(&machine, &Which::Custom(Custom { migrations: vec![0], ..custom() }), &small());
    let part = serde_json::json!({
        "arm": plan.unwrap().arms[0], "group": 99, "accesses": 1, "repetitions": 1, "slices": 1,
        "turn": 0, "seed": 1,
    });
    // A short file and a missing group are errors, without a wait.
    assert!(serve(&machine, &kernel, shared.descriptor(), &part.to_string()).is_err());
    let shared = SharedWords::create(1024).unwrap();
    let error = serve(&machine, &kernel, shared.descriptor(), &part.to_string()).unwrap_err();
    assert!(error.to_string().contains("unknown group 99"), "{error}");
}

#[test]
fn a_process_that_dies_or_cannot_be_started_fails_its_arm_only() {
    let (machine, kernel) = simulated(machines::two_nodes());
    let kernel: Arc<dyn Kernel> = kernel;
    let many = Custom { processes: true, ..custom() };
    let plan = plan(&machine, &Which::Custom(many), &small()).unwrap();
    for (command, reason) in [
        (vec!["sh", "-c", "echo broken >&2; exit 3"], "broken"),
        (vec!["/nowhere/at/all"], "No such file"),
    ] {
        let command = command.into_iter().map(Into::into).collect();
        let program = PartProgram { command, mask: block_signals(&[]).unwrap() };
        let conditions =
            RunConditions { machine: &machine, kernel: &kernel, program: Some(&program) };
        let outcomes = run(&conditions, &plan, &small(), &mut |_, _| {});
        let failure = outcomes[0].failure.as_ref().unwrap();
        assert!(failure.contains(reason), "{failure}");
    }
}
