//! `atoll.facts`, `atoll.latency`, `atoll.bandwidth`, `atoll.links`: what is known of the machine, each
//! figure with its source and age.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use atoll_topology::{Conditions, Fact, Knowledge, Link, LinkId, NodeId, Quantity, Subject};
use datafusion::arrow::array::{
    ArrayRef, Float64Array, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use datafusion::arrow::datatypes::DataType::{Float64, Timestamp, UInt32, Utf8};
use datafusion::arrow::datatypes::TimeUnit::Microsecond;

use super::{SystemTable, table};

/// Every figure: what it is about, what it tells, under which conditions, how far it spreads, who says
/// so and when.
pub(super) fn facts(knowledge: Arc<Knowledge>) -> SystemTable {
    table(
        "facts",
        &[
            ("subject", Utf8, false),
            ("quantity", Utf8, false),
            ("value", Float64, false),
            ("unit", Utf8, false),
            ("threads", UInt32, true),
            ("load_gb_s", Float64, true),
            ("min", Float64, true),
            ("max", Float64, true),
            ("runs", UInt32, true),
            ("source", Utf8, false),
            ("origin", Utf8, false),
            ("at", Timestamp(Microsecond, None), true),
            ("age_seconds", Float64, true),
        ],
        Box::new(move |_| {
            let facts: Vec<_> = knowledge.all_facts().collect();
            let facts: Vec<&Fact> = facts.iter().map(|fact| &**fact).collect();
            let mut values = vec![
                texts(&facts, |fact| fact.subject.to_string()),
                texts(&facts, |fact| fact.quantity.name().to_owned()),
                floats(&facts, |fact| Some(fact.value)),
                texts(&facts, |fact| fact.quantity.unit().to_owned()),
                numbers(&facts, |fact| fact.conditions.threads),
                floats(&facts, |fact| fact.conditions.load),
            ];
            values.extend(spread(&facts));
            values.push(numbers(&facts, |fact| fact.spread.map(|spread| spread.runs)));
            values.extend(provenance(&facts));
            Box::pin(async move { Ok(values) })
        }),
    )
}

/// One row for each figure of latency between two nodes, idle or loaded.
pub(super) fn latency(knowledge: Arc<Knowledge>) -> SystemTable {
    table(
        "latency",
        &[
            ("from_node", UInt32, false),
            ("to_node", UInt32, false),
            ("latency_ns", Float64, false),
            ("load_gb_s", Float64, true),
            ("min", Float64, true),
            ("max", Float64, true),
            ("source", Utf8, false),
            ("origin", Utf8, false),
            ("at", Timestamp(Microsecond, None), true),
            ("age_seconds", Float64, true),
        ],
        Box::new(move |_| {
            let is_latency = |q: Quantity| matches!(q, Quantity::Latency | Quantity::LoadedLatency);
            let facts = of_paths(&knowledge, is_latency);
            let mut values = ends(&facts);
            values.push(floats(&facts, |fact| Some(fact.value)));
            values.push(floats(&facts, |fact| fact.conditions.load));
            values.extend(spread(&facts));
            values.extend(provenance(&facts));
            Box::pin(async move { Ok(values) })
        }),
    )
}

/// One row for each figure of bandwidth between two nodes.
pub(super) fn bandwidth(knowledge: Arc<Knowledge>) -> SystemTable {
    table(
        "bandwidth",
        &[
            ("from_node", UInt32, false),
            ("to_node", UInt32, false),
            ("quantity", Utf8, false),
            ("threads", UInt32, true),
            ("gb_s", Float64, false),
            ("min", Float64, true),
            ("max", Float64, true),
            ("source", Utf8, false),
            ("origin", Utf8, false),
            ("at", Timestamp(Microsecond, None), true),
            ("age_seconds", Float64, true),
        ],
        Box::new(move |_| {
            let facts = of_paths(&knowledge, |quantity| quantity.unit() == "GB/s");
            let mut values = ends(&facts);
            values.push(texts(&facts, |fact| fact.quantity.name().to_owned()));
            values.push(numbers(&facts, |fact| fact.conditions.threads));
            values.push(floats(&facts, |fact| Some(fact.value)));
            values.extend(spread(&facts));
            values.extend(provenance(&facts));
            Box::pin(async move { Ok(values) })
        }),
    )
}

/// One row a link, with the most trusted figures of one of its directions.
pub(super) fn links(knowledge: Arc<Knowledge>) -> SystemTable {
    table(
        "links",
        &[
            ("link", UInt32, false),
            ("node_a", UInt32, false),
            ("node_b", UInt32, false),
            ("kind", Utf8, false),
            ("bandwidth_gb_s", Float64, true),
            ("latency_ns", Float64, true),
            ("source", Utf8, false),
        ],
        Box::new(move |_| {
            let values = link_values(&knowledge);
            Box::pin(async move { Ok(values) })
        }),
    )
}

fn link_values(knowledge: &Knowledge) -> Vec<ArrayRef> {
    let links = &knowledge.machine.links;
    let figure = |of: &dyn Fn(LinkId) -> Option<f64>| -> ArrayRef {
        Arc::new(links.iter().map(|link| of(link.id)).collect::<Float64Array>())
    };
    let latency = |link| {
        let fact = knowledge.best(Subject::Link(link), Quantity::Latency, Conditions::default());
        fact.map(|fact| fact.value)
    };
    let source = knowledge.machine.links_source.name();
    let number = |number: fn(&Link) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(links.iter().map(number)))
    };
    vec![
        number(|link| link.id.0),
        number(|link| link.a.0),
        number(|link| link.b.0),
        Arc::new(StringArray::from_iter_values(links.iter().map(|link| &link.kind))),
        figure(&|link| knowledge.link_bandwidth(link)),
        figure(&latency),
        Arc::new(StringArray::from_iter_values(links.iter().map(|_| source))),
    ]
}

/// Figures about paths, ordered by their ends.
fn of_paths(knowledge: &Knowledge, wanted: impl Fn(Quantity) -> bool) -> Vec<&Fact> {
    let mut facts: Vec<&Fact> = knowledge
        .facts
        .iter()
        .filter(|fact| path(fact).is_some() && wanted(fact.quantity))
        .collect();
    facts.sort_by_key(|fact| (fact.subject, fact.quantity, fact.conditions.threads));
    facts
}

fn path(fact: &Fact) -> Option<(NodeId, NodeId)> {
    match fact.subject {
        Subject::Path { from, to } => Some((from, to)),
        _ => None,
    }
}

/// `from_node`, `to_node`.
fn ends(facts: &[&Fact]) -> Vec<ArrayRef> {
    vec![
        numbers(facts, |fact| path(fact).map(|(from, _)| from.0)),
        numbers(facts, |fact| path(fact).map(|(_, to)| to.0)),
    ]
}

/// `min`, `max`.
fn spread(facts: &[&Fact]) -> Vec<ArrayRef> {
    vec![
        floats(facts, |fact| fact.spread.map(|spread| spread.min)),
        floats(facts, |fact| fact.spread.map(|spread| spread.max)),
    ]
}

/// `source`, `origin`, `at`, `age_seconds`.
fn provenance(facts: &[&Fact]) -> Vec<ArrayRef> {
    let now = SystemTime::now();
    let micros = |at: SystemTime| {
        at.duration_since(UNIX_EPOCH).ok().and_then(|time| i64::try_from(time.as_micros()).ok())
    };
    let age = |at: SystemTime| now.duration_since(at).ok().map(|age| age.as_secs_f64());
    vec![
        texts(facts, |fact| fact.source.name().to_owned()),
        texts(facts, |fact| fact.origin.clone()),
        Arc::new(
            facts
                .iter()
                .map(|fact| fact.at.and_then(micros))
                .collect::<TimestampMicrosecondArray>(),
        ),
        floats(facts, |fact| fact.at.and_then(age)),
    ]
}

fn texts(facts: &[&Fact], value: impl Fn(&Fact) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(facts.iter().map(|fact| value(fact))))
}

fn floats(facts: &[&Fact], value: impl Fn(&Fact) -> Option<f64>) -> ArrayRef {
    Arc::new(facts.iter().map(|fact| value(fact)).collect::<Float64Array>())
}

fn numbers(facts: &[&Fact], value: impl Fn(&Fact) -> Option<u32>) -> ArrayRef {
    Arc::new(facts.iter().map(|fact| value(fact)).collect::<UInt32Array>())
}
