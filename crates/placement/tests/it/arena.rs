//! Buffers lie where they are asked for, are recycled within bounds, charged and given back, and
//! never overlap.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use atoll_placement::{ArenaOptions, FixedBudget, NodeBuffer, PlacementError, Policy};
use atoll_testkit::machines;
use atoll_topology::{Bytes, NodeId};

use crate::support::{KIB, MIB, World};

#[test]
fn a_buffer_lies_on_the_node_it_was_asked_for_wherever_its_thread_runs() {
    for machine in machines::all() {
        let world = World::new(machine);
        let ids: Vec<u32> = world.machine.nodes_with_memory().map(|node| node.id.0).collect();
        let last_with_cpus = world.machine.nodes_with_cpus().last().unwrap().id.0;
        world.bind_to(last_with_cpus);
        for id in ids {
            for bytes in [1, 100 * KIB, 3 * MIB + 1] {
                let buffer = world.allocate(id, bytes);
                assert_eq!(buffer.home(), Some(NodeId(id)), "{} {id}", world.machine.name);
                let report = world.verify(&buffer);
                assert_eq!(report.at_home(), report.pages_total, "{} {id}", world.machine.name);
            }
        }
        assert_eq!(world.arena.fallbacks(), []);
    }
}

#[test]
fn a_buffer_is_aligned_and_holds_what_was_asked_with_little_slack() {
    let world = World::new(machines::two_nodes());
    for bytes in [0, 1, 64, 65, 1000, 4096, 100_000, MIB + 1, 5 * MIB, 33 * MIB + 7] {
        let mut buffer = world.allocate(1, bytes);
        assert_eq!((buffer.len(), buffer.as_slice().len()), (bytes, bytes));
        assert_eq!(buffer.as_ptr() as usize % 64, 0, "{bytes}");
        assert!(buffer.capacity() >= bytes, "{bytes}");
        assert!(buffer.capacity() - bytes <= (bytes / 8).max(64), "{bytes}");
        buffer.as_mut_slice().fill(7);
        assert!(buffer.as_slice().iter().all(|byte| *byte == 7));
    }
}

#[test]
fn a_buffer_changes_its_length_within_its_capacity_only() {
    let world = World::new(machines::one_node());
    let mut buffer = world.allocate(0, 1000);
    let capacity = buffer.capacity();
    buffer.set_len(capacity).unwrap();
    assert_eq!(buffer.as_slice().len(), capacity);
    buffer.set_len(3).unwrap();
    assert_eq!(buffer.as_slice().len(), 3);
    let error = buffer.set_len(capacity + 1).unwrap_err();
    assert_eq!(error, PlacementError::BeyondCapacity { asked: capacity + 1, capacity });
    assert_eq!(buffer.len(), 3);
}

#[test]
fn small_buffers_share_a_mapping_and_its_policy() {
    let world = World::new(machines::two_nodes());
    let buffers: Vec<NodeBuffer> = (0..100).map(|_| world.allocate(1, 64 * KIB)).collect();
    assert_eq!((world.kernel.calls("mmap"), world.kernel.calls("mbind")), (1, 1));
    let policy = world.kernel.policy_at(buffers[99].as_ptr() as usize);
    assert_eq!(policy, Some(Policy::Preferred(NodeId(1))));
}

#[test]
fn memory_of_a_dropped_buffer_serves_the_next_without_a_call() {
    for bytes in [100, 64 * KIB, 5 * MIB] {
        let world = World::new(machines::two_nodes());
        let first = world.allocate(1, bytes);
        let address = first.as_ptr();
        drop(first);
        let calls = |call| world.kernel.calls(call);
        let before = (calls("mmap"), calls("populate"), calls("move_pages"), calls("meminfo"));
        let second = world.allocate(1, bytes);
        assert_eq!((second.as_ptr(), world.arena.kept()), (address, Bytes(0)), "{bytes}");
        assert_eq!(second.home(), Some(NodeId(1)));
        let after = (calls("mmap"), calls("populate"), calls("move_pages"), calls("meminfo"));
        assert_eq!(before, after, "{bytes}");
    }
}

#[test]
fn memory_is_never_recycled_to_another_node() {
    let world = World::new(machines::two_nodes());
    drop(world.allocate(0, 5 * MIB));
    let other = world.allocate(1, 5 * MIB);
    assert_eq!(world.verify(&other).at_home(), world.verify(&other).pages_total);
    assert_eq!(world.kernel.calls("mmap"), 2);
}

#[test]
fn a_kept_region_serves_another_size_and_is_touched_where_it_was_not() {
    // Blocks of 64 KiB and of 128 KiB both come from regions of 32 MiB.
    let world = World::new(machines::two_nodes());
    drop(world.allocate(1, 64 * KIB));
    assert_eq!(world.arena.kept(), Bytes(32 << 20));
    let larger = world.allocate(1, 128 * KIB);
    assert_eq!(world.kernel.calls("mmap"), 1);
    assert_eq!(world.verify(&larger).untouched, 0);
    assert_eq!(world.verify(&larger).at_home(), 32);
}

#[test]
fn no_more_is_kept_than_the_bound_and_trim_gives_it_all_back() {
    let kept_max = Some(Bytes(8 << 20));
    let options = ArenaOptions { strict: false, kept_max };
    let world = World::with(machines::two_nodes(), None, options);
    let buffers: Vec<NodeBuffer> = (0..4).map(|_| world.allocate(1, 4 * MIB)).collect();
    assert_eq!(world.kernel.mapped(), Bytes(16 << 20));
    drop(buffers);
    assert_eq!((world.arena.kept(), world.kernel.mapped()), (Bytes(8 << 20), Bytes(8 << 20)));
    assert_eq!(world.arena.trim(), Bytes(8 << 20));
    assert_eq!((world.arena.kept(), world.kernel.mapped()), (Bytes(0), Bytes(0)));
    assert_eq!(world.arena.trim(), Bytes(0));
}

#[test]
fn everything_goes_back_to_the_kernel_with_the_last_buffer_of_a_dropped_arena() {
    let World { machine: _machine, kernel, arena } = World::new(machines::four_nodes());
    let buffers: Vec<NodeBuffer> = [Some(0), Some(3), None]
        .into_iter()
        .flat_map(|node| [100, 64 * KIB, 5 * MIB].map(|bytes| (node.map(NodeId), bytes)))
        .map(|(home, bytes)| arena.allocate(home, bytes).unwrap())
        .collect();
    drop(arena);
    assert!(kernel.mapped() > Bytes(0));
    assert!(buffers.iter().all(|buffer| buffer.as_slice().iter().all(|byte| *byte == 0)));
    drop(buffers);
    assert_eq!(kernel.mapped(), Bytes(0));
}

#[test]
fn buffers_of_many_threads_never_overlap_nor_lose_their_bytes() {
    let world = World::new(machines::two_nodes());
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let arena = &world.arena;
            scope.spawn(move || {
                let mut random = u64::from(thread) + 1;
                let mut held: Vec<(u8, NodeBuffer)> = Vec::new();
                for round in 0..400_u32 {
                    random =
                        random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let bytes = 1_usize << (random >> 59);
                    let bytes = (bytes.min(4 * MIB) + (random >> 40) as usize % 97).max(1);
                    let node = NodeId((random >> 33) as u32 % 2);
                    let mark = thread * 60 + (round % 60) as u8;
                    let mut buffer = arena.allocate(Some(node), bytes).unwrap();
                    let (first, last) = (0, bytes - 1);
                    buffer.as_mut_slice()[first] = mark;
                    buffer.as_mut_slice()[last] = mark;
                    held.push((mark, buffer));
                    if held.len() > 20 {
                        held.swap_remove((random >> 20) as usize % held.len());
                    }
                    for (mark, buffer) in &held {
                        let bytes = buffer.as_slice();
                        assert_eq!((bytes[0], bytes[bytes.len() - 1]), (*mark, *mark));
                    }
                }
            });
        }
    });
    assert_eq!(world.arena.fallbacks(), []);
}

#[test]
fn blocks_in_use_do_not_overlap() {
    let world = World::new(machines::one_node());
    let buffers: Vec<NodeBuffer> =
        (0..3000).map(|i| world.allocate(0, 1 + i * 37 % 5000)).collect();
    let mut ranges: Vec<(usize, usize)> =
        buffers.iter().map(|b| (b.as_ptr() as usize, b.capacity())).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
}

#[test]
fn on_one_node_there_is_no_policy_and_no_look_up() {
    let world = World::new(machines::one_node());
    let (placed, unplaced) = (world.allocate(0, MIB), world.arena.allocate(None, MIB).unwrap());
    assert_eq!((world.kernel.calls("mbind"), world.kernel.calls("move_pages")), (0, 0));
    assert_eq!((placed.home(), unplaced.home()), (Some(NodeId(0)), None));
    assert_eq!(world.verify(&placed).at_home(), 256);
    let address = unplaced.as_ptr();
    drop(unplaced);
    assert_eq!(world.arena.allocate(None, MIB).unwrap().as_ptr(), address);
}

#[test]
fn first_touch_places_an_unplaced_buffer_every_time_anew() {
    let world = World::new(machines::two_nodes());
    for node in [1, 0, 1] {
        world.bind_to(node);
        let mut buffer = world.arena.allocate(None, MIB).unwrap();
        assert_eq!((buffer.home(), buffer.wanted()), (None, None));
        assert_eq!(world.verify(&buffer).untouched, 256);
        buffer.as_mut_slice().fill(1);
        let report = world.verify(&buffer);
        assert_eq!(report.by_node(), [(NodeId(node), 256)].into());
        assert_eq!(report.elsewhere(), 0);
    }
    assert_eq!((world.kernel.calls("mbind"), world.kernel.calls("populate")), (0, 0));
    assert_eq!(world.kernel.mapped(), Bytes(0));
}

#[test]
fn the_budget_is_charged_the_capacity_until_the_buffer_is_dropped() {
    let budget = Arc::new(FixedBudget::new(Bytes(10 << 20)));
    let machine = machines::two_nodes();
    let world = World::with(machine, Some(budget.clone()), ArenaOptions::default());
    let buffer = world.allocate(1, 4 * MIB + 1);
    assert_eq!(budget.used(), Bytes(buffer.capacity() as u64));
    let unplaced = world.arena.allocate(None, MIB).unwrap();
    assert_eq!(budget.used().0 as usize, buffer.capacity() + unplaced.capacity());
    drop((buffer, unplaced));
    assert_eq!(budget.used(), Bytes(0));
}

#[test]
fn an_exceeded_budget_is_an_error_before_anything_is_mapped() {
    let budget = Arc::new(FixedBudget::new(Bytes(1 << 20)));
    let machine = machines::two_nodes();
    let world = World::with(machine, Some(budget.clone()), ArenaOptions::default());
    drop(world.allocate(1, 64 * KIB));
    let (kept, calls) = (world.arena.kept(), world.kernel.calls("mmap"));
    for home in [Some(NodeId(1)), None] {
        let error = world.arena.allocate(home, 2 * MIB).unwrap_err();
        assert!(matches!(error, PlacementError::Budget(_)), "{error}");
    }
    assert_eq!((world.kernel.calls("mmap"), budget.used()), (calls, Bytes(0)));
    // What is kept is not charged, so giving it up would not help.
    assert_eq!(world.arena.kept(), kept);
}

#[test]
fn a_node_that_is_not_there_is_an_error_that_lists_those_that_are() {
    let world = World::new(machines::eight_uneven_nodes());
    let error = world.arena.allocate(Some(NodeId(3)), 1).unwrap_err();
    assert!(error.to_string().contains("node 3, which does not exist"), "{error}");
    assert!(error.to_string().contains("0-2,4-8"), "{error}");
}

#[test]
fn absurd_sizes_are_errors_and_charge_nothing() {
    let budget = Arc::new(FixedBudget::new(Bytes(u64::MAX)));
    let machine = machines::two_nodes();
    let world = World::with(machine, Some(budget.clone()), ArenaOptions::default());
    for bytes in [1 << 40, 1 << 46, (1 << 46) + 1, usize::MAX / 2, usize::MAX] {
        let error = world.arena.allocate(Some(NodeId(0)), bytes).unwrap_err();
        assert!(
            matches!(error, PlacementError::MachineFull { .. } | PlacementError::TooLarge { .. }),
            "{bytes}: {error}"
        );
    }
    assert!(world.arena.allocate(None, usize::MAX).is_err());
    assert_eq!((budget.used(), world.kernel.mapped()), (Bytes(0), Bytes(0)));
}

#[test]
fn a_shared_buffer_can_own_the_memory_of_an_arrow_buffer() {
    fn assert_owner<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>(_: &T) {}
    let world = World::new(machines::two_nodes());
    let mut buffer = world.allocate(1, MIB);
    buffer.as_mut_slice()[MIB - 1] = 9;
    let address = buffer.as_ptr();
    let shared = Arc::new(buffer);
    assert_owner(&shared);
    let reader = shared.clone();
    let seen = std::thread::spawn(move || (reader.as_ptr() as usize, reader.as_slice()[MIB - 1]));
    assert_eq!(seen.join().unwrap(), (address as usize, 9));
    assert_eq!(shared.as_ptr(), address);
}

#[test]
fn a_buffers_bytes_and_words_are_the_same_memory_for_several_threads() {
    use std::sync::atomic::Ordering::Relaxed;
    let world = World::new(machines::two_nodes());
    let mut buffer = world.allocate(1, 35);
    let bytes = buffer.as_atomic_bytes();
    assert_eq!(bytes.len(), 35);
    std::thread::scope(|scope| {
        for half in bytes.chunks(18) {
            scope.spawn(|| half.iter().for_each(|byte| byte.store(7, Relaxed)));
        }
    });
    let words: Vec<u64> = buffer.as_atomic_words().iter().map(|word| word.load(Relaxed)).collect();
    assert_eq!(words, [0x0707_0707_0707_0707; 4]);
    assert_eq!(buffer.as_slice(), [7; 35]);
}
