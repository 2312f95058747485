//! Bandwidth of memory controllers and links.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use atoll_topology::{Fact, Knowledge, Quantity, Subject};

use crate::Assumptions;
use crate::assumptions::is_usable;
use crate::figures::Ledger;

const CONTROLLER: &str = "bandwidth of a memory controller";
const LINK: &str = "bandwidth of a link, one direction";

/// GB/s of each controller, in the order of the machine's nodes: the read bandwidth of the node's own cpus, or for a
/// node without cpus that of the best other node.
pub(crate) fn controllers<'a>(
    knowledge: &'a Knowledge,
    assumptions: &'a Assumptions,
    ledger: &mut Ledger<'a>,
) -> Vec<f64> {
    let facts = saturated(knowledge);
    let nodes = &knowledge.machine.nodes;
    let of_node = |to| {
        let path = |from| facts.get(&Subject::Path { from, to }).copied();
        let others = || nodes.iter().filter_map(|node| path(node.id));
        path(to).or_else(|| others().max_by(|a, b| a.value.total_cmp(&b.value)))
    };
    let mut unused = Ledger::default();
    let ledgered = |node: &atoll_topology::Node| {
        let ledger = if node.memory.0 == 0 { &mut unused } else { &mut *ledger };
        match of_node(node.id) {
            Some(fact) => ledger.fact(CONTROLLER, "GB/s", fact),
            None => ledger.assumed(CONTROLLER, "GB/s", &assumptions.bandwidth_controller),
        }
    };
    nodes.iter().map(ledgered).collect()
}

/// GB/s of each link in one direction, in the order of the machine's links.
pub(crate) fn links<'a>(
    knowledge: &'a Knowledge,
    assumptions: &'a Assumptions,
    ledger: &mut Ledger<'a>,
) -> Vec<f64> {
    let facts = saturated(knowledge);
    let ledgered = |link: &atoll_topology::Link| match facts.get(&Subject::Link(link.id)) {
        Some(fact) => ledger.fact(LINK, "GB/s", fact),
        None => ledger.assumed(LINK, "GB/s", &assumptions.bandwidth_link),
    };
    knowledge.machine.links.iter().map(ledgered).collect()
}

/// The saturated read bandwidth of every path and link, as
/// [`Knowledge::bandwidth`] chooses it: for each number of threads the most trusted and newest fact
/// counts, and of those of the most trusted source the largest.
fn saturated(knowledge: &Knowledge) -> HashMap<Subject, &Fact> {
    let usable = knowledge.facts.iter().filter(|fact| {
        let idle = fact.conditions.load.is_none();
        fact.quantity == Quantity::ReadBandwidth && idle && is_usable(fact.value)
    });
    let key = |fact: &Fact| (fact.subject, fact.source, fact.conditions.threads);
    let newest = best(usable, key, |fact| Reverse(fact.at));
    // The bits of positive floats are ordered like their values.
    let rank = |fact: &Fact| (fact.source, Reverse(fact.value.to_bits()));
    best(newest.into_values(), |fact| fact.subject, rank)
}

/// The fact of least rank for each key.
fn best<'a, K: Hash + Eq, R: Ord>(
    facts: impl Iterator<Item = &'a Fact>,
    key: impl Fn(&Fact) -> K,
    rank: impl Fn(&Fact) -> R,
) -> HashMap<K, &'a Fact> {
    let mut best: HashMap<K, &Fact> = HashMap::new();
    for fact in facts {
        let known = best.entry(key(fact)).or_insert(fact);
        if rank(fact) < rank(known) {
            *known = fact;
        }
    }
    best
}
