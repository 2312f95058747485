//! What several processes map as one, in written trees: the pages of each process are sets that a
//! test says, and every figure is held against their union.

use std::collections::BTreeSet;
use std::time::Duration;

use atoll_process::inspect::{
    MappingKind, MemoryOptions, PageHomes, PagesError, ProcessId, Snapshot, Union, WatchOptions,
    Watcher,
};
use atoll_testkit::machines;
use atoll_topology::NodeId;

use crate::inspect_tree::{HomesOf, Tree};

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// Pages of the object before the part that the second process maps.
const SKIPPED: u64 = 256;

/// Maps the whole of it.
const FIRST: u32 = 100;
const FIRST_START: u64 = 0x7f00_0000_0000;
/// Maps it from page [`SKIPPED`] on, elsewhere.
const SECOND: u32 = 200;
const SECOND_START: u64 = 0x5500_0000_0000;

/// An object of which a page is on node `home(page)` and in the page tables of those who `has` it.
struct Shared<F> {
    pages: u64,
    has: F,
    home: fn(u64) -> u32,
}

impl<F: Fn(u32, u64) -> bool> Shared<F> {
    fn page(pid: u32, address: u64) -> u64 {
        match pid {
            FIRST => (address - FIRST_START) / PAGE,
            _ => SKIPPED + (address - SECOND_START) / PAGE,
        }
    }

    fn home_of(&self, pid: u32, address: u64) -> Option<u32> {
        let page = Self::page(pid, address);
        ((self.has)(pid, page)).then(|| (self.home)(page))
    }

    /// Bytes on a node of the pages that one of these has.
    fn bytes(&self, pids: &[u32], node: u32) -> u64 {
        let is_there = |page: &u64| {
            let maps = |pid: u32| pid == FIRST || *page >= SKIPPED;
            (self.home)(*page) == node
                && pids.iter().any(|pid| maps(*pid) && (self.has)(*pid, *page))
        };
        (0..self.pages).filter(is_there).count() as u64 * PAGE
    }

    /// Two processes that map it, with what the kernel would write of them.
    fn tree(&self) -> Tree {
        let tree = Tree::from_machine(&machines::four_nodes());
        for (pid, start, skipped) in [(FIRST, FIRST_START, 0), (SECOND, SECOND_START, SKIPPED)] {
            tree.process(pid, "server", 1, 77);
            // Two mappings, as a change of policy in the middle makes them, and memory of its own.
            let (middle, end) = (start + 64 * PAGE, start + (self.pages - skipped) * PAGE);
            let offset = skipped * PAGE;
            let maps = format!(
                "10000000-20000000 rw-p 0 00:00 0\n\
                 {start:x}-{middle:x} rw-s {offset:x} 00:01 9 /dev/zero (deleted)\n\
                 {middle:x}-{end:x} rw-s {:x} 00:01 9 /dev/zero (deleted)\n",
                offset + 64 * PAGE
            );
            let nodes = |pages: std::ops::Range<u64>| -> String {
                let on = |node: u32| {
                    let count = pages
                        .clone()
                        .filter(|page| (self.has)(pid, *page) && (self.home)(*page) == node)
                        .count();
                    format!(" N{node}={count}")
                };
                (0..4).map(on).collect()
            };
            let numa_maps = format!(
                "10000000 default N1=7\n\
                 {start:x} default file=/dev/zero{}\n\
                 {middle:x} interleave:0-3 file=/dev/zero{}\n",
                nodes(skipped..skipped + 64),
                nodes(skipped + 64..self.pages)
            );
            tree.write(&format!("/proc/{pid}/maps"), maps);
            tree.write(&format!("/proc/{pid}/numa_maps"), numa_maps);
            tree.status(pid, "VmRSS:\t8192 kB\nRssAnon:\t28 kB\nRssShmem:\t8164 kB\n");
        }
        tree
    }
}

fn look(tree: &Tree, homes: &dyn PageHomes, memory: MemoryOptions) -> Snapshot {
    let targets = [FIRST, SECOND].map(|pid| ProcessId { pid, start: 77 });
    let mut watcher = Watcher::new(&targets, WatchOptions { memory, budget: None });
    watcher.look(&tree.source(homes), Duration::ZERO).unwrap()
}

fn bytes(snapshot: &Snapshot, node: u32) -> u64 {
    let shared = &snapshot.memory[&MappingKind::SharedAnonymous];
    shared.get(&Some(NodeId(node))).copied().unwrap_or(0)
}

/// The first has a third of the pages, the second another third and some of the same.
fn thirds(pid: u32, page: u64) -> bool {
    page % 3 == u64::from(pid == SECOND) || page.is_multiple_of(50)
}

fn shared() -> Shared<fn(u32, u64) -> bool> {
    Shared { pages: 3000, has: thirds, home: |page| (page / 700 % 4) as u32 }
}

#[test]
fn pages_that_processes_touched_at_different_addresses_are_united() {
    let shared = shared();
    let tree = shared.tree();
    let homes = HomesOf(|pid, address| Ok(shared.home_of(pid, address)));
    let snapshot = look(&tree, &homes, MemoryOptions::default());
    assert_eq!(snapshot.union, Union::Exact);
    for node in 0..4 {
        let wanted = shared.bytes(&[FIRST, SECOND], node);
        assert_eq!(bytes(&snapshot, node), wanted, "node {node}");
        assert!(wanted > shared.bytes(&[FIRST], node).max(shared.bytes(&[SECOND], node)));
    }
    assert_eq!(snapshot.memory[&MappingKind::Anonymous][&Some(NodeId(1))], 14 * PAGE);
    // Of each process alone all that it has.
    let parts = snapshot.processes.iter().map(|process| process.memory.as_ref().unwrap());
    let parts: Vec<u64> = parts.map(|memory| memory.resident()).collect();
    let of = |pid| 7 * PAGE + (0..4).map(|node| shared.bytes(&[pid], node)).sum::<u64>();
    assert_eq!(parts, [of(FIRST), of(SECOND)]);
    assert_eq!(snapshot.missing, []);
}

#[test]
fn every_page_is_asked_for_once_where_the_first_process_has_it() {
    let shared = Shared { pages: 3000, has: |_, _| true, home: |_| 2 };
    let tree = shared.tree();
    let asked = std::cell::RefCell::new(Vec::new());
    let homes = HomesOf(|pid, address| {
        asked.borrow_mut().push((pid, address));
        Ok(shared.home_of(pid, address))
    });
    let snapshot = look(&tree, &homes, MemoryOptions::default());
    assert_eq!(bytes(&snapshot, 2), 3000 * PAGE);
    let asked = asked.into_inner();
    let pids: BTreeSet<u32> = asked.iter().map(|(pid, _)| *pid).collect();
    assert_eq!((asked.len(), pids), (3000, [FIRST].into()));
}

#[test]
fn a_large_object_is_sampled_at_the_same_offsets_in_all_within_its_bound() {
    // 400 MiB, of which the two have two fifths each, one of them in common.
    let shared = Shared {
        pages: 100 * MIB / 1024,
        has: |pid, page: u64| [page % 5, page % 5 + 1].contains(&u64::from(pid == FIRST)),
        home: |page| (page / 5 % 2) as u32,
    };
    let tree = shared.tree();
    let homes = HomesOf(|pid, address| Ok(shared.home_of(pid, address)));
    let memory = MemoryOptions { sample_pages: 256, ..MemoryOptions::default() };
    let snapshot = look(&tree, &homes, memory);
    let Union::Sampled { looked, resident, error_bytes } = snapshot.union else {
        panic!("{:?}", snapshot.union)
    };
    assert!(looked < shared.pages / 10 && resident < looked, "{:?}", snapshot.union);
    for node in 0..4 {
        let (found, wanted) = (bytes(&snapshot, node), shared.bytes(&[FIRST, SECOND], node));
        assert!(found.abs_diff(wanted) <= error_bytes, "{found} {wanted} ± {error_bytes}");
    }
    assert!(error_bytes < shared.bytes(&[FIRST], 0) / 2, "{error_bytes}");
}

#[test]
fn without_the_right_to_ask_it_is_the_most_that_one_has_and_that_is_said() {
    let shared = shared();
    let tree = shared.tree();
    let homes = HomesOf(|_, _| Err(PagesError::Denied));
    let snapshot = look(&tree, &homes, MemoryOptions::default());
    assert_eq!(snapshot.union, Union::Maximum);
    for node in 0..4 {
        let most = shared.bytes(&[FIRST], node).max(shared.bytes(&[SECOND], node));
        assert_eq!(bytes(&snapshot, node), most, "node {node}");
    }
    let [missing] = snapshot.missing.as_slice() else { panic!("{:?}", snapshot.missing) };
    assert!(missing.what.contains("map as one"), "{missing:?}");
    assert!(missing.need.contains("CAP_SYS_PTRACE"), "{missing:?}");
}

#[test]
fn processes_that_may_not_be_looked_into_are_told_apart() {
    let shared = shared();
    let tree = shared.tree();
    for pid in [FIRST, SECOND] {
        std::fs::remove_file(tree.path().join(format!("proc/{pid}/numa_maps"))).unwrap();
    }
    let snapshot = look(&tree, &HomesOf(|_, _| Ok(None)), MemoryOptions::default());
    assert_eq!(snapshot.union, Union::Each);
    assert_eq!(snapshot.memory[&MappingKind::Shared][&None], 2 * 8164 * 1024);
}

#[test]
fn watching_asks_less_and_not_in_every_look() {
    let shared = Shared { pages: 600 * MIB / 4096, has: |_, _| true, home: |_| 2 };
    let tree = shared.tree();
    let asked = std::cell::Cell::new(0_u64);
    let homes = HomesOf(|pid, address| {
        asked.set(asked.get() + 1);
        Ok(shared.home_of(pid, address))
    });
    let targets = [FIRST, SECOND].map(|pid| ProcessId { pid, start: 77 });
    let options =
        WatchOptions { budget: Some((1e-6, Duration::from_secs(1))), ..WatchOptions::default() };
    let mut watcher = Watcher::new(&targets, options);
    let first = watcher.look(&tree.source(&homes), Duration::ZERO).unwrap();
    assert!(matches!(first.union, Union::Sampled { .. }), "{:?}", first.union);
    let before = asked.get();
    assert!(before < shared.pages, "{before}");
    let second = watcher.look(&tree.source(&homes), Duration::from_secs(1)).unwrap();
    assert_eq!((asked.get(), second.union, second.memory), (before, first.union, first.memory));
}

#[test]
fn a_process_that_ends_meanwhile_leaves_what_the_others_have() {
    let shared = shared();
    let tree = shared.tree();
    let homes = HomesOf(|pid, address| match pid {
        FIRST => Err(PagesError::Ended),
        pid => Ok(shared.home_of(pid, address)),
    });
    let snapshot = look(&tree, &homes, MemoryOptions::default());
    assert_eq!(snapshot.union, Union::Exact);
    for node in 0..4 {
        assert_eq!(bytes(&snapshot, node), shared.bytes(&[SECOND], node), "node {node}");
    }
}

#[test]
fn offsets_and_lengths_beyond_all_bounds_are_survived() {
    let shared = shared();
    let tree = shared.tree();
    for (pid, start) in [(FIRST, 0x1000), (SECOND, 0x3000)] {
        let end = u64::MAX;
        let maps = format!("{start:x}-{end:x} rw-s ffffffffffffffff 00:01 9 /dev/zero\n");
        let maps = maps + &format!("{start:x}-{end:x} rw-s 1001 00:01 9 /dev/zero\n");
        tree.write(&format!("/proc/{pid}/maps"), maps);
        tree.write(&format!("/proc/{pid}/numa_maps"), format!("{start:x} default N1=9\n"));
    }
    let homes = HomesOf(|_, _| Ok(None));
    for sample_pages in [0, 256] {
        let memory = MemoryOptions { sample_pages, ..MemoryOptions::default() };
        let snapshot = look(&tree, &homes, memory);
        assert!(snapshot.bytes() <= 2 * 9 * PAGE, "{}", snapshot.bytes());
    }
}
