//! The figures of Kiefer et al., "Experimental Evaluation of NUMA Effects on Database Management
//! Systems", BTW 2013, section 3.5: four processes of four threads read arrays two thirds as large as
//! a last-level cache, first with a process's threads on one node, then with each on a node of its
//! own. Caches and arrays are scaled down together.

use atoll_simulation::{CacheShape, Report, Setup};

use crate::machines::{Guest, Shape, machine};

const NODES: usize = 4;

fn westmere() -> Setup {
    let mut setup = machine(&Shape {
        nodes: NODES,
        domains_per_node: 1,
        cores_per_domain: 4,
        threads_per_core: 1,
        pages_per_node: 64,
    });
    (setup.l1, setup.l2) = (CacheShape { sets: 2, ways: 2 }, None);
    setup.llc = vec![CacheShape { sets: 128, ways: 24 }; NODES];
    setup
}

/// Each process reads an array of its own on its own node; `cpu_of` says where its threads run.
fn run(cpu_of: fn(usize, usize) -> usize) -> Report {
    let guest = Guest::new(westmere());
    let lines = 128 * 24 * 2 / 3;
    let mut seed = 1u64;
    let mut round = |accesses: usize| {
        for i in 0..accesses {
            for process in 0..NODES {
                for thread in 0..NODES {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i as u64 | 1);
                    let line = (seed >> 33) % lines;
                    guest.load(cpu_of(process, thread), guest.start(process) + line * 64);
                }
            }
        }
    };
    round(4000);
    guest.marker(0, atoll_marker::Marker::Open(0)).unwrap();
    round(8000);
    guest.simulation.report()
}

/// Share of last-level hits among lookups there, and of hits in E and in S or F among hits.
fn rates(report: &Report) -> (f64, f64, f64) {
    let caches = &report.regions[0].traffic.caches;
    let sum =
        |part: fn(&atoll_simulation::CacheCounts) -> u64| caches.iter().map(part).sum::<u64>();
    let exclusive = sum(|c| c.llc_hits.exclusive) as f64;
    let shared = sum(|c| c.llc_hits.shared + c.llc_hits.forward) as f64;
    let hits = exclusive + shared + sum(|c| c.llc_hits.modified) as f64;
    (hits / (hits + sum(|c| c.llc_misses) as f64), exclusive / hits, shared / hits)
}

#[test]
fn threads_beside_each_other_hit_their_cache_in_exclusive_lines() {
    let (hit, exclusive, _) = rates(&run(|process, thread| process * NODES + thread));
    assert!(hit > 0.97 && exclusive > 0.97, "hit {hit}, exclusive {exclusive}");
}

#[test]
fn threads_of_four_processes_on_each_node_hit_a_third_and_in_shared_lines() {
    let (hit, _, shared) = rates(&run(|process, thread| thread * NODES + process));
    assert!((0.28..0.45).contains(&hit) && shared > 0.85, "hit {hit}, shared {shared}");
}
