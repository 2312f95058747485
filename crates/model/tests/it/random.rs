//! Invariants for any machine and any counts.

use atoll_model::{Assumptions, ControllerFlow, Costs, Estimate, Flows, LinkFlow, NodeFlow};
use atoll_testkit::machines;
use atoll_topology::{
    Conditions, CpuId, Fact, Knowledge, LinkId, NodeId, PackageId, Quantity, Source, Subject,
    links_assumed,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Facts about things that may not be there, with values of any size.
fn fact() -> impl Strategy<Value = Fact> {
    let id = 0..9u32;
    let subject = prop_oneof![
        (id.clone(), id.clone())
            .prop_map(|(a, b)| Subject::Path { from: NodeId(a), to: NodeId(b) }),
        id.clone().prop_map(|id| Subject::Link(LinkId(id))),
        id.clone().prop_map(|id| Subject::Package(PackageId(id))),
        id.prop_map(|id| Subject::CpuPair { from: CpuId(id), to: CpuId(0) }),
    ];
    let value = prop_oneof![any::<f64>(), 0.1..1000.0, Just(0.0), Just(f64::NAN)];
    let threads = prop::option::of(0..3u32);
    (subject, select(&Quantity::ALL[..]), value, select(&Source::ALL[..]), threads).prop_map(
        |(subject, quantity, value, source, threads)| Fact {
            conditions: Conditions { threads, load: None },
            ..Fact::new(subject, quantity, value, source, "test")
        },
    )
}

/// One of the fake machines with links and facts.
fn known() -> impl Strategy<Value = Knowledge> {
    (any::<Index>(), prop::collection::vec(fact(), 0..40)).prop_map(|(which, facts)| {
        let mut machine = which.get(&machines::all()).clone();
        machine.links = links_assumed(&machine);
        Knowledge { machine, facts }
    })
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..1_000_000u64, any::<u64>()]
}

fn flows(nodes: usize, links: usize) -> impl Strategy<Value = Flows> {
    let counts = move || prop::collection::vec(count(), nodes);
    let scalars = prop::collection::vec(count(), 6);
    let busy = prop_oneof![any::<f64>(), 0.0..9.0, Just(f64::NAN), Just(f64::INFINITY)];
    let node = (busy, scalars, counts(), counts(), counts()).prop_map(
        |(busy_cpus, scalars, memory, clean, dirty)| NodeFlow {
            busy_cpus,
            instructions: scalars[0],
            accesses: scalars[1],
            l2_hits: scalars[2],
            llc_hits: scalars[3],
            upgrades: scalars[4],
            dtlb_misses: scalars[5],
            memory,
            clean,
            dirty,
        },
    );
    let both = || (count(), count());
    let controller = both().prop_map(|(read, written)| ControllerFlow { read, written });
    let link = both().prop_map(|(forward, backward)| LinkFlow { forward, backward });
    (
        prop::collection::vec(node, nodes),
        prop::collection::vec(controller, nodes),
        prop::collection::vec(link, links),
    )
        .prop_map(|(nodes, controllers, links)| Flows { nodes, controllers, links })
}

fn case() -> impl Strategy<Value = (Knowledge, Flows)> {
    known().prop_flat_map(|known| {
        let flows = flows(known.machine.nodes.len(), known.machine.links.len());
        (Just(known), flows)
    })
}

proptest! {
    #[test]
    fn bounds_are_finite_ordered_and_no_shorter_for_dependent_accesses((known, flows) in case()) {
        let costs = Costs::from_knowledge(&known, &Assumptions::default()).unwrap();
        let estimate = Estimate::from_flows(&costs, &flows).unwrap();
        for bounds in [&estimate.independent, &estimate.dependent] {
            prop_assert!(bounds.upper.0.is_finite() && bounds.lower.0 >= 0.0, "{bounds:?}");
            prop_assert!(bounds.lower.0 <= bounds.upper.0, "{bounds:?}");
            prop_assert!(bounds.serial.0.is_finite(), "{bounds:?}");
            prop_assert!(bounds.latency.0 <= bounds.serial.0, "{bounds:?}");
            prop_assert_eq!(bounds.narrowest.is_some(), bounds.lower.0 > 0.0);
        }
        prop_assert!(estimate.independent.upper.0 <= estimate.dependent.upper.0);
        for node in &estimate.nodes {
            prop_assert!(node.busy_cpus >= 1.0 && node.wait.0.is_finite(), "{node:?}");
        }
        for figure in &estimate.figures {
            prop_assert!(figure.least.is_finite() && figure.least <= figure.most, "{figure:?}");
        }
        let text = serde_json::to_string(&estimate).unwrap();
        let read: Estimate = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.nodes.len(), estimate.nodes.len());
        prop_assert_eq!(read.independent.narrowest, estimate.independent.narrowest);
    }

    #[test]
    fn more_traffic_never_takes_less_time((known, flows) in case(), at in any::<Index>()) {
        let costs = Costs::from_knowledge(&known, &Assumptions::default()).unwrap();
        let before = Estimate::from_flows(&costs, &flows).unwrap();
        let mut more = flows;
        let node = at.index(more.nodes.len());
        more.nodes[node].memory[0] = more.nodes[node].memory[0].saturating_add(1 << 20);
        more.controllers[node].written = more.controllers[node].written.saturating_add(1 << 20);
        let after = Estimate::from_flows(&costs, &more).unwrap();
        prop_assert!(after.independent.lower.0 >= before.independent.lower.0);
        prop_assert!(after.independent.upper.0 >= before.independent.upper.0);
    }
}
