use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atoll_testkit::machines;
use atoll_topology::{
    Age, Conditions, Fact, Knowledge, NodeId, Quantity, Source, Subject, rfc3339,
};

fn at(seconds: u64) -> Option<SystemTime> {
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

fn path(from: u32, to: u32) -> Subject {
    Subject::Path { from: NodeId(from), to: NodeId(to) }
}

fn fact(subject: Subject, quantity: Quantity, value: f64, source: Source) -> Fact {
    Fact::new(subject, quantity, value, source, "a test")
}

fn by_threads(threads: u32, value: f64, source: Source, seconds: u64) -> Fact {
    Fact {
        conditions: Conditions { threads: Some(threads), load: None },
        at: at(seconds),
        ..fact(path(0, 1), Quantity::ReadBandwidth, value, source)
    }
}

fn knowing(facts: Vec<Fact>) -> Knowledge {
    Knowledge { machine: machines::two_nodes(), facts }
}

fn values(knowledge: &Knowledge) -> Vec<f64> {
    knowledge.facts.iter().map(|fact| fact.value).collect()
}

#[test]
fn the_structure_is_facts_too() {
    let machine = machines::eight_uneven_nodes();
    let knowledge = Knowledge::from_machine(machine.clone());
    let count = |quantity| knowledge.all_facts().filter(|fact| fact.quantity == quantity).count();
    assert_eq!(count(Quantity::Memory), 8);
    assert_eq!(count(Quantity::MemoryFree), 8);
    assert_eq!(count(Quantity::Distance), 64);
    assert_eq!(count(Quantity::Cache), machine.domains.len());
    for fact in knowledge.all_facts() {
        let best = knowledge.best(fact.subject, fact.quantity, fact.conditions).unwrap();
        assert_eq!(best, *fact);
        assert!(!fact.origin.is_empty());
        let expected = match (fact.subject, fact.quantity) {
            (Subject::Node(node), Quantity::Memory) => machine.node(node).unwrap().memory.0,
            (Subject::Node(node), _) => machine.node(node).unwrap().memory_free.0,
            (Subject::Domain(id), _) => machine.domains[id.index()].cache.unwrap().0,
            (Subject::Path { from, to }, _) => machine.distance(from, to).unwrap().into(),
            other => panic!("{other:?}"),
        };
        assert_eq!(fact.value, expected as f64);
    }
}

#[test]
fn free_memory_that_was_read_with_its_time_is_listed_once() {
    let observed = Fact {
        at: at(5),
        ..fact(Subject::Node(NodeId(1)), Quantity::MemoryFree, 7.0, Source::Observed)
    };
    let knowledge = knowing(vec![observed.clone()]);
    let free = knowledge.all_facts().filter(|fact| fact.quantity == Quantity::MemoryFree);
    assert_eq!(free.count(), 2);
    let best = knowledge.best(observed.subject, Quantity::MemoryFree, Conditions::default());
    assert_eq!(best, Some(observed));
}

#[test]
fn the_best_fact_is_the_most_trusted_and_then_the_newest() {
    let latency =
        |value, source, at| Fact { at, ..fact(path(0, 1), Quantity::Latency, value, source) };
    let knowledge = knowing(vec![
        latency(1.0, Source::Declared, None),
        latency(2.0, Source::Measured, at(10)),
        latency(3.0, Source::Measured, at(20)),
        latency(4.0, Source::Discovered, at(30)),
        latency(5.0, Source::Measured, None),
    ]);
    assert_eq!(knowledge.latency(NodeId(0), NodeId(1)).unwrap().value, 3.0);
    assert_eq!(knowledge.latency(NodeId(1), NodeId(0)), None);
}

#[test]
fn a_measured_figure_beats_the_structure_s() {
    let distance = fact(path(0, 1), Quantity::Distance, 33.0, Source::Measured);
    let knowledge = knowing(vec![distance.clone()]);
    let best =
        |subject| knowledge.best(subject, Quantity::Distance, Conditions::default()).unwrap();
    assert_eq!(best(path(0, 1)), distance);
    assert_eq!((best(path(1, 0)).value, best(path(1, 0)).source), (21.0, Source::Synthetic));
    assert_eq!(knowledge.matrix(Quantity::Distance).rows[0], [Some(10.0), Some(33.0)]);
}

#[test]
fn conditions_must_be_met_exactly() {
    let knowledge = knowing(vec![by_threads(4, 9.0, Source::Measured, 1)]);
    let best = |conditions| knowledge.best(path(0, 1), Quantity::ReadBandwidth, conditions);
    assert!(best(Conditions { threads: Some(4), load: None }).is_some());
    assert!(best(Conditions::default()).is_none());
    assert!(best(Conditions { threads: Some(4), load: Some(1.0) }).is_none());
}

#[test]
fn a_saturated_bandwidth_is_the_largest_of_the_newest_of_the_most_trusted() {
    let loaded = Fact {
        conditions: Conditions { threads: Some(2), load: Some(1.0) },
        ..by_threads(2, 70.0, Source::Measured, 9)
    };
    let knowledge = knowing(vec![
        by_threads(1, 50.0, Source::Measured, 1), // outdated
        by_threads(1, 10.0, Source::Measured, 2),
        by_threads(2, 18.0, Source::Measured, 2),
        by_threads(4, 17.0, Source::Measured, 2),
        by_threads(8, 60.0, Source::Declared, 9), // less trusted
        loaded,
    ]);
    let bandwidth = |threads| {
        let found = knowledge.bandwidth(NodeId(0), NodeId(1), Quantity::ReadBandwidth, threads);
        found.map(|fact| (fact.value, fact.conditions.threads.unwrap()))
    };
    assert_eq!(bandwidth(None), Some((18.0, 2)));
    assert_eq!(bandwidth(Some(4)), Some((17.0, 4)));
    assert_eq!(bandwidth(Some(8)), Some((60.0, 8)));
    assert_eq!(bandwidth(Some(3)), None);
    assert_eq!(knowledge.matrix(Quantity::ReadBandwidth).get(NodeId(0), NodeId(1)), Some(18.0));
}

#[test]
fn a_matrix_has_gaps_where_nothing_is_known_and_the_least_trusted_source() {
    let latency = |from, to, value, source, seconds| Fact {
        at: at(seconds),
        ..fact(path(from, to), Quantity::Latency, value, source)
    };
    let knowledge = knowing(vec![
        latency(0, 0, 80.0, Source::Measured, 30),
        latency(0, 1, 140.0, Source::Declared, 20),
        latency(0, 7, 1.0, Source::Assumed, 1), // not in the machine
    ]);
    let matrix = knowledge.matrix(Quantity::Latency);
    assert_eq!(matrix.rows, [[Some(80.0), Some(140.0)], [None, None]]);
    assert_eq!((matrix.source, matrix.oldest), (Some(Source::Declared), at(20)));
    assert!(knowledge.matrix(Quantity::CopyBandwidth).is_empty());
    assert_eq!(matrix.get(NodeId(0), NodeId(7)), None);
}

#[test]
fn newer_facts_replace_older_ones_of_the_same_origin_and_conditions() {
    let mut knowledge = knowing(vec![by_threads(1, 1.0, Source::Measured, 10)]);
    let other_origin =
        Fact { origin: "another".to_owned(), ..by_threads(1, 6.0, Source::Measured, 1) };
    knowledge.merge([
        by_threads(1, 2.0, Source::Measured, 20),
        by_threads(1, 3.0, Source::Measured, 15),
        by_threads(2, 4.0, Source::Measured, 5),
        by_threads(1, 5.0, Source::Declared, 5),
        other_origin,
    ]);
    assert_eq!(values(&knowledge), [2.0, 4.0, 5.0, 6.0]);
    knowledge.merge([by_threads(1, 7.0, Source::Measured, 20)]);
    assert_eq!(values(&knowledge), [7.0, 4.0, 5.0, 6.0]);
}

#[test]
fn ages_read_as_people_say_them() {
    let age = |seconds| Age(Duration::from_secs(seconds)).to_string();
    assert_eq!(age(0), "just now");
    assert_eq!(
        (age(59), age(60), age(119)),
        ("59 s ago".into(), "1 min ago".into(), "1 min ago".into())
    );
    assert_eq!((age(3599), age(7200)), ("59 min ago".into(), "2 h ago".into()));
    assert_eq!((age(86_400), age(172_800)), ("1 day ago".into(), "2 days ago".into()));
    let now = SystemTime::now();
    assert_eq!(Age::since(now + Duration::from_secs(9), now).to_string(), "just now");
    assert_eq!(Age::since(now, now + Duration::from_secs(180)).to_string(), "3 min ago");
}

#[test]
fn times_are_those_that_date_prints() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (1_795_304_000, "2026-11-21T23:33:20Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(rfc3339(at(seconds).unwrap()), text);
    }
    assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
}
