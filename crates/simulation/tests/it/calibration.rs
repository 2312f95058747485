//! Only what the witnesses agree on is counted.

use atoll_marker::Marker;
use atoll_simulation::Setup;
use atoll_topology::{Bytes, NodeId};

use crate::machines::{Guest, four_nodes};
use crate::reference::PAGE;

/// Four nodes with the hole in the midst of the second.
fn holed() -> Setup {
    let mut setup = four_nodes();
    setup.low_memory = Bytes(setup.nodes[0].memory.0 + 16 * PAGE);
    setup
}

/// How a guest's calibration fails.
fn failure(guest: &Guest) -> String {
    let error = guest.marker(0, Marker::Ready).expect_err("a contradiction").to_string();
    guest.load(0, 0);
    let report = guest.simulation.report();
    assert_eq!(report.total.loads.iter().flatten().sum::<u64>(), 0, "counted all the same");
    let failure = report.calibration.failure.expect("a failure");
    assert!(error.contains(&failure), "{error} is not {failure}");
    failure
}

fn witness(guest: &Guest, node: usize, linear: u64) {
    guest.witness(node, linear, Some(guest.block(linear)));
}

#[test]
fn nothing_counts_before_the_calibration_has_ended() {
    let guest = Guest::uncalibrated(holed());
    guest.load(0, 0);
    guest.simulation.instructions(0, 5);
    assert!(guest.simulation.report().calibration.failure.is_some());
    guest.calibrate().unwrap();
    guest.load(0, 0);
    let report = guest.simulation.report();
    assert_eq!((report.total.loads[0][0], report.total.instructions[0]), (1, 0));
    assert_eq!((report.calibration.failure, report.calibration.witnesses), (None, 4));
}

#[test]
fn pages_on_both_sides_of_the_hole_witness_the_same_base() {
    let guest = Guest::uncalibrated(holed());
    witness(&guest, 1, guest.start(1));
    witness(&guest, 1, guest.start(2) - PAGE);
    guest.calibrate().unwrap();
    guest.load(2, guest.start(2) - 8);
    assert_eq!(guest.simulation.report().total.loads[1], [0, 1, 0, 0]);
}

#[test]
fn nodes_keep_the_kernels_numbers_and_may_have_no_memory() {
    let mut setup = holed();
    setup.nodes[1].id = NodeId(17);
    setup.nodes[2].id = NodeId(40);
    setup.nodes[3].id = NodeId(63);
    setup.nodes[2].memory = Bytes(0);
    let guest = Guest::new(setup);
    guest.load(4, guest.start(3));
    assert_eq!(guest.simulation.report().total.loads[2], [0, 0, 0, 1]);
}

#[test]
fn a_wrong_place_of_the_hole_is_refused() {
    let mut told = holed();
    told.low_memory.0 += 32 * PAGE;
    let (guest, told) = (Guest::uncalibrated(holed()), Guest::uncalibrated(told));
    for node in 0..4 {
        let linear = guest.start(node + 1) - PAGE;
        told.say(guest.physical(linear));
        told.marker(0, Marker::Witness(node as u8)).unwrap();
        told.simulation.access(0, 0, 1, false, || Some(guest.block(linear)));
    }
    assert!(failure(&told).contains("is on node 1, expected on node 2"));
}

#[test]
fn a_page_on_another_node_than_its_address_says_is_refused() {
    let guest = Guest::uncalibrated(holed());
    witness(&guest, 1, guest.start(0));
    assert_eq!(failure(&guest), "the page at 0x0 is on node 1, expected on node 0");
}

#[test]
fn two_bases_of_one_node_are_refused() {
    let guest = Guest::uncalibrated(holed());
    witness(&guest, 0, 0);
    guest.witness(0, PAGE, Some(guest.block(2 * PAGE)));
    assert!(failure(&guest).starts_with("node 0 is at 0x"));
}

#[test]
fn overlapping_nodes_are_refused() {
    let guest = Guest::uncalibrated(holed());
    for node in 0..4 {
        guest.witness(node, guest.start(node), Some(guest.block(0) + node as u64 * PAGE));
    }
    assert!(failure(&guest).ends_with("overlaps"));
}

#[test]
fn a_node_of_which_nothing_was_heard_is_refused() {
    let guest = Guest::uncalibrated(holed());
    (0..3).for_each(|node| witness(&guest, node, guest.start(node)));
    assert_eq!(failure(&guest), "no page of node 3 was reported");
}

#[test]
fn witnesses_outside_ram_or_of_unknown_nodes_are_refused() {
    let guest = Guest::uncalibrated(holed());
    guest.witness(0, 0, None);
    assert_eq!(failure(&guest), "the page at 0x0 is not in RAM");
    for (physical, node) in [(u64::MAX, 0), (3 << 30, 0), (0, 9)] {
        let guest = Guest::uncalibrated(holed());
        guest.say(physical);
        guest.marker(0, Marker::Witness(node)).unwrap();
        guest.simulation.access(0, 0, 1, false, || Some(u64::MAX));
        failure(&guest);
    }
    let guest = Guest::uncalibrated(holed());
    guest.witness(1, guest.start(1) + PAGE, Some(0));
    assert!(failure(&guest).contains("too low"));
}

#[test]
fn a_machine_without_memory_is_refused() {
    let mut setup = holed();
    setup.nodes.iter_mut().for_each(|node| node.memory = Bytes(0));
    let guest = Guest::uncalibrated(setup);
    let error = guest.marker(0, Marker::Ready).expect_err("no memory").to_string();
    assert_eq!(
        error,
        "cannot tell the nodes' memory apart: no node has memory; nothing is counted"
    );
}

#[test]
fn a_failure_is_final_and_a_success_too() {
    let guest = Guest::uncalibrated(holed());
    assert!(guest.marker(0, Marker::Ready).is_err());
    assert!(guest.calibrate().is_err());
    let guest = Guest::new(holed());
    guest.witness(0, guest.start(1), None);
    assert!(guest.marker(3, Marker::Ready).is_ok());
    guest.load(0, 0);
    assert_eq!(guest.simulation.report().total.loads[0][0], 1);
}
