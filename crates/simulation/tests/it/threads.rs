//! With every cpu on a thread of its own, nothing is lost and nothing counted twice.

use std::thread;

use atoll_marker::Marker;
use atoll_simulation::{Report, RunSlice, Traffic};

use crate::machines::{Guest, Shape, machine};

/// A generator good enough to scatter accesses.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// What must be so whatever happened.
fn check(traffic: &Traffic, line: u64) {
    let sum = |matrix: &[Vec<u64>]| matrix.iter().flatten().sum::<u64>();
    let accesses = sum(&traffic.loads) + sum(&traffic.stores);
    assert_eq!(accesses * 8, sum(&traffic.load_bytes) + sum(&traffic.store_bytes));
    assert_eq!(accesses, traffic.cpus.iter().sum::<u64>());
    let (mut looked_up, mut from_memory, mut written) = (0, 0, 0);
    for (caches, lines) in traffic.caches.iter().zip(&traffic.lines) {
        let hits = &caches.llc_hits;
        let llc = hits.modified + hits.exclusive + hits.shared + hits.forward;
        looked_up += caches.private.l1 + caches.private.l2 + llc + caches.llc_misses;
        let sources = &caches.sources;
        let supplied = [&sources.memory, &sources.clean, &sources.dirty];
        assert_eq!(supplied.into_iter().flatten().sum::<u64>(), caches.llc_misses);
        assert_eq!(lines.iter().sum::<u64>(), caches.llc_misses);
        from_memory += sources.memory.iter().sum::<u64>();
        written += caches.writebacks;
    }
    assert_eq!(looked_up, accesses);
    assert_eq!(traffic.controllers.iter().map(|c| c.read).sum::<u64>(), from_memory * line);
    assert_eq!(traffic.controllers.iter().map(|c| c.written).sum::<u64>(), written * line);
}

fn check_series(slices: &[RunSlice], traffic: &Traffic) {
    let total = |part: fn(&RunSlice) -> &Vec<u64>| slices.iter().flat_map(part).sum::<u64>();
    assert_eq!(slices.iter().map(|s| s.accesses).sum::<u64>(), traffic.cpus.iter().sum::<u64>());
    let misses = traffic.caches.iter().map(|caches| caches.llc_misses).sum::<u64>();
    assert_eq!(total(|slice| &slice.llc_misses), misses);
    let bytes = traffic.controllers.iter().map(|c| c.read + c.written).sum::<u64>();
    assert_eq!(total(|slice| &slice.controllers), bytes);
    let bytes = traffic.links.iter().map(|link| link.forward + link.backward).sum::<u64>();
    assert_eq!(total(|slice| &slice.links), bytes);
    assert!(slices.len() <= 256);
}

/// Every cpu scatters loads and stores over a few pages of all nodes and all cpus, in regions.
fn scatter(guest: &Guest, each: u64) -> Report {
    let simulate = |cpu: usize| {
        let mut seed = 0x9e37_79b9_7f4a_7c15 ^ cpu as u64;
        for i in 0..each {
            if i % 500 == 0 {
                let region = (cpu % 3) as u8;
                let marker =
                    if i % 1000 == 0 { Marker::Open(region) } else { Marker::Close(region) };
                guest.marker(cpu, marker).unwrap();
            }
            let word = next(&mut seed);
            let page = guest.start(word as usize % 4) + (word >> 8) % 4 * 4096;
            let linear = page + (word >> 16) % 512 * 8;
            guest.simulation.access(cpu, linear, 8, word >> 60 < 5, || Some(guest.block(linear)));
        }
    };
    thread::scope(|scope| {
        for cpu in 0..guest.setup.cpus.len() {
            scope.spawn(move || simulate(cpu));
        }
    });
    guest.simulation.report()
}

#[test]
fn counts_of_concurrent_cpus_balance() {
    let guest = Guest::new(machine(&Shape {
        nodes: 4,
        domains_per_node: 1,
        cores_per_domain: 1,
        threads_per_core: 2,
        pages_per_node: 16,
    }));
    let each = 20_000;
    let report = scatter(&guest, each);
    assert_eq!(report.total.cpus, [each; 8]);
    check(&report.total, 64);
    check_series(&report.series.slices, &report.total);
    assert_eq!(report.regions.len(), 3);
    for region in &report.regions {
        check(&region.traffic, 64);
        check_series(&region.series.slices, &region.traffic);
    }
}

#[test]
fn a_series_of_many_accesses_has_few_long_slices() {
    let guest = Guest::new(crate::machines::four_nodes());
    for i in 0..300_000 {
        guest.load(0, i % 64 * 64);
    }
    let report = guest.simulation.report();
    check_series(&report.series.slices, &report.total);
    assert_eq!(report.series.accesses_per_slice, 2048);
    let (_, full) = report.series.slices.split_last().unwrap();
    assert!(full.iter().all(|slice| slice.accesses == 2048), "{full:?}");
}
