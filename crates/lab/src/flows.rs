//! Flows for the cost model from counts.

use atoll_model::{ControllerFlow, Flows, LinkFlow, NodeFlow};
use atoll_simulation::{CacheCounts, Setup, Traffic};

/// The counts of a run, or of one of its regions, as the cost model takes them.
///
/// The busy cpus of a node are its accesses divided by those of its busiest cpu: 1 where one cpu did
/// everything, 4 where four did alike. A thread that wandered over four counts as four, one after the
/// other; [`Assumptions::busy_cpus`](atoll_model::Assumptions) says so if it is known.
pub fn flows(setup: &Setup, traffic: &Traffic) -> Flows {
    let nodes = traffic.caches.iter().enumerate();
    Flows {
        nodes: nodes.map(|(at, caches)| node(setup, traffic, at, caches)).collect(),
        controllers: traffic
            .controllers
            .iter()
            .map(|it| ControllerFlow { read: it.read, written: it.written })
            .collect(),
        links: traffic
            .links
            .iter()
            .map(|it| LinkFlow { forward: it.forward, backward: it.backward })
            .collect(),
    }
}

fn node(setup: &Setup, traffic: &Traffic, at: usize, caches: &CacheCounts) -> NodeFlow {
    let states = caches.llc_hits;
    let clean = sum([states.exclusive, states.shared, states.forward]);
    NodeFlow {
        busy_cpus: busy_cpus(setup, traffic, at),
        instructions: traffic.instructions.get(at).copied().unwrap_or(0),
        accesses: sum(row(&traffic.loads, at).iter().chain(row(&traffic.stores, at)).copied()),
        l2_hits: caches.private.l2,
        llc_hits: sum([clean, states.modified]),
        memory: caches.sources.memory.clone(),
        clean: caches.sources.clean.clone(),
        dirty: caches.sources.dirty.clone(),
        upgrades: caches.upgrades,
        dtlb_misses: caches.dtlb_misses,
    }
}

fn row(matrix: &[Vec<u64>], at: usize) -> &[u64] {
    matrix.get(at).map_or(&[], Vec::as_slice)
}

fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

fn busy_cpus(setup: &Setup, traffic: &Traffic, node: usize) -> f64 {
    let seats = setup.cpus.iter().zip(&traffic.cpus).filter(|(seat, _)| seat.node == node);
    let counts: Vec<f64> = seats.map(|(_, count)| *count as f64).collect();
    let most = counts.iter().copied().fold(0.0, f64::max);
    if most > 0.0 { counts.iter().sum::<f64>() / most } else { 1.0 }
}
