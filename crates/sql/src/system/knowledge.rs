//! `atoll.facts`, `atoll.latency`, `atoll.bandwidth`, `atoll.links`: the known facts about the machine, each figure
//! with its source and age.

use std::sync::Arc;

use atoll_topology::{Conditions, Fact, Knowledge, Quantity, Subject};

use super::column::ColumnSpecs;
use super::{SystemTable, now};

/// One row per fact: its subject, quantity, conditions, spread, source and time.
pub(super) fn facts(knowledge: Arc<Knowledge>) -> SystemTable {
    ColumnSpecs::<Fact>::new()
        .column("subject", |fact| fact.subject.to_string())
        .column("quantity", |fact| fact.quantity.name())
        .column("value", |fact| fact.value)
        .column("unit", |fact| fact.quantity.unit())
        .column("threads", |fact| fact.conditions.threads)
        .column("load_gb_s", |fact| fact.conditions.load)
        .spread()
        .column("runs", |fact| fact.spread.map(|spread| spread.runs))
        .provenance()
        .table("facts", move |_| now(knowledge.all_facts().map(|fact| fact.into_owned())))
}

/// One row per latency figure between two nodes, idle or loaded.
pub(super) fn latency(knowledge: Arc<Knowledge>) -> SystemTable {
    let is_latency = |q: Quantity| matches!(q, Quantity::Latency | Quantity::LoadedLatency);
    ColumnSpecs::<Fact>::new()
        .ends()
        .column("latency_ns", |fact| fact.value)
        .column("load_gb_s", |fact| fact.conditions.load)
        .spread()
        .provenance()
        .table("latency", move |_| now(of_paths(&knowledge, is_latency)))
}

/// One row per bandwidth figure between two nodes.
pub(super) fn bandwidth(knowledge: Arc<Knowledge>) -> SystemTable {
    let is_bandwidth = |quantity: Quantity| quantity.unit() == "GB/s";
    ColumnSpecs::<Fact>::new()
        .ends()
        .column("quantity", |fact| fact.quantity.name())
        .column("threads", |fact| fact.conditions.threads)
        .column("gb_s", |fact| fact.value)
        .spread()
        .provenance()
        .table("bandwidth", move |_| now(of_paths(&knowledge, is_bandwidth)))
}

/// One row per link, with the most trusted figures of one of its directions.
pub(super) fn links(knowledge: Arc<Knowledge>) -> SystemTable {
    let (of_bandwidth, of_latency) = (Arc::clone(&knowledge), Arc::clone(&knowledge));
    let source = knowledge.machine.links_source.name();
    ColumnSpecs::new()
        .column("link", |link: &atoll_topology::Link| link.id.0)
        .column("node_a", |link| link.a.0)
        .column("node_b", |link| link.b.0)
        .column("kind", |link| link.kind.clone())
        .column("bandwidth_gb_s", move |link| of_bandwidth.link_bandwidth(link.id))
        .column("latency_ns", move |link| {
            let subject = Subject::Link(link.id);
            let fact = of_latency.best(subject, Quantity::Latency, Conditions::default());
            fact.map(|fact| fact.value)
        })
        .column("source", move |_| source)
        .table("links", move |_| now(knowledge.machine.links.clone()))
}

/// Facts about paths, ordered by their ends.
fn of_paths(knowledge: &Knowledge, wanted: impl Fn(Quantity) -> bool) -> Vec<Fact> {
    let facts = knowledge.facts.iter();
    let facts = facts.filter(|fact| fact.path().is_some() && wanted(fact.quantity));
    let mut facts: Vec<Fact> = facts.cloned().collect();
    facts.sort_by_key(|fact| (fact.subject, fact.quantity, fact.conditions.threads));
    facts
}

/// Common columns of the tables of facts.
impl ColumnSpecs<Fact> {
    fn ends(self) -> Self {
        // Only facts about paths are rows of such a table.
        self.column("from_node", |fact| fact.path().map_or(0, |(from, _)| from.0))
            .column("to_node", |fact| fact.path().map_or(0, |(_, to)| to.0))
    }

    fn spread(self) -> Self {
        self.column("min", |fact| fact.spread.map(|spread| spread.min))
            .column("max", |fact| fact.spread.map(|spread| spread.max))
    }

    fn provenance(self) -> Self {
        self.column("source", |fact| fact.source.name())
            .column("origin", |fact| fact.origin.clone())
            .column("at", |fact| fact.at)
            .column("age_seconds", |fact| Some(fact.at?.elapsed().ok()?.as_secs_f64()))
    }
}
