use std::time::{Duration, SystemTime};

use atoll_formats::{FormatError, toml};
use atoll_testkit::machines;
use atoll_topology::{
    Bytes, Cache, CacheKind, Conditions, CpuId, CpuTimeLimit, DomainId, Fact, HugePages, Knowledge,
    Limits, Link, LinkId, Machine, MachineBuilder, MemoryLimit, NodeId, NodeShape, Numbering,
    PackageId, Quantity, Source, Spread, Subject,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const SMALL: &str = r#"
name = "small"
source = "declared"
origin = "a test"

[[node]]
id = "0-1"
domains = 2
cores = 2
threads = 2
memory = "32GiB"

[[cache]]
level = 3
per = "domain"
size = "16MiB"
"#;

fn read(text: &str) -> Knowledge {
    toml::parse(text, "small.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn refuse(text: &str) -> FormatError {
    let error = toml::parse(text, "small.toml").expect_err(text);
    assert_eq!(error.file, "small.toml");
    error
}

fn assert_round_trip(knowledge: &Knowledge) {
    let text = toml::write(knowledge);
    let again = toml::parse(&text, "again.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again, *knowledge, "{text}");
}

const SOURCES: [Source; 6] = [
    Source::Measured,
    Source::Observed,
    Source::Discovered,
    Source::Declared,
    Source::Synthetic,
    Source::Assumed,
];

fn sources() -> impl Strategy<Value = Source> {
    select(&SOURCES[..])
}

/// Figures as programs find them: whole, tiny, huge.
fn figures() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e4f64, (0u32..1_000_000).prop_map(f64::from), 0.0..1e300f64, Just(1e-310)]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,30}", "\\PC{0,20}", Just("a\"b\\c\n\t\r\u{0}\u{7f}\u{85}'''".to_owned())]
}

fn shapes() -> impl Strategy<Value = (u32, NodeShape)> {
    (0..2000u32, 0..6u32, 0..4u32, 1..4u32, 1..3u32, 0..1u64 << 50, any::<Option<u32>>()).prop_map(
        |(id, package, domains, cores, threads, memory, cache)| {
            let memory = if domains == 0 { memory.max(1) } else { memory };
            let shape = NodeShape::with_cpus(NodeId(id), domains, cores, threads)
                .package(PackageId(package))
                .memory(Bytes(memory));
            (id, cache.map_or(shape.clone(), |cache| shape.cache(Bytes(u64::from(cache)))))
        },
    )
}

/// Machines of random shape, with everything that discovery may add.
fn random_machines() -> impl Strategy<Value = Machine> {
    let more = (
        texts(),
        any::<Option<u32>>(),
        [sources(), sources(), sources(), sources(), sources(), sources()],
        prop::collection::vec((any::<Index>(), any::<Index>(), "[a-zA-Z \"]{1,8}"), 0..6),
        prop::collection::vec(
            (1..5u32, 0..3u8, any::<Option<u32>>(), any::<Option<u16>>(), any::<Index>()),
            0..8,
        ),
        (any::<bool>(), any::<bool>(), figures()),
    );
    let nodes = (shapes(), prop::collection::vec(shapes(), 0..5));
    (nodes, any::<bool>(), prop::collection::vec(1..300u32, 36), more)
        .prop_map(|((first, others), last, distances, more)| {
            let first = (first.0, NodeShape::with_cpus(NodeId(first.0), 1, 2, 2).memory(Bytes(7)));
            let mut shapes: Vec<_> = others.into_iter().chain([first]).rev().collect();
            shapes.sort_by_key(|(id, _)| *id);
            shapes.dedup_by_key(|(id, _)| *id);
            let count = shapes.len();
            let rows = distances.chunks(6).take(count).map(|row| row[..count].to_vec()).collect();
            let numbering = if last { Numbering::ThreadsLast } else { Numbering::CoreByCore };
            let empty = MachineBuilder::new(more.0.clone()).numbering(numbering).distances(rows);
            let full = shapes.into_iter().fold(empty, |builder, (_, shape)| builder.node(shape));
            (full.build(), more)
        })
        .prop_filter_map("has no cpus", |(machine, more)| Some((machine.ok()?, more)))
        .prop_map(|(mut machine, (text, number, sources, links, caches, (hide, limit, share)))| {
            [machine.source, machine.memory_source, machine.caches_source] =
                [sources[0], sources[1], sources[2]];
            [machine.links_source, machine.distances_source, machine.pages_source] =
                [sources[3], sources[4], sources[5]];
            machine.links = random_links(&machine, &links);
            machine.caches = random_caches(&machine, &caches);
            machine.huge_page_size = number.map(|number| Bytes(u64::from(number)));
            machine.packages[0].model = Some(text.clone());
            if let Some(number) = number {
                let (size, total) = (Bytes(2 << 20), u64::from(number));
                machine.nodes[0].huge_pages = vec![HugePages { size, total, free: total / 3 }];
                machine.nodes[0].memory_free = Bytes(total);
            }
            if hide {
                machine.hidden.cpus = [60_000, 60_001].map(CpuId).into_iter().collect();
                machine.hidden.nodes = [NodeId(4000)].into_iter().collect();
            }
            if limit {
                let memory = MemoryLimit { bytes: Bytes(12_345), file: text.clone() };
                let cpu_time = CpuTimeLimit { cpus: share, file: text };
                machine.limits = Limits { memory: Some(memory), cpu_time: Some(cpu_time) };
            }
            machine
        })
}

fn random_links(machine: &Machine, picks: &[(Index, Index, String)]) -> Vec<Link> {
    let ids: Vec<NodeId> = machine.nodes.iter().map(|node| node.id).collect();
    let ends = picks.iter().map(|(a, b, kind)| (*a.get(&ids), *b.get(&ids), kind));
    ends.filter(|(a, b, _)| a != b)
        .zip(0..)
        .map(|((a, b, kind), id)| Link {
            id: LinkId(id),
            a: a.min(b),
            b: a.max(b),
            kind: kind.clone(),
        })
        .collect()
}

type CachePick = (u32, u8, Option<u32>, Option<u16>, Index);

fn random_caches(machine: &Machine, picks: &[CachePick]) -> Vec<Cache> {
    let kinds = [CacheKind::Data, CacheKind::Instruction, CacheKind::Unified];
    let mut caches: Vec<Cache> = picks
        .iter()
        .map(|(level, kind, size, ways, core)| Cache {
            level: *level,
            kind: kinds[usize::from(*kind)],
            cpus: core.get(&machine.cores).cpus.clone(),
            size: size.map(|size| Bytes(u64::from(size))),
            line: ways.map(|ways| Bytes(u64::from(ways))),
            ways: ways.map(u32::from),
        })
        .collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    caches
}

fn subject(machine: &Machine, kind: u8, a: Index, b: Index) -> Subject {
    let node = |index: Index| index.get(&machine.nodes).id;
    match kind {
        0 => Subject::Machine,
        1 => Subject::Package(a.get(&machine.packages).id),
        2 => Subject::Node(node(a)),
        3 => Subject::Domain(DomainId(a.index(machine.domains.len()) as u32)),
        4 if !machine.links.is_empty() => Subject::Link(a.get(&machine.links).id),
        5 => Subject::CpuPair { from: a.get(&machine.cpus).id, to: b.get(&machine.cpus).id },
        _ => Subject::Path { from: node(a), to: node(b) },
    }
}

type FactPick = (
    (u8, Index, Index, Index),
    (f64, f64, Option<u32>),
    (Option<u32>, Option<f64>),
    (Source, String, Option<(i64, u32)>),
);

fn fact_picks() -> impl Strategy<Value = FactPick> {
    let figure = (figures(), figures(), any::<Option<u32>>());
    let conditions = (any::<Option<u32>>(), prop::option::of(figures()));
    let at = prop::option::of((-60_000_000_000..200_000_000_000i64, 0..1_000_000_000u32));
    (
        (0..8u8, any::<Index>(), any::<Index>(), any::<Index>()),
        figure,
        conditions,
        (sources(), texts(), at),
    )
}

fn fact(machine: &Machine, pick: FactPick) -> Fact {
    let ((kind, a, b, quantity), (value, other, runs), (threads, load), (source, origin, at)) =
        pick;
    let spread = runs.map(|runs| Spread { min: value.min(other), max: value.max(other), runs });
    let at = at.map(|(seconds, nanos)| {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let start = match seconds < 0 {
            true => SystemTime::UNIX_EPOCH - whole,
            false => SystemTime::UNIX_EPOCH + whole,
        };
        start + Duration::from_nanos(u64::from(nanos))
    });
    let (subject, quantity) = (subject(machine, kind, a, b), *quantity.get(&Quantity::ALL));
    let conditions = Conditions { threads, load };
    Fact { subject, quantity, conditions, value, spread, source, origin, at }
}

/// A whole matrix of one quantity, with holes.
fn matrix(machine: &Machine, holes: usize) -> Vec<Fact> {
    let pairs = machine.nodes.iter().flat_map(|a| machine.nodes.iter().map(move |b| (a.id, b.id)));
    pairs
        .enumerate()
        .filter(|(index, _)| holes == 0 || index % (holes + 1) != 1)
        .map(|(index, (from, to))| {
            let subject = Subject::Path { from, to };
            Fact::new(subject, Quantity::Latency, 90.5 + index as f64, Source::Measured, "probe")
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_machine_with_its_facts_survives_a_round_trip(
        machine in random_machines(),
        picks in prop::collection::vec(fact_picks(), 0..12),
        holes in 0..4usize,
    ) {
        let mut facts: Vec<Fact> = picks.into_iter().map(|pick| fact(&machine, pick)).collect();
        let middle = facts.len() / 2;
        facts.splice(middle..middle, matrix(&machine, holes));
        assert_round_trip(&Knowledge { machine, facts });
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = toml::parse(&text, "x.toml");
    }

    #[test]
    fn any_value_under_any_key_is_read_or_refused_with_its_line(
        key in select(vec![
            "name", "source", "origin", "numbering", "sources", "pages", "hidden", "limits",
            "package", "node", "cache", "link", "distances", "fact", "latency", "core_to_core",
        ]),
        value in select(vec![
            "1", "-1", "99999999999999999999999", "1.5", "nan", "-inf", "true", "\"text\"", "[]",
            "[[1, 2]]", "{}", "[{}]", "{ id = 0 }", "[{ id = \"0-65535\" }]", "1979-05-27",
            "[{ id = 5, memory = 1, domain = [{ cores = [] }] }]", "{ matrix = [[]] }",
            "[{ quantity = \"latency\", matrix = [[1]] }]", "{ cpus = \"9-1\" }",
        ]),
    ) {
        let known = SMALL.lines().any(|line| {
            line.starts_with(&format!("{key} =")) || *line == *format!("[[{key}]]")
        });
        let text = if known { format!("{key} = {value}\n") } else { format!("{key} = {value}\n{SMALL}") };
        if let Err(error) = toml::parse(&text, "x.toml") {
            prop_assert!(error.line.is_some() && !error.expected.is_empty(), "{}", error);
        }
    }
}

#[test]
fn every_fake_machine_survives_a_round_trip() {
    for machine in machines::all() {
        for holes in 0..3 {
            let facts = matrix(&machine, holes);
            assert_round_trip(&Knowledge { machine: machine.clone(), facts });
        }
    }
}

#[test]
fn a_machine_of_twenty_lines_is_whole() {
    let machine = read(SMALL).machine;
    assert_eq!((machine.nodes.len(), machine.packages.len()), (2, 2));
    assert_eq!((machine.domains.len(), machine.cores.len(), machine.cpus.len()), (4, 8, 16));
    assert_eq!(machine.domains[3].cache, Some(Bytes(16 << 20)));
    assert_eq!(machine.caches.len(), 4);
    assert_eq!(machine.distances, [[10, 20], [20, 10]]);
    let sources = [machine.source, machine.memory_source, machine.caches_source];
    assert_eq!(sources, [Source::Declared; 3]);
    let sources = [machine.distances_source, machine.links_source, machine.pages_source];
    assert_eq!(sources, [Source::Assumed; 3]);
}

#[test]
fn what_names_no_source_is_assumed() {
    let text = SMALL.replace("source = \"declared\"\norigin = \"a test\"\n", "");
    let figures = "[distances]\nmatrix = [[10, 20], [20, 10]]\n\
                   [latency]\nmatrix = [[90, \"-\"], [180, 95]]\n";
    let knowledge = read(&(text + figures));
    let machine = knowledge.machine;
    assert_eq!(
        [machine.source, machine.memory_source, machine.distances_source],
        [Source::Assumed; 3]
    );
    assert_eq!(knowledge.facts.len(), 3);
    for fact in knowledge.facts {
        assert_eq!((fact.source, fact.origin.as_str()), (Source::Assumed, "small.toml"));
    }
}

#[test]
fn figures_take_source_and_origin_from_the_nearest_that_names_them() {
    let figures = r#"
[[link]]
nodes = [[0, 1], [1, 0]]
kind = "QPI"
source = "assumed"
read_bandwidth = { value = 12.8, origin = "a sheet" }
latency = 35

[read_bandwidth]
source = "measured"
at = 2026-11-21T23:30:00.5+01:00
threads = 4
matrix = [[50, 25.5], ["-", 51]]

[[fact]]
quantity = "memory"
subject = "node 1"
value = "32GiB"
"#;
    let facts = read(&format!("{SMALL}{figures}")).facts;
    let told: Vec<_> =
        facts.iter().map(|fact| (fact.subject, fact.value, fact.source, &*fact.origin)).collect();
    let (a, b) = (NodeId(0), NodeId(1));
    let path = |from, to| Subject::Path { from, to };
    let link = |id| Subject::Link(LinkId(id));
    assert_eq!(
        told,
        [
            (link(0), 35.0, Source::Assumed, "a test"),
            (link(1), 35.0, Source::Assumed, "a test"),
            (link(0), 12.8, Source::Assumed, "a sheet"),
            (link(1), 12.8, Source::Assumed, "a sheet"),
            (path(a, a), 50.0, Source::Measured, "a test"),
            (path(a, b), 25.5, Source::Measured, "a test"),
            (path(b, b), 51.0, Source::Measured, "a test"),
            (Subject::Node(b), (32u64 << 30) as f64, Source::Declared, "a test"),
        ]
    );
    assert_eq!(facts[4].conditions.threads, Some(4));
    let since = facts[4].at.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(since, Duration::from_millis(1_795_300_200_500));
}

#[test]
fn an_origin_of_a_group_makes_facts_of_its_figures() {
    let text =
        SMALL.to_owned() + "[sources]\nmemory = { source = \"measured\", origin = \"scales\" }";
    let facts = read(&text).facts;
    let memory = (32u64 << 30) as f64;
    let fact = |id| {
        let subject = Subject::Node(NodeId(id));
        Fact::new(subject, Quantity::Memory, memory, Source::Measured, "scales")
    };
    assert_eq!(facts, [fact(0), fact(1)]);
}

#[test]
fn cpus_are_counted_over_the_nodes_in_either_order() {
    let first = |machine: &Machine| machine.cores[0].cpus.to_string();
    assert_eq!(first(&read(SMALL).machine), "0-1");
    let text = SMALL.replace("origin =", "numbering = \"threads-last\"\norigin =");
    assert_eq!(first(&read(&text).machine), "0,8");
}

#[test]
fn memory_alone_makes_a_node_and_a_core_per_domain_takes_level_two() {
    let text = r#"
name = "odd"
[[node]]
id = 0
domains = 3
cores = 1
[[node]]
id = 7
memory = 1024
[[cache]]
level = 2
per = "domain"
size = "1MiB"
"#;
    let machine = read(text).machine;
    assert_eq!(machine.nodes[1].memory, Bytes(1024));
    assert!(machine.nodes[1].cpus.is_empty());
    assert!(machine.domains.iter().all(|domain| domain.cache_level == Some(2)));
}

#[test]
fn mistakes_are_errors_with_line_and_what_was_expected() {
    let node = "name = \"x\"\n[[node]]\nid = 0\ncores = 2\n";
    let long = format!("name = \"{}\"\n[[node]]\nid = 0\ncores = 1", "x".repeat(2000));
    // Text, line, part of what was found, part of what was expected.
    let cases: Vec<(String, usize, &str, &str)> = vec![
        ("name = \"x\"\nnode = [\n".into(), 2, "", "a TOML document"),
        (
            format!("{node}memry = 5"),
            5,
            "unknown key 'memry' in node",
            "'memory', or another of id",
        ),
        (format!("{node}zzzzzzzz = 5"), 5, "unknown key 'zzzzzzzz'", "one of id, package"),
        (format!("nam = 1\n{node}"), 1, "unknown key 'nam' in the file", "'name'"),
        (format!("{node}memory = \"32GB\""), 5, "memory is \"32GB\"", "a size such as \"24MiB\""),
        (format!("{node}memory = -5"), 5, "memory is -5", "a size"),
        (format!("{node}memory = \"2048PiB\""), 5, "memory is \"2048PiB\"", "a size"),
        (
            format!("{node}memory = 2000000000000000000"),
            5,
            "memory is 2000000000000000000",
            "at most \"1024PiB\"",
        ),
        (format!("{node}threads = 0"), 2, "1 domains of 2 cores of 0 threads", "at least one"),
        (format!("{node}threads = 70000"), 5, "threads is 70000", "from 0 to 65535"),
        (format!("{node}domains = 65535"), 1, "131070 cpus; the most is 65535", "bounds"),
        (
            "name = \"x\"\n[[node]]\nid = 0\n".into(),
            2,
            "node has no 'memory'",
            "its memory, its cpus",
        ),
        ("name = \"x\"\n[[node]]\nid = 0\nmemory = 1\n".into(), 1, "no node has cpus", "cores"),
        ("[[node]]\nid = 0\ncores = 2\n".into(), 1, "no 'name'", "the machine's name"),
        (
            format!("{node}[[node]]\nid = \"0-3\"\nmemory = 1"),
            6,
            "id is \"0-3\"",
            "no other node has",
        ),
        (format!("{node}[[node]]\nid = \"1-70000\""), 6, "id is \"1-70000\"", "70000 is above"),
        (format!("{node}[[node]]\nid = \"1-9000\""), 6, "id is", "at most 4096 nodes"),
        (
            format!("source = \"seen\"\n{node}"),
            1,
            "source is \"seen\"",
            "measured, observed, discovered",
        ),
        (format!("numbering = \"odd\"\n{node}"), 1, "numbering is \"odd\"", "threads-last"),
        (long, 1, "name is \"xxx", "at most 1024 bytes"),
        (
            format!("{node}[[link]]\nnodes = [0, 0]\nkind = \"QPI\""),
            6,
            "a list of 2",
            "two different nodes",
        ),
        (
            format!("{node}[[link]]\nnodes = [0, 5]\nkind = \"QPI\""),
            6,
            "nodes is 5",
            "a node of the machine",
        ),
        (
            format!("{node}[[link]]\nnodes = [0]\nkind = \"QPI\""),
            6,
            "a list of 1",
            "two different nodes",
        ),
        (format!("{node}[[link]]\nnodes = [0, 1]"), 5, "link has no 'kind'", "QPI"),
        (format!("{node}[distances]\nmatrix = [[10, 20]]"), 6, "a list of 2", "1 rows of 1"),
        (format!("{node}[distances]\nmatrix = [[1.5]]"), 6, "matrix is 1.5", "a whole number"),
        (format!("{node}[latency]\nunit = \"ms\"\nmatrix = [[1]]"), 6, "unit is \"ms\"", "\"ns\""),
        (format!("{node}[latency]\nmatrix = [\n  [nan],\n]"), 7, "matrix is nan", "finite"),
        (format!("{node}[latency]\nmatrix = [[-1]]"), 6, "matrix is -1", "not below 0"),
        (format!("{node}[latency]\nmatrix = [[\"x\"]]"), 6, "matrix is \"x\"", "a number"),
        (format!("{node}[latency]\nvalue = 1"), 5, "no figures", "one of 'subject'"),
        (
            format!("{node}[[fact]]\nquantity = \"speed\""),
            6,
            "quantity is \"speed\"",
            "read_bandwidth",
        ),
        (
            format!("{node}[[fact]]\nquantity = \"latency\"\nsubject = \"path 0-1\"\nvalue = 1"),
            7,
            "subject is \"path 0-1\"",
            "something that the machine has",
        ),
        (
            format!("{node}[[fact]]\nquantity = \"latency\"\nsubject = \"road 0\"\nvalue = 1"),
            7,
            "subject is \"road 0\"",
            "\"path 0-1\"",
        ),
        (
            format!(
                "{node}[[fact]]\nquantity = \"latency\"\nsubject = \"node 0\"\nvalue = 1\nmin = 0.5"
            ),
            5,
            "fact has no 'max'",
            "the largest",
        ),
        (
            format!("{node}[latency]\nat = 2026-11-21\nmatrix = [[1]]"),
            6,
            "at is 2026-11-21",
            "2026-11-21T23:30:00Z",
        ),
        (
            format!("{node}[[cache]]\nlevel = 1\nper = \"socket\""),
            7,
            "per is \"socket\"",
            "package",
        ),
        (
            format!("{node}[[cache]]\nlevel = 1\ncpus = [\"0\"]\nper = \"core\""),
            8,
            "per is",
            "'cpus' alone",
        ),
        (
            format!("{node}[[package]]\nid = 0\ncpus = \"0-9\""),
            1,
            "a package has cpu 2",
            "on a node too",
        ),
        (
            "name = \"x\"\n[[node]]\nid = 0\n[[node.domain]]\ncores = [\"0-1\", \"1-2\"]".into(),
            5,
            "cores is \"1-2\"",
            "cpu 1 is in two",
        ),
        (
            format!("{node}[[node]]\nid = 1\n[[node.domain]]\ncores = [\"0\"]"),
            5,
            "'domain' beside",
            "all counted",
        ),
        (format!("{node}[pages]\nsize = 4096"), 5, "pages has no 'huge'", "\"none\""),
        (format!("{node}[hidden]\ncpus = [1]"), 6, "cpus is a list of 1", "from 0 to 65535"),
    ];
    let mut wrong = Vec::new();
    for (text, line, found, expected) in cases {
        let error = refuse(&text);
        let right = error.line == Some(line)
            && error.found.contains(found)
            && error.expected.contains(expected);
        if !right {
            wrong.push(format!("{error}, not line {line}: {found}; {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn small_files_cannot_ask_for_much_memory_or_time() {
    let node = "name = \"x\"\n[[node]]\nid = 0\ncores = 65535\n";
    let origin = "x".repeat(1000);
    let all = "\"0-65534\", ".repeat(1000);
    for text in [
        // A thousand caches over every cpu.
        format!("{node}[[cache]]\nlevel = 1\ncpus = [{all}]"),
        // A fact for every cpu pair, each with a long origin.
        format!(
            "{node}[[fact]]\nquantity = \"latency\"\nvalue = 1\norigin = \"{origin}\"\nsubject = [{}]",
            "\"node 0\", ".repeat(250_000)
        ),
        // Nesting deeper than any machine.
        format!("{node}fact = {}", "[".repeat(100_000)),
        format!("{node}{}", "[a.".repeat(100_000)),
        // The longest a file may be, and a byte more.
        " ".repeat((16 << 20) + 1),
    ] {
        assert!(toml::parse(&text, "x.toml").is_err(), "{:.80}", text);
    }
}

#[test]
fn the_description_is_prose_for_people() {
    let text = format!("description = \"One\\nmore\"\n{SMALL}");
    assert_eq!(toml::description(&text, "x.toml").unwrap().as_deref(), Some("One\nmore"));
    assert_eq!(toml::description(SMALL, "x.toml").unwrap(), None);
    assert_eq!(read(&text), read(SMALL));
}

#[test]
fn more_caches_than_a_machine_has_levels_for_are_refused() {
    let text = format!("{SMALL}{}", "[[cache]]\nlevel = 1\nnodes = \"\"\n".repeat(5000));
    let error = refuse(&text).to_string();
    assert!(error.contains("more caches; expected at most 4096"), "{error}");
}
