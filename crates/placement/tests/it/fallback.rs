//! Each way placement can be denied: what is done instead, how it is counted, and the error it is
//! when strict. The name of each reason's test ends what its enum variant begins.

use std::sync::Arc;

use atoll_placement::{
    ArenaOptions, FallbackReason, FixedBudget, KernelError, PlacementError, Policy,
};
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId, NodeSet};

use crate::support::{KIB, MIB, World};

/// What a strict arena says.
fn strict_error(world: &World, node: u32, bytes: usize) -> PlacementError {
    world.arena.allocate(Some(NodeId(node)), bytes).unwrap_err()
}

#[test]
fn node_without_memory_nearest_node_used() {
    let world = World::new(machines::eight_uneven_nodes());
    let buffer = world.allocate(6, MIB);
    assert_eq!((buffer.wanted(), buffer.home()), (Some(NodeId(6)), Some(NodeId(2))));
    assert_eq!(world.verify(&buffer).elsewhere(), 256);
    world.assert_only_fallback(FallbackReason::NodeWithoutMemory, 1);

    let world = World::strict(machines::eight_uneven_nodes());
    assert!(matches!(strict_error(&world, 6, MIB), PlacementError::NodeFull { .. }));
}

#[test]
fn node_full_next_node_by_distance_used() {
    let world = World::new(machines::four_nodes());
    world.set_room(3, MIB / 2);
    // Nodes 1 and 2 are equally near to node 3; node 1 is full as well.
    world.set_room(1, 0);
    let buffer = world.allocate(3, MIB);
    assert_eq!((buffer.wanted(), buffer.home()), (Some(NodeId(3)), Some(NodeId(2))));
    assert_eq!(world.verify(&buffer).by_node(), [(NodeId(2), 256)].into());
    world.assert_only_fallback(FallbackReason::NodeFull, 1);
    let first = &world.arena.fallbacks()[0].first;
    assert_eq!(first, "node 3 was full; node 2 had room");
    // What fits still goes where it was asked for.
    assert_eq!(world.allocate(3, 256 * KIB).home(), Some(NodeId(3)));

    let world = World::strict(machines::four_nodes());
    world.set_room(3, MIB / 2);
    let error = strict_error(&world, 3, MIB);
    let (asked, free) = (Bytes(MIB as u64), Bytes(MIB as u64 / 2));
    assert_eq!(error, PlacementError::NodeFull { node: NodeId(3), asked, free });
    assert_eq!(world.kernel.calls("populate"), 0);
}

#[test]
fn a_node_full_of_kept_memory_gives_it_up_before_the_next_node_is_used() {
    let world = World::new(machines::two_nodes());
    world.set_room(1, 70 * MIB);
    drop(world.allocate(1, 64 * MIB));
    assert_eq!(world.arena.kept(), Bytes(64 << 20));
    let buffer = world.allocate(1, 40 * MIB);
    assert_eq!(buffer.home(), Some(NodeId(1)));
    assert_eq!((world.arena.kept(), world.arena.fallbacks()), (Bytes(0), vec![]));
}

#[test]
fn a_full_machine_is_an_error_and_no_call_for_the_oom_killer() {
    let world = World::new(machines::two_nodes());
    world.set_room(0, MIB);
    world.set_room(1, MIB);
    let error = world.arena.allocate(Some(NodeId(0)), 4 * MIB).unwrap_err();
    let (asked, free) = (Bytes(4 << 20), Bytes(2 << 20));
    assert_eq!(error, PlacementError::MachineFull { asked, free });
    assert_eq!((world.kernel.calls("populate"), world.kernel.mapped()), (0, Bytes(0)));
    let error = World::new(machines::one_node()).arena.allocate(None, 1 << 40).unwrap_err();
    assert!(matches!(error, PlacementError::MachineFull { .. }), "{error}");
}

#[test]
fn file_cache_is_given_up_when_every_node_is_full() {
    let world = World::new(machines::two_nodes());
    for node in [0, 1] {
        world.set_room(node, 0);
        world.kernel.set_free(NodeId(node), Bytes(0));
        world.kernel.set_cache(NodeId(node), Bytes(1 << 30));
    }
    let buffer = world.allocate(1, 4 * MIB);
    assert_eq!(buffer.home(), Some(NodeId(1)));
}

#[test]
fn file_cache_counts_as_room_when_strict_and_not_otherwise() {
    let fill = |world: &World| {
        world.kernel.set_free(NodeId(0), Bytes(0));
        world.kernel.set_cache(NodeId(0), Bytes(1 << 30));
    };
    let world = World::strict(machines::two_nodes());
    fill(&world);
    let buffer = world.allocate(0, 4 * MIB);
    assert_eq!(buffer.home(), Some(NodeId(0)));
    let policy = world.kernel.policy_at(buffer.as_ptr() as usize);
    assert_eq!(policy, Some(Policy::Bind(NodeSet::from_iter([NodeId(0)]))));

    let world = World::new(machines::two_nodes());
    fill(&world);
    assert_eq!(world.allocate(0, 4 * MIB).home(), Some(NodeId(1)));
    world.assert_only_fallback(FallbackReason::NodeFull, 1);
}

#[test]
fn free_memory_unknown_node_not_checked() {
    let world = World::new(machines::two_nodes());
    world.kernel.refuse("meminfo");
    assert_eq!(world.allocate(1, MIB).home(), Some(NodeId(1)));
    world.assert_only_fallback(FallbackReason::FreeUnknown, 1);

    let world = World::strict(machines::two_nodes());
    world.kernel.refuse("meminfo");
    let error = strict_error(&world, 1, MIB);
    assert!(matches!(error, PlacementError::Kernel(KernelError::Refused { .. })), "{error}");
}

#[test]
fn mbind_unsupported_refused_or_failed_first_touch_used() {
    type Deny = fn(&World);
    let cases: [(Deny, FallbackReason); 3] = [
        (|world| world.kernel.unsupport("mbind"), FallbackReason::PolicyUnsupported),
        (|world| world.kernel.refuse("mbind"), FallbackReason::PolicyRefused),
        (|world| world.kernel.fail("mbind"), FallbackReason::PolicyFailed),
    ];
    for (deny, reason) in cases {
        let world = World::new(machines::two_nodes());
        deny(&world);
        world.bind_to(1);
        let astray = world.allocate(0, 4 * MIB);
        assert_eq!((astray.wanted(), astray.home()), (Some(NodeId(0)), Some(NodeId(1))));
        assert_eq!(world.allocate(1, 4 * MIB).home(), Some(NodeId(1)));
        world.assert_only_fallback(reason, 2);

        let world = World::strict(machines::two_nodes());
        deny(&world);
        assert!(matches!(strict_error(&world, 0, MIB), PlacementError::Kernel(_)));
        assert_eq!(world.kernel.mapped(), Bytes(0));
    }
}

#[test]
fn memory_without_its_policy_is_not_kept_for_the_next_buffer() {
    let world = World::new(machines::two_nodes());
    world.kernel.refuse("mbind");
    drop(world.allocate(0, 4 * MIB));
    assert_eq!((world.arena.kept(), world.kernel.mapped()), (Bytes(0), Bytes(0)));
    world.kernel.permit("mbind");
    world.bind_to(1);
    assert_eq!(world.allocate(0, 4 * MIB).home(), Some(NodeId(0)));
}

#[test]
fn pages_not_touched_ahead() {
    let world = World::new(machines::two_nodes());
    world.kernel.unsupport("populate");
    let buffer = world.allocate(1, MIB);
    assert_eq!(buffer.home(), Some(NodeId(1)));
    assert_eq!(world.verify(&buffer).untouched, 256);
    world.assert_only_fallback(FallbackReason::NotPopulated, 1);
    // The block is touched when it is handed out again and the kernel can.
    drop(buffer);
    world.kernel.permit("populate");
    let buffer = world.allocate(1, MIB);
    assert_eq!(world.verify(&buffer).at_home(), 256);

    let world = World::strict(machines::two_nodes());
    world.kernel.unsupport("populate");
    assert!(matches!(strict_error(&world, 1, MIB), PlacementError::Kernel(_)));
}

#[test]
fn without_policy_and_touch_no_home_is_claimed() {
    let world = World::new(machines::two_nodes());
    world.kernel.refuse("mbind");
    world.kernel.refuse("populate");
    assert_eq!(world.allocate(1, MIB).home(), None);
    world.kernel.permit("populate");
    world.kernel.refuse("move_pages");
    assert_eq!(world.allocate(1, MIB).home(), None);
}

/// An arena that has just seen plenty of room on node 0, of which then only `room` bytes are left.
fn surprised(world: World, room: usize) -> World {
    drop(world.allocate(0, MIB));
    world.arena.trim();
    world.kernel.set_free(NodeId(0), Bytes(room as u64));
    world
}

#[test]
fn pages_found_on_another_node() {
    let world = surprised(World::new(machines::two_nodes()), 0);
    let buffer = world.allocate(0, 4 * MIB);
    assert_eq!((buffer.wanted(), buffer.home()), (Some(NodeId(0)), Some(NodeId(1))));
    world.assert_only_fallback(FallbackReason::Elsewhere, 1);
    // A whole region that went astray is not kept.
    drop(buffer);
    assert_eq!(world.arena.kept(), Bytes(0));
}

#[test]
fn pages_found_on_several_nodes_have_no_home_and_are_counted_as_often_as_used() {
    let world = surprised(World::new(machines::two_nodes()), 32 * KIB);
    let keep_region = world.allocate(0, 16 * KIB);
    let buffer = world.allocate(0, 64 * KIB);
    assert_eq!(buffer.home(), None);
    assert_eq!(world.verify(&buffer).elsewhere(), 12);
    world.assert_only_fallback(FallbackReason::Elsewhere, 1);
    let beside = world.allocate(0, 64 * KIB);
    drop(buffer);
    assert_eq!(world.allocate(0, 64 * KIB).home(), None);
    world.assert_only_fallback(FallbackReason::Elsewhere, 3);
    drop((keep_region, beside));
}

#[test]
fn homes_not_read_back() {
    let world = World::new(machines::two_nodes());
    world.kernel.refuse("move_pages");
    assert_eq!(world.allocate(1, MIB).home(), Some(NodeId(1)));
    world.assert_only_fallback(FallbackReason::HomesUnknown, 1);
}

#[test]
fn a_strict_node_that_runs_full_while_it_is_touched_is_an_error_that_leaves_nothing() {
    let budget = Arc::new(FixedBudget::new(Bytes(u64::MAX)));
    let options = ArenaOptions { strict: true, kept_max: None };
    let world = World::with(machines::two_nodes(), Some(budget.clone()), options);
    let world = surprised(world, MIB);
    let error = strict_error(&world, 0, 4 * MIB);
    assert!(matches!(error, PlacementError::NodeFull { node: NodeId(0), .. }), "{error}");
    world.arena.trim();
    assert_eq!((budget.used(), world.kernel.mapped()), (Bytes(0), Bytes(0)));
}

#[test]
fn each_reason_has_words_of_its_own() {
    let words: std::collections::BTreeSet<String> = [
        FallbackReason::NodeWithoutMemory,
        FallbackReason::NodeFull,
        FallbackReason::FreeUnknown,
        FallbackReason::PolicyUnsupported,
        FallbackReason::PolicyRefused,
        FallbackReason::PolicyFailed,
        FallbackReason::NotPopulated,
        FallbackReason::Elsewhere,
        FallbackReason::HomesUnknown,
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    assert_eq!(words.len(), 9);
}
