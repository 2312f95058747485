//! Refused calls, full nodes, odd options and cancelling: notes instead of wrong figures.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_measure::{MeasureError, MeasureOptions, MeasurementKind, estimate, measure};
use atoll_placement::Kernel;
use atoll_testkit::machines;
use atoll_topology::{
    Bytes, CpuTimeLimit, Machine, MachineBuilder, MemoryLimit, NodeId, NodeShape, Quantity,
};

use crate::support::{World, brief, facts_of, noted};

#[test]
fn a_full_node_is_noted_and_the_others_are_measured() {
    let world = World::new(machines::two_nodes());
    world.kernel.set_free(NodeId(1), Bytes(3 << 20));
    let report = world.measure(&brief(&[MeasurementKind::Latency, MeasurementKind::Bandwidth]));
    assert!(noted(&report, "node 1: 3.0 MiB free"), "{:?}", report.notes);
    assert_eq!(facts_of(&report, Quantity::Latency).len(), 2);
    assert_eq!(world.kernel.node_free(NodeId(1)), Ok(Bytes(3 << 20)));
}

#[test]
fn memory_that_is_found_elsewhere_gives_no_figure() {
    let world = World::new(machines::four_nodes());
    // Without mbind and without binding threads, the first touch comes from where the test runs.
    world.kernel.refuse("mbind");
    world.kernel.bind_thread(&world.machine.node(NodeId(2)).unwrap().cpus).unwrap();
    world.kernel.refuse("sched_setaffinity");
    let report = world.measure(&brief(&[MeasurementKind::Latency]));
    assert_eq!(report.facts, []);
    for node in [0, 1, 3] {
        assert!(noted(
            &report,
            &format!("node {node}: of 256 pages asked for there, 256 on node 2")
        ));
    }
    assert!(noted(&report, "latency 0-2: no figure: sched_setaffinity was refused"));
}

#[test]
fn where_mbind_is_refused_the_first_touch_places_memory() {
    let world = World::new(machines::two_nodes());
    world.kernel.refuse("mbind");
    let report = world.measure(&brief(&[MeasurementKind::Latency]));
    assert_eq!(facts_of(&report, Quantity::Latency).len(), 4, "{:?}", report.notes);
}

#[test]
fn memory_whose_node_is_unknown_gives_no_figure_unless_there_is_only_one_node() {
    let latencies = |machine| {
        let world = World::new(machine);
        world.kernel.refuse("move_pages");
        let report = world.measure(&brief(&[MeasurementKind::Latency]));
        let noted = noted(&report, "cannot determine where memory is: move_pages was refused");
        (report.facts.len(), noted)
    };
    assert_eq!(latencies(machines::two_nodes()), (0, true));
    assert_eq!(latencies(machines::one_node()), (1, false));
}

#[test]
fn every_refused_call_gives_a_report_and_leaks_no_memory() {
    for call in atoll_testkit::kernel::CALLS {
        let world = World::new(machines::two_nodes());
        world.kernel.refuse(call);
        world.measure(&brief(&MeasurementKind::ALL));
        assert_eq!(world.kernel.mapped().0, 0, "{call}");
    }
}

#[test]
fn a_cancelled_measurement_ends_early_and_keeps_its_figures() {
    let world = World::new(machines::two_nodes());
    let kernel: Arc<dyn Kernel> = world.kernel.clone();
    let options =
        MeasureOptions { window: Duration::from_secs(60), ..brief(&MeasurementKind::ALL) };
    let first = MeasureOptions { window: Duration::from_millis(1), ..options.clone() };
    let mut steps = 0;
    let report = measure(&world.machine, &kernel, &first, &mut |_| {
        steps += 1;
        if steps == 4 {
            first.cancel.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert!(report.cancelled && report.facts.len() == 2, "{report:?}");
    // The clone shares the flag: windows of a minute end at once.
    assert!(world.measure(&options).cancelled);
    assert_eq!(world.kernel.mapped().0, 0);
}

#[test]
fn the_limits_of_the_control_group_bound_memory_and_are_noted_for_time() {
    let mut machine = machines::one_node();
    let limit = CpuTimeLimit { cpus: 1.5, file: "cpu.max".into() };
    machine.limits.cpu_time = Some(limit);
    machine.limits.memory = Some(MemoryLimit { bytes: Bytes(1 << 20), file: "memory.max".into() });
    let report = World::new(machine).measure(&brief(&[MeasurementKind::Latency]));
    assert!(noted(&report, "cpu.max grants 1.5 cpus"), "{:?}", report.notes);
    assert!(noted(&report, "node 0: 1.0 MiB free"), "{:?}", report.notes);
}

fn error(machine: Machine, options: &MeasureOptions) -> MeasureError {
    estimate(&machine, options).unwrap_err()
}

#[test]
fn options_out_of_bounds_are_told_with_their_bounds() {
    let quick = MeasureOptions::quick;
    for (options, what) in [
        (
            MeasureOptions { parts: [].into(), ..quick() },
            "no part is chosen; choose among latency, ",
        ),
        (MeasureOptions { repetitions: 0, ..quick() }, "0 repetitions; choose 1 to 1000"),
        (MeasureOptions { repetitions: u32::MAX, ..quick() }, "choose 1 to 1000"),
        (MeasureOptions { window: Duration::ZERO, ..quick() }, "a window of 0ns"),
        (MeasureOptions { warm_up: Duration::MAX, ..quick() }, "up to 60s"),
        (
            MeasureOptions { buffer: Some(Bytes(9)), ..quick() },
            "a buffer of 9 B; choose 1.0 MiB or more",
        ),
    ] {
        let error = error(machines::one_node(), &options).to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_buffer_as_large_as_the_node_is_noted_and_a_larger_one_refused() {
    const MEMORY: u64 = 32 << 20;
    let sized =
        |bytes| MeasureOptions { buffer: Some(Bytes(bytes)), ..brief(&MeasurementKind::ALL[..4]) };
    let node = NodeShape::with_cpus(NodeId(0), 1, 2, 1).memory(Bytes(MEMORY));
    let small = MachineBuilder::new("small").node(node).build().unwrap();
    for bytes in [MEMORY + 1, u64::MAX] {
        let error = error(small.clone(), &sized(bytes));
        assert!(matches!(error, MeasureError::Options { .. }), "{error}");
    }
    let world = World::new(small);
    let report = world.measure(&sized(MEMORY));
    assert!(
        noted(&report, "reads instead")
            || noted(&report, "too little for")
            || noted(&report, "read instead of"),
        "{:?}",
        report.notes
    );
    assert_eq!(world.kernel.mapped().0, 0);
}

#[test]
fn machines_without_cpus_or_memory_are_errors() {
    let built = |node| MachineBuilder::new("bare").node(node).build();
    let memory_only = built(NodeShape::memory_only(NodeId(0), Bytes(1 << 30)));
    if let Ok(machine) = memory_only {
        let error = error(machine, &MeasureOptions::quick());
        assert!(matches!(error, MeasureError::NoCpus { .. }), "{error}");
    }
    let cpus_only = built(NodeShape::with_cpus(NodeId(0), 1, 1, 1).memory(Bytes(0)));
    if let Ok(machine) = cpus_only {
        let error = error(machine.clone(), &MeasureOptions::quick());
        assert!(matches!(error, MeasureError::NoMemory { .. }), "{error}");
        let report = World::new(machine).measure(&brief(&[MeasurementKind::CoreToCore]));
        assert!(noted(&report, "core-to-core: needs two cpus"));
    }
}
