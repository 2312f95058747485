//! Tests of costs and estimates.

mod assumptions;
mod costs;
mod estimate;
mod random;
mod simulate;

use atoll_model::{Assumption, Assumptions, Costs, Flows, NodeFlow};

/// The costs of a shipped machine.
fn shipped(name: &str) -> Costs {
    Costs::from_knowledge(&atoll_formats::open(name).unwrap(), &Assumptions::default()).unwrap()
}

/// Assumptions that are easy to calculate with: 1 GHz, caches and walks cost nothing.
fn plain() -> Assumptions {
    let is = |value| Assumption::new(value, "test");
    Assumptions {
        latency_l2: is(0.0),
        latency_llc: is(0.0),
        walk: is(0.0),
        frequency: is(1.0),
        instructions_per_cycle: is(1.0),
        in_flight: is(10.0),
        line_clean: is(0.5),
        line_dirty: is(1.0),
        ..Assumptions::default()
    }
}

/// Flows of nothing.
fn nothing(nodes: usize, links: usize) -> Flows {
    let none = || vec![0; nodes];
    let node = || NodeFlow { memory: none(), clean: none(), dirty: none(), ..Default::default() };
    Flows {
        nodes: (0..nodes).map(|_| node()).collect(),
        controllers: vec![Default::default(); nodes],
        links: vec![Default::default(); links],
    }
}
