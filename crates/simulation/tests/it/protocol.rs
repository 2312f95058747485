//! Short stories of one or two lines, whose counts a reader can follow by hand.

use atoll_marker::Marker;
use atoll_simulation::{Counting, LinkTraffic, Report, Traffic};

use crate::machines::{Guest, four_nodes};

/// First cpu of a node of [`four_nodes`].
fn cpu(node: usize) -> usize {
    2 * node
}

/// What was counted since an earlier report, of single figures.
fn report(guest: &Guest) -> Report {
    guest.simulation.report()
}

fn bytes(traffic: &Traffic, link: usize) -> LinkTraffic {
    traffic.links[link]
}

#[test]
fn a_first_load_comes_from_the_home_over_the_route_and_is_exclusive() {
    let guest = Guest::new(four_nodes());
    let line = guest.start(1);
    guest.load(cpu(0), line);
    // The core's other half asks the last-level cache.
    guest.load(cpu(0) + 1, line);
    let total = report(&guest).total;
    assert_eq!(total.loads[0], [0, 2, 0, 0]);
    assert_eq!(total.load_bytes[0], [0, 16, 0, 0]);
    assert_eq!(total.lines[0], [0, 1, 0, 0]);
    assert_eq!(total.caches[0].sources.memory, [0, 1, 0, 0]);
    assert_eq!(total.caches[0].llc_hits.exclusive, 1);
    assert_eq!(total.controllers[1].read, 64);
    // Link 0 joins nodes 0 and 1; data flow to the smaller one.
    assert_eq!(bytes(&total, 0), LinkTraffic { forward: 0, backward: 64 });
    assert_eq!(total.links.iter().map(|link| link.forward + link.backward).sum::<u64>(), 64);
}

#[test]
fn a_clean_line_is_handed_on_and_the_last_reader_has_it_to_forward() {
    let guest = Guest::new(four_nodes());
    let line = guest.start(0);
    for node in [0, 1, 2] {
        guest.load(cpu(node), line);
    }
    let total = report(&guest).total;
    assert_eq!(total.caches[0].sources.memory, [1, 0, 0, 0]);
    assert_eq!(total.caches[1].sources.clean, [1, 0, 0, 0]);
    assert_eq!(total.caches[2].sources.clean, [0, 1, 0, 0]);
    assert_eq!(total.controllers[0].read, 64);
    // The second core of each node finds the state in which its domain has it.
    for node in [0, 1, 2] {
        guest.load(cpu(node) + 1, line);
    }
    let caches = report(&guest).total.caches;
    assert_eq!(caches[0].llc_hits.shared, 1);
    assert_eq!(caches[1].llc_hits.shared, 1);
    assert_eq!(caches[2].llc_hits.forward, 1);
}

#[test]
fn a_written_line_read_elsewhere_is_written_to_memory_and_shared() {
    let guest = Guest::new(four_nodes());
    let line = guest.start(2);
    guest.store(cpu(0), line);
    guest.load(cpu(1), line);
    let total = report(&guest).total;
    assert_eq!(total.caches[0].sources.memory, [0, 0, 1, 0]);
    assert_eq!(total.caches[1].sources.dirty, [1, 0, 0, 0]);
    assert_eq!(total.caches[1].writebacks, 1);
    assert_eq!((total.controllers[2].read, total.controllers[2].written), (64, 64));
    // The writer must ask again.
    guest.store(cpu(0), line);
    let total = report(&guest).total;
    assert_eq!((total.caches[0].upgrades, total.caches[0].llc_hits.shared), (1, 1));
    // And the reader has lost it: nothing was written to memory this time.
    guest.store(cpu(1), line);
    let total = report(&guest).total;
    assert_eq!(total.caches[1].sources.dirty, [2, 0, 0, 0]);
    assert_eq!(total.controllers[2].written, 64);
}

#[test]
fn a_line_that_only_sharers_have_comes_from_memory() {
    let mut setup = four_nodes();
    (setup.l1.sets, setup.l2) = (1, None);
    let guest = Guest::new(setup);
    let line = guest.start(0);
    guest.load(cpu(0), line);
    guest.load(cpu(1), line);
    // Node 1 has it to forward, and evicts it: 64 sets of 4 ways.
    for way in 1..=4 {
        guest.load(cpu(1), line + way * 64 * 64);
    }
    guest.load(cpu(2), line);
    let sources = &report(&guest).total.caches[2].sources;
    assert_eq!((sources.memory[0], sources.clean[0]), (1, 0));
}

#[test]
fn a_line_that_the_last_level_evicts_leaves_the_private_caches() {
    let mut setup = four_nodes();
    // One set of all private caches is larger than one of the last level.
    (setup.l1.sets, setup.l1.ways) = (64, 8);
    let guest = Guest::new(setup);
    let line = guest.start(0);
    guest.store(cpu(0), line);
    for way in 1..=4 {
        guest.load(cpu(0), line + way * 64 * 64);
    }
    let total = report(&guest).total;
    assert_eq!((total.caches[0].writebacks, total.controllers[0].written), (1, 64));
    guest.load(cpu(0), line);
    assert_eq!(report(&guest).total.caches[0].llc_misses, 6);
}

#[test]
fn storing_to_what_one_has_just_loaded_alone_is_a_private_hit() {
    let guest = Guest::new(four_nodes());
    guest.load(cpu(0), 0);
    guest.store(cpu(0), 0);
    guest.store(cpu(0), 8);
    let caches = &report(&guest).total.caches[0];
    assert_eq!((caches.private.l1, caches.llc_misses), (2, 1));
    // It is modified all the same.
    guest.load(cpu(0) + 1, 0);
    assert_eq!(report(&guest).total.caches[0].llc_hits.modified, 1);
    // And with a second reader the next store is not a private one.
    guest.store(cpu(0), 0);
    assert_eq!(report(&guest).total.caches[0].llc_hits.modified, 2);
}

#[test]
fn an_access_over_a_line_boundary_is_one_access_and_two_lines() {
    let guest = Guest::new(four_nodes());
    guest.load(cpu(0), 60);
    guest.load(cpu(0), 60);
    let total = report(&guest).total;
    assert_eq!((total.loads[0][0], total.load_bytes[0][0]), (2, 16));
    assert_eq!((total.caches[0].llc_misses, total.caches[0].private.l1), (2, 2));
}

#[test]
fn an_access_over_a_page_boundary_looks_up_its_first_page_only() {
    let guest = Guest::new(four_nodes());
    guest.load(cpu(0), 4092);
    let total = report(&guest).total;
    assert_eq!((total.load_bytes[0][0], total.caches[0].llc_misses), (8, 1));
}

#[test]
fn the_region_opened_last_counts_until_it_is_closed_as_often_as_opened() {
    let mut setup = four_nodes();
    setup.counting = Counting::Region;
    let guest = Guest::new(setup);
    let marker = |marker| guest.marker(0, marker).unwrap();
    guest.load(0, 0);
    marker(Marker::Close(7));
    marker(Marker::Open(7));
    guest.load(0, 0);
    marker(Marker::Open(7));
    marker(Marker::Open(3));
    guest.load(0, 0);
    marker(Marker::Close(7));
    marker(Marker::Close(3));
    guest.load(0, 0);
    marker(Marker::Close(7));
    guest.load(0, 0);
    let report = report(&guest);
    let counts: Vec<_> = report
        .regions
        .iter()
        .map(|region| (region.number, region.opened, region.traffic.loads[0][0]))
        .collect();
    assert_eq!(counts, [(7, 1, 2), (3, 1, 1)]);
    assert_eq!(report.total.loads[0][0], 3);
    // The first load was not counted, but it filled the cache.
    assert_eq!(report.total.caches[0].llc_misses, 0);
}

#[test]
fn counting_within_regions_listens_only_while_one_is_open() {
    let mut setup = four_nodes();
    setup.counting = Counting::Within;
    let guest = Guest::new(setup);
    let marker = |marker| guest.marker(0, marker).unwrap();
    assert!(!guest.simulation.listens());
    marker(Marker::Open(7));
    assert!(guest.simulation.listens());
    guest.load(0, 0);
    marker(Marker::Open(3));
    marker(Marker::Close(7));
    assert!(guest.simulation.listens(), "region 3 is open");
    marker(Marker::Close(3));
    assert!(!guest.simulation.listens());
    // A tag needs no region.
    marker(Marker::Tag(5));
    guest.load(0, 0);
    marker(Marker::Open(7));
    guest.load(0, 8);
    marker(Marker::Close(7));
    let report = report(&guest);
    assert_eq!((report.total.loads[0][0], report.regions[0].opened), (2, 2));
    let tag = &report.total.tags[0];
    assert_eq!((tag.tag, tag.pages[0], tag.accesses[0][0]), (5, 1, 1));
    let caches = &report.total.caches[0];
    assert_eq!((caches.llc_misses, caches.private.l1), (1, 1), "the caches keep what was there");
    assert!(Guest::new(four_nodes()).simulation.listens(), "all of user space counts");
}

#[test]
fn accesses_to_tagged_pages_are_told_apart_and_the_tag_can_be_taken_away() {
    let guest = Guest::new(four_nodes());
    let page = guest.start(3);
    guest.load(cpu(1), page);
    // Also for a cpu that has the page at hand under no tag.
    guest.marker(cpu(0), Marker::Tag(5)).unwrap();
    guest.load(cpu(0), page + 8);
    guest.load(cpu(1), page);
    let tags = report(&guest).total.tags;
    assert_eq!(tags.len(), 1);
    assert_eq!((tags[0].tag, tags[0].pages.as_slice()), (5, [0, 0, 0, 1].as_slice()));
    assert_eq!((tags[0].accesses[0][3], tags[0].accesses[1][3], tags[0].lines[0][3]), (1, 1, 1));
    guest.marker(cpu(0), Marker::Tag(0)).unwrap();
    guest.load(cpu(0), page + 8);
    guest.load(cpu(1), page);
    let tags = report(&guest).total.tags;
    assert_eq!((tags[0].pages[3], tags[0].accesses[0][3], tags[0].accesses[1][3]), (0, 1, 1));
}
