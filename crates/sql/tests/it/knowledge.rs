//! The knowledge base in SQL: `atoll.facts`, `atoll.latency`, `atoll.bandwidth`, `atoll.links`.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use atoll_sql::{DatabaseOptions, Session};
use atoll_testkit::{kernel::SimulatedKernel, machines};
use atoll_topology::{Conditions, Fact, Link, LinkId, NodeId, Quantity, Source, Spread, Subject};

use crate::common::{rows, session};

fn path(from: u32, to: u32) -> Subject {
    Subject::Path { from: NodeId(from), to: NodeId(to) }
}

/// Four nodes in a square, some of it measured and one link declared.
fn known() -> Session {
    let mut machine = machines::four_nodes();
    let link = |id, a, b| Link { id: LinkId(id), a: NodeId(a), b: NodeId(b), kind: "QPI".into() };
    machine.links = vec![link(0, 0, 1), link(1, 0, 2)];
    machine.links_source = Source::Declared;
    let measured = |subject, quantity, value, threads| Fact {
        conditions: Conditions { threads, load: None },
        spread: Some(Spread { min: value - 1.0, max: value + 2.0, runs: 5 }),
        at: Some(UNIX_EPOCH + Duration::from_secs(86_400)),
        ..Fact::new(subject, quantity, value, Source::Measured, "a test")
    };
    let facts = vec![
        measured(path(0, 1), Quantity::Latency, 140.0, None),
        measured(path(0, 0), Quantity::Latency, 90.5, None),
        measured(path(0, 1), Quantity::ReadBandwidth, 11.0, Some(4)),
        measured(path(0, 1), Quantity::ReadBandwidth, 6.0, Some(1)),
        Fact::new(
            Subject::Link(LinkId(1)),
            Quantity::ReadBandwidth,
            12.8,
            Source::Declared,
            "a paper",
        ),
    ];
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    session(machine, kernel, DatabaseOptions { facts, ..DatabaseOptions::default() })
}

#[test]
fn latency_joins_with_distances_by_node() {
    let found = rows(
        &known(),
        "SELECT from_node, to_node, distance, latency_ns, l.min, l.max, l.source, l.origin, \
         CAST(at AS DATE), age_seconds > 86400 \
         FROM atoll.latency l JOIN atoll.distances d USING (from_node, to_node) ORDER BY 1, 2",
    );
    let expected = [
        ["0", "0", "10", "90.5", "89.5", "92.5", "measured", "a test", "1970-01-02", "true"],
        ["0", "1", "21", "140.0", "139.0", "142.0", "measured", "a test", "1970-01-02", "true"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn bandwidth_has_a_row_for_each_number_of_threads() {
    let found = rows(
        &known(),
        "SELECT from_node, to_node, quantity, threads, gb_s FROM atoll.bandwidth ORDER BY threads",
    );
    let expected =
        [["0", "1", "read_bandwidth", "1", "6.0"], ["0", "1", "read_bandwidth", "4", "11.0"]];
    assert_eq!(found, expected);
}

#[test]
fn a_link_without_figures_has_nulls() {
    let found = rows(&known(), "SELECT * FROM atoll.links ORDER BY link");
    let expected = [
        ["0", "0", "1", "QPI", "NULL", "NULL", "declared"],
        ["1", "0", "2", "QPI", "12.8", "NULL", "declared"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn facts_include_stored_ones_and_those_of_the_structure() {
    let session = known();
    let count = "SELECT count(*) FROM atoll.facts WHERE ";
    let found = |filter: &str| rows(&session, &format!("{count}{filter}"))[0][0].clone();
    assert_eq!(found("source = 'measured' AND runs = 5"), "4");
    assert_eq!(found("quantity = 'distance' AND subject = 'path 0-3' AND value = 31"), "1");
    assert_eq!(found("quantity = 'distance'"), "16");
    assert_eq!(found("quantity = 'memory' AND subject LIKE 'node %' AND unit = 'bytes'"), "4");
    assert_eq!(found("origin = ''"), "0");
}
