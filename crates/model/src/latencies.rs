//! Latency of memory from every node to every node.

use std::cmp::Reverse;
use std::collections::HashMap;

use atoll_topology::{Fact, Knowledge, NodeId, Quantity, Source, Subject};

use crate::Assumptions;
use crate::assumptions::is_usable;
use crate::figures::Ledger;

const LOCAL: &str = "latency of local memory";
const REMOTE: &str = "latency of remote memory";
/// Distance of a node to itself (ACPI, SLIT).
const DISTANCE_LOCAL: f64 = 10.0;

/// Latencies in ns, row = node of the cpus, column = home, in the order of the machine's nodes.
///
/// A fact about the path takes precedence. Otherwise the latency of the node's own memory is scaled by the distance,
/// or by the assumed ratio if distances are assumed.
pub(crate) fn latencies<'a>(
    knowledge: &'a Knowledge,
    assumptions: &'a Assumptions,
    ledger: &mut Ledger<'a>,
) -> Vec<Vec<f64>> {
    let machine = &knowledge.machine;
    let facts = idle(knowledge);
    let mut rows = Vec::with_capacity(machine.nodes.len());
    let mut unused = Ledger::default();
    for (i, from) in machine.nodes.iter().enumerate() {
        // No thread waits on a node without cpus: its figures have no effect.
        let ledger = if from.cpus.is_empty() { &mut unused } else { &mut *ledger };
        let own = facts.get(&(from.id, from.id)).map(|fact| ledger.fact(LOCAL, "ns", fact));
        let own = own.unwrap_or_else(|| ledger.assumed(LOCAL, "ns", &assumptions.latency_local));
        let row =
            machine.nodes.iter().enumerate().map(|(j, to)| match facts.get(&(from.id, to.id)) {
                _ if i == j => own,
                Some(fact) => ledger.fact(REMOTE, "ns", fact),
                None if machine.distances_source == Source::Assumed => {
                    let ratio = &assumptions.latency_remote;
                    let value = own * ratio.value;
                    ledger.note(REMOTE, (value, "ns"), Source::Assumed, &ratio.origin)
                }
                None => {
                    let value = own * f64::from(machine.distances[i][j]) / DISTANCE_LOCAL;
                    let origin = "the local latency × distance / 10";
                    ledger.note(REMOTE, (value, "ns"), Source::Assumed, origin)
                }
            });
        rows.push(row.collect());
    }
    rows
}

/// The most trusted idle latency of each path. Latency is measured by one thread, whether or not a fact has that
/// condition.
fn idle(knowledge: &Knowledge) -> HashMap<(NodeId, NodeId), &Fact> {
    let mut best: HashMap<(NodeId, NodeId), &Fact> = HashMap::new();
    for fact in &knowledge.facts {
        let Subject::Path { from, to } = fact.subject else { continue };
        let idle = fact.conditions.load.is_none() && fact.conditions.threads.unwrap_or(1) == 1;
        if fact.quantity != Quantity::Latency || !idle || !is_usable(fact.value) {
            continue;
        }
        let trust = |fact: &Fact| (fact.source, Reverse(fact.at));
        let known = best.entry((from, to)).or_insert(fact);
        if trust(fact) < trust(known) {
            *known = fact;
        }
    }
    best
}
