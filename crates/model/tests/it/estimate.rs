//! Estimates that were calculated by hand.

use atoll_model::{
    Assumption, Assumptions, ControllerFlow, Costs, Estimate, FlowsError, LinkFlow, Resource,
};
use atoll_topology::{LinkId, NodeId};

use crate::{nothing, plain, shipped};

/// nehalem-ex-4 (latencies 150 and 185 ns, 24.7 GB/s of memory, links of 10.9 GB/s) with these.
fn nehalem(assumptions: &Assumptions) -> Costs {
    let mut known = atoll_formats::open("nehalem-ex-4").unwrap();
    known.facts.retain(|fact| fact.quantity.name() != "frequency");
    Costs::from_knowledge(&known, assumptions).unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.max(1.0), "{found}, not {expected}");
}

#[test]
fn cpus_share_a_nodes_work_and_waiting_shrinks_with_accesses_in_flight() {
    let mut flows = nothing(4, 6);
    let node = &mut flows.nodes[1];
    node.instructions = 4000;
    node.busy_cpus = 2.0;
    node.memory = vec![10, 100, 0, 0];
    node.clean = vec![0, 4, 2, 0];
    node.dirty = vec![0, 0, 0, 1];
    node.upgrades = 3;
    let estimate = Estimate::from_flows(&nehalem(&plain()), &flows).unwrap();
    let time = &estimate.nodes[1];
    near(time.compute.0, 2000.0);
    near(time.waits.memory_local.0, 100.0 * 150.0);
    near(time.waits.memory_remote.0, 10.0 * 185.0);
    // Half of 150 and 185 for clean lines, all of it for written ones, half for upgrades.
    let caches = 4.0 * 75.0 + 2.0 * 92.5 + 185.0 + 3.0 * 92.5;
    near(time.waits.caches.0, caches);
    let wait = (15_000.0 + 1850.0 + caches) / 2.0;
    near(time.wait.0, wait);
    near(estimate.dependent.latency.0, 2000.0 + wait);
    near(estimate.independent.latency.0, 2000.0 + wait / 10.0);
    near(estimate.independent.lower.0, estimate.independent.upper.0);
    near(estimate.dependent.serial.0, 2.0 * (2000.0 + wait));
    assert_eq!(estimate.independent.narrowest, Some(Resource::Cpus(NodeId(1))));
    let dependent = estimate.dependent.per_access(10).unwrap();
    near(dependent.lower.0, (2000.0 + wait) / 10.0);
}

#[test]
fn caches_and_walks_cost_cycles_of_the_packages_clock() {
    let mut flows = nothing(4, 6);
    flows.nodes[0].l2_hits = 226;
    flows.nodes[0].llc_hits = 226;
    flows.nodes[0].dtlb_misses = 226;
    let estimate = Estimate::from_flows(&shipped("nehalem-ex-4"), &flows).unwrap();
    let waits = estimate.nodes[0].waits;
    // 10, 40 and 30 cycles at 2.26 GHz.
    near(waits.private.0, 1000.0);
    near(waits.llc.0, 4000.0);
    near(waits.walks.0, 3000.0);
}

#[test]
fn a_run_takes_at_least_its_slowest_part_and_at_most_cpus_and_then_the_busiest_pipe() {
    let mut flows = nothing(4, 6);
    flows.nodes[0].memory = vec![1000, 0, 0, 0];
    flows.controllers[2] = ControllerFlow { read: 2_470_000, written: 247_000 };
    let estimate = Estimate::from_flows(&nehalem(&plain()), &flows).unwrap();
    let bounds = &estimate.independent;
    near(bounds.latency.0, 15_000.0);
    near(bounds.bandwidth.0, 110_000.0);
    near(bounds.lower.0, 110_000.0);
    near(bounds.upper.0, 125_000.0);
    assert_eq!(bounds.narrowest, Some(Resource::Controller(NodeId(2))));
    assert_eq!(estimate.dependent.narrowest, Some(Resource::Cpus(NodeId(0))), "150,000 ns");
}

#[test]
fn each_direction_of_a_link_is_a_pipe_of_its_own() {
    let mut flows = nothing(4, 6);
    flows.links[5] = LinkFlow { forward: 109, backward: 1090 };
    let estimate = Estimate::from_flows(&nehalem(&plain()), &flows).unwrap();
    near(estimate.links[10].time.0, 10.0);
    near(estimate.independent.lower.0, 100.0);
    let (from, to) = (NodeId(3), NodeId(2));
    let narrowest = estimate.independent.narrowest.unwrap();
    assert_eq!(narrowest, Resource::Link { link: LinkId(5), from, to });
    assert_eq!(narrowest.to_string(), "link 5 from node 3 to 2");
}

#[test]
fn a_fixed_time_per_access_takes_the_place_of_the_instructions() {
    let fixed = Some(Assumption::new(8.0, "solved from a measured loop"));
    let assumptions = Assumptions { compute_per_access: fixed, ..plain() };
    let mut flows = nothing(4, 6);
    flows.nodes[3].instructions = u64::MAX;
    flows.nodes[3].accesses = 100;
    flows.nodes[3].memory = vec![0, 0, 0, 100];
    let costs = nehalem(&assumptions);
    let each = Estimate::from_flows(&costs, &flows).unwrap().independent.per_access(100).unwrap();
    near(each.lower.0, 8.0 + 15.0);
    assert!(costs.figures().iter().any(|figure| figure.origin == "solved from a measured loop"));
    assert!(!costs.figures().iter().any(|figure| figure.name == "instructions"));
}

#[test]
fn assumed_busy_cpus_take_the_place_of_those_counted() {
    let busy_cpus = Some(Assumption::new(4.0, "threads"));
    let mut flows = nothing(4, 6);
    flows.nodes[0].instructions = 800;
    flows.nodes[0].busy_cpus = 8.0;
    let time =
        |a: &Assumptions| Estimate::from_flows(&nehalem(a), &flows).unwrap().nodes[0].compute.0;
    near(time(&plain()), 100.0);
    near(time(&Assumptions { busy_cpus, ..plain() }), 200.0);
}

#[test]
fn empty_counts_take_no_time_and_have_no_bottleneck() {
    let estimate = Estimate::from_flows(&shipped("westmere-ex-4"), &nothing(4, 6)).unwrap();
    assert_eq!(estimate.independent.upper.0, 0.0);
    assert_eq!(estimate.independent.narrowest, None);
    assert_eq!(estimate.independent.per_access(0), None);
}

#[test]
fn counts_of_another_machine_are_refused() {
    let costs = shipped("westmere-ex-4");
    let refused = |flows| Estimate::from_flows(&costs, &flows).unwrap_err();
    let links = refused(nothing(4, 5));
    assert_eq!(links, FlowsError { what: "links", found: 5, expected: 6 });
    assert!(links.to_string().contains("of the same run"), "{links}");
    assert_eq!(refused(nothing(5, 6)).what, "nodes");
    let mut uneven = nothing(4, 6);
    uneven.nodes[3].dirty.pop();
    assert_eq!(refused(uneven).what, "holders of written lines");
}
