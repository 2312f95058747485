//! The shipped machines.

use std::fs;

use atoll_formats::{MachineOpenError, toml};
use atoll_topology::{Bytes, Fact, Knowledge, NodeId, Quantity, Source, Subject};

fn machine(name: &str) -> Knowledge {
    atoll_formats::open(name).unwrap_or_else(|error| panic!("{error}"))
}

fn facts_of<'a>(
    knowledge: &'a Knowledge,
    quantity: Quantity,
    subject: impl Fn(Subject) -> bool + 'a,
) -> impl Iterator<Item = &'a Fact> {
    knowledge.facts.iter().filter(move |fact| fact.quantity == quantity && subject(fact.subject))
}

/// The figures of paths over `hops` of the machine's distances by rank: 0 local, 1 next, 2 farthest.
fn path_figures(knowledge: &Knowledge, quantity: Quantity, hops: usize) -> Vec<f64> {
    let mut ranks: Vec<u32> = knowledge.machine.distances.concat();
    ranks.sort_unstable();
    ranks.dedup();
    let rank = |subject| match subject {
        Subject::Path { from, to } => {
            let distance = knowledge.machine.distance(from, to)?;
            ranks.binary_search(&distance).ok()
        }
        _ => None,
    };
    let mut values: Vec<f64> = facts_of(knowledge, quantity, |subject| rank(subject) == Some(hops))
        .inspect(|fact| assert_eq!(fact.source, Source::Declared))
        .map(|fact| fact.value)
        .collect();
    values.dedup();
    values
}

#[test]
fn every_machine_file_ships_and_every_shipped_machine_has_its_own_name() {
    let directory = crate::crate_folder().join("../../machines");
    let mut files: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .collect();
    files.sort();
    let names: Vec<&str> = atoll_formats::shipped().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, files);
    for name in names {
        assert_eq!(machine(name).machine.name, name);
    }
}

#[test]
fn the_machine_that_the_readme_shows_is_read() {
    let readme = include_str!("../../../../machines/README.md");
    let shown: String = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .map(|line| format!("{line}\n"))
        .collect();
    let knowledge = toml::parse(&shown, "README.md").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(knowledge.machine.cpus.len(), 64);
    assert_eq!(knowledge.facts.len(), 1 + 4 + 2);
    for (name, _) in atoll_formats::shipped() {
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_shipped_machine_is_whole_and_survives_a_round_trip() {
    for (name, text) in atoll_formats::shipped() {
        let knowledge = machine(name);
        let machine = &knowledge.machine;
        for link in &machine.links {
            assert!(link.a < link.b, "{name} {link:?}");
            assert!(machine.node(link.a).is_some() && machine.node(link.b).is_some(), "{name}");
        }
        for (row, from) in machine.distances.iter().zip(&machine.nodes) {
            for (distance, to) in row.iter().zip(&machine.nodes) {
                assert_eq!(Some(*distance), machine.distance(to.id, from.id), "{name}");
                assert_eq!(*distance == 10, from.id == to.id, "{name}");
            }
        }
        let last: Vec<_> = machine.domains.iter().map(|domain| domain.cache_level).collect();
        let sizes = machine.caches.iter().all(|cache| cache.size.is_some());
        assert!(sizes && (machine.caches.is_empty() || last.iter().all(Option::is_some)), "{name}");
        assert!(toml::description(text, name).unwrap().is_some_and(|text| text.len() > 40));
        assert_eq!(toml::parse(&toml::write(&knowledge), name).unwrap(), knowledge);
    }
}

#[test]
fn every_figure_of_a_shipped_machine_names_its_publication() {
    for (name, _) in atoll_formats::shipped() {
        let knowledge = machine(name);
        for fact in &knowledge.facts {
            assert!(matches!(fact.source, Source::Declared | Source::Assumed), "{name} {fact:?}");
            let named = match fact.source {
                Source::Declared => &[
                    "Li 2013, ",
                    "Kiefer 2013, ",
                    "Giceva 2011, ",
                    "Symas 2014, ",
                    "Dominico 2018, ",
                    "Intel, ",
                    "AMD, ",
                ][..],
                _ => &["assumed"][..],
            };
            assert!(named.iter().any(|named| fact.origin.starts_with(named)), "{name} {fact:?}");
        }
        let memory = facts_of(&knowledge, Quantity::Memory, |_| true).count();
        assert_eq!(memory, knowledge.machine.nodes.len(), "{name}");
        assert_eq!(knowledge.machine.pages_source, Source::Assumed, "{name}");
    }
}

#[test]
fn the_square_of_nehalem_ex_has_the_figures_of_table_1_of_li() {
    let square = machine("intel-4-square");
    // Flow, hops, GB/s with 12 threads, ns (Li 2013, table 1).
    for (hops, bandwidth, latency) in [(0, 24.7, 150.0), (1, 10.9, 185.0), (2, 10.9, 230.0)] {
        assert_eq!(path_figures(&square, Quantity::ReadBandwidth, hops), [bandwidth]);
        assert_eq!(path_figures(&square, Quantity::Latency, hops), [latency]);
    }
    assert_eq!(path_figures(&square, Quantity::CrossTrafficBandwidth, 2), [5.3]);
    assert_eq!(path_figures(&square, Quantity::LoadedLatency, 2), [235.0]);
    assert_eq!(square.machine.links.len(), 4);
    let full = machine("nehalem-ex-4");
    for (hops, bandwidth, latency) in [(0, 24.7, 150.0), (1, 10.9, 185.0)] {
        assert_eq!(path_figures(&full, Quantity::ReadBandwidth, hops), [bandwidth]);
        assert_eq!(path_figures(&full, Quantity::Latency, hops), [latency]);
    }
    assert_eq!(full.machine.links.len(), 6);
    // 4 × 24.7 GB/s of memory and 12 directions of 10.9 GB/s of links (Li 2013, section 4.1.1).
    let links: f64 = facts_of(&full, Quantity::ReadBandwidth, |s| matches!(s, Subject::Link(_)))
        .map(|fact| 2.0 * fact.value)
        .sum();
    assert!((links - 130.8).abs() < 1e-9, "{links}");
}

#[test]
fn the_machine_of_eight_sockets_has_four_slow_links_of_twelve() {
    let knowledge = machine("intel-8");
    let mut links: Vec<f64> = facts_of(&knowledge, Quantity::ReadBandwidth, |subject| {
        matches!(subject, Subject::Link(_))
    })
    .map(|fact| fact.value)
    .collect();
    links.sort_by(f64::total_cmp);
    assert_eq!(links, [[7.8].repeat(4), [10.9].repeat(8)].concat());
    assert_eq!(knowledge.machine.nodes.len(), 8);
}

/// Name, sockets, cores of each, threads, GHz, GB a socket, level 1, 2 (KiB) and 3 (MiB).
type Row = (&'static str, usize, usize, usize, f64, Option<u64>, Option<u64>, u64, Option<u64>);

#[test]
fn machines_of_kiefer_and_giceva_are_as_published() {
    // Kiefer 2013, table 2; Giceva 2011, experiment setup.
    let rows: [Row; 4] = [
        ("istanbul-2", 2, 6, 1, 2.6, Some(16), Some(64), 512, Some(6)),
        ("westmere-ex-4", 4, 8, 2, 2.13, Some(32), Some(32), 256, Some(24)),
        ("santa-rosa-2", 2, 2, 1, 2.8, None, None, 1024, None),
        ("shanghai-4", 4, 4, 1, 2.5, None, None, 512, Some(6)),
    ];
    for (name, sockets, cores, threads, ghz, memory, level_1, level_2, level_3) in rows {
        let knowledge = machine(name);
        let machine = &knowledge.machine;
        assert_eq!(machine.packages.len(), sockets, "{name}");
        assert_eq!(machine.cores.len(), sockets * cores, "{name}");
        assert_eq!(machine.cpus.len(), sockets * cores * threads, "{name}");
        let clocks = facts_of(&knowledge, Quantity::Frequency, |_| true);
        assert!(clocks.map(|fact| fact.value).eq([ghz].repeat(sockets)), "{name}");
        let size = |level| machine.caches.iter().find(|c| c.level == level).and_then(|c| c.size);
        if let Some(gib) = memory {
            assert!(machine.nodes.iter().all(|node| node.memory == Bytes(gib << 30)), "{name}");
            assert_eq!(machine.memory_source, Source::Declared);
        } else {
            assert_eq!(machine.memory_source, Source::Assumed);
        }
        if level_1.is_some() {
            assert_eq!(size(1), level_1.map(|kib| Bytes(kib << 10)), "{name}");
        }
        assert_eq!(size(2), Some(Bytes(level_2 << 10)), "{name}");
        assert_eq!(size(3), level_3.map(|mib| Bytes(mib << 20)), "{name}");
    }
}

#[test]
fn links_of_the_published_machines_have_the_published_bandwidth() {
    // Kiefer 2013, table 2; Giceva 2011, experiment setup, gives numbers of links only.
    for (name, links, kind, bandwidth) in [
        ("istanbul-2", 1, "HyperTransport", Some(9.6)),
        ("westmere-ex-4", 6, "QPI", Some(12.8)),
        ("santa-rosa-2", 2, "HyperTransport", None),
        ("shanghai-4", 4, "HyperTransport", None),
    ] {
        let knowledge = machine(name);
        assert_eq!(knowledge.machine.links.len(), links, "{name}");
        assert!(knowledge.machine.links.iter().all(|link| link.kind == kind), "{name}");
        let values: Vec<f64> =
            facts_of(&knowledge, Quantity::ReadBandwidth, |s| matches!(s, Subject::Link(_)))
                .inspect(|fact| assert_eq!(fact.source, Source::Declared))
                .map(|fact| fact.value)
                .collect();
        assert_eq!(values, bandwidth.map_or(Vec::new(), |value| [value].repeat(links)), "{name}");
    }
}

#[test]
fn the_machine_of_symas_has_its_published_distances() {
    // Symas 2014, as printed by numactl -H.
    let published = [
        [10, 16, 16, 22, 16, 22, 16, 22],
        [16, 10, 22, 16, 22, 16, 22, 16],
        [16, 22, 10, 16, 16, 22, 16, 22],
        [22, 16, 16, 10, 22, 16, 22, 16],
        [16, 22, 16, 22, 10, 16, 16, 22],
        [22, 16, 22, 16, 16, 10, 22, 16],
        [16, 22, 16, 22, 16, 22, 10, 16],
        [22, 16, 22, 16, 22, 16, 16, 10],
    ];
    let knowledge = machine("symas-8");
    let machine = &knowledge.machine;
    assert_eq!(machine.distances, published.map(Vec::from));
    assert_eq!(machine.distances_source, Source::Declared);
    assert!(machine.nodes.iter().all(|node| node.cpus.len() == 8));
    assert!(machine.packages.iter().all(|package| package.model.is_none()));
    for link in &machine.links {
        assert_eq!(machine.distance(link.a, link.b), Some(16));
    }
    let facts = facts_of(&knowledge, Quantity::Distance, |_| true);
    assert!(facts.map(|fact| fact.value as u32).eq(published.concat()));
}

#[test]
fn an_unknown_machine_name_is_an_error_with_the_nearest_and_all_names() {
    let error = atoll_formats::open("nehalem-ex4").unwrap_err();
    assert!(matches!(error, MachineOpenError::Unknown { near: Some("nehalem-ex-4"), .. }));
    let text = error.to_string();
    assert!(text.contains("did you mean 'nehalem-ex-4'?"), "{text}");
    assert!(text.contains("symas-8, westmere-ex-4"), "{text}");
    let text = atoll_formats::open("zzzzzzzzz").unwrap_err().to_string();
    assert!(!text.contains("did you mean"), "{text}");
}

#[test]
fn a_file_is_opened_by_its_path_whatever_its_format() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let symas = machine("symas-8");
    fs::write(path("mine.toml"), toml::write(&symas)).unwrap();
    assert_eq!(atoll_formats::open(&path("mine.toml")).unwrap(), symas);
    fs::write(path("mine"), atoll_formats::xml::write(&symas)).unwrap();
    let read = atoll_formats::open(&path("mine")).unwrap().machine;
    assert_eq!(read.distances, symas.machine.distances);
    let printed = "available: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\n\
                   node 0 free: 50 MB\nnode distances:\nnode   0 \n  0:  10 \n";
    fs::write(path("printed"), printed).unwrap();
    let read = atoll_formats::open(&path("printed")).unwrap().machine;
    assert_eq!(read.node(NodeId(0)).unwrap().cpus.len(), 2);
}

#[test]
fn a_file_that_cannot_be_a_machine_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    assert!(matches!(
        atoll_formats::open(&path("absent.toml")),
        Err(MachineOpenError::Read { .. })
    ));
    assert!(matches!(atoll_formats::open(&path("")), Err(MachineOpenError::Read { .. })));
    fs::File::create(path("long.toml")).unwrap().set_len((16 << 20) + 1).unwrap();
    assert!(matches!(
        atoll_formats::open(&path("long.toml")),
        Err(MachineOpenError::TooLong { .. })
    ));
    for (text, found) in [
        ("{\"name\": \"x\"}", "JSON"),
        ("<?xml version=\"1.0\"?>\n<svg></svg>", "a picture"),
        ("Machine x (declared)\n", "a tree or boxes"),
        ("", "an empty file"),
    ] {
        fs::write(path("written"), text).unwrap();
        let error = atoll_formats::open(&path("written")).unwrap_err().to_string();
        assert!(error.contains(found) && error.contains("topo -o machine.toml"), "{error}");
    }
    fs::write(path("bytes.toml"), b"name = \"x\"\n\xff").unwrap();
    let error = atoll_formats::open(&path("bytes.toml")).unwrap_err().to_string();
    assert!(error.contains("bytes.toml:2: bytes that are not UTF-8"), "{error}");
}
