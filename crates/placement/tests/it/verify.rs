//! Reports contain what the kernel says of pages and threads.

use atoll_placement::{
    KernelError, NodeBuffer, PageRange, verify_pages, verify_pages_sampled, verify_thread,
};
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId};

use crate::support::{MIB, World};

#[test]
fn pages_are_counted_by_the_node_wanted_and_the_node_found() {
    let world = World::new(machines::two_nodes());
    world.bind_to(1);
    let placed = world.allocate(0, 2 * MIB);
    let mut unplaced = world.arena.allocate(None, 2 * MIB).unwrap();
    unplaced.as_mut_slice()[..MIB].fill(1);
    let astray = PageRange { wanted: Some(NodeId(1)), ..placed.pages() };
    let ranges = [placed.pages(), unplaced.pages(), astray];
    let report = verify_pages(world.kernel.as_ref(), &ranges).unwrap();
    let expected = [
        ((None, NodeId(1)), 256),
        ((Some(NodeId(0)), NodeId(0)), 512),
        ((Some(NodeId(1)), NodeId(0)), 512),
    ];
    assert_eq!(report.pages, expected.into());
    assert_eq!((report.at_home(), report.elsewhere(), report.untouched), (512, 512, 256));
    assert_eq!((report.pages_seen, report.pages_total, report.sampled), (1536, 1536, false));
    assert_eq!(report.bytes, Bytes(6 << 20));
}

#[test]
fn above_the_bound_pages_are_sampled_evenly_and_the_report_says_so() {
    let world = World::new(machines::two_nodes());
    let buffers: Vec<NodeBuffer> =
        [0, 1, 1, 1].into_iter().map(|node| world.allocate(node, 4 * MIB)).collect();
    let ranges: Vec<PageRange> = buffers.iter().map(NodeBuffer::pages).collect();
    let report = verify_pages_sampled(world.kernel.as_ref(), &ranges, 400).unwrap();
    assert_eq!((report.pages_seen, report.pages_total, report.sampled), (400, 4096, true));
    assert_eq!(report.by_node(), [(NodeId(0), 100), (NodeId(1), 300)].into());
}

#[test]
fn nothing_to_look_at_is_an_empty_report() {
    let world = World::new(machines::one_node());
    let empty = PageRange { wanted: None, start: 4096, len: 0 };
    for ranges in [&[][..], &[empty]] {
        let report = verify_pages_sampled(world.kernel.as_ref(), ranges, 0).unwrap();
        assert_eq!((report.pages_total, report.pages_seen, report.sampled), (0, 0, false));
    }
}

#[test]
fn a_refused_look_up_is_an_error_not_an_empty_report() {
    let world = World::new(machines::two_nodes());
    let buffer = world.allocate(1, MIB);
    world.kernel.refuse("move_pages");
    let error = verify_pages(world.kernel.as_ref(), &[buffer.pages()]).unwrap_err();
    assert!(matches!(error, KernelError::Refused { call: "move_pages", .. }), "{error}");
}

#[test]
fn a_thread_is_bound_only_when_it_cannot_leave_the_wanted_cpus() {
    let world = World::new(machines::two_nodes());
    let wanted = &world.machine.nodes[1].cpus;
    let free = verify_thread(world.kernel.as_ref(), wanted).unwrap();
    assert!(!free.is_bound());
    world.bind_to(1);
    let bound = verify_thread(world.kernel.as_ref(), wanted).unwrap();
    assert!(bound.is_bound() && bound.is_inside());
    assert_eq!(&bound.allowed, wanted);
    world.bind_to(0);
    let astray = verify_thread(world.kernel.as_ref(), wanted).unwrap();
    assert!(!astray.is_bound() && !astray.is_inside());
}
