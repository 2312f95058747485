use std::time::SystemTime;

use atoll_formats::numactl::{self, DistanceWidth};
use atoll_formats::{dump, render, toml, xml};
use atoll_sys::SplitMix64;
use atoll_testkit::generated::{self, chance};
use atoll_testkit::tree::Tree;
use atoll_topology::{Allowed, Knowledge, Machine};

const SEEDS: std::ops::Range<u64> = 1000..1040;

/// The knowledge of a generated machine with some damaged files: discovery yields assumptions, missing figures and
/// odd shapes.
fn damaged(seed: u64) -> Option<Knowledge> {
    let mut random = SplitMix64::new(seed);
    let mut tree = Tree::from_machine(&generated::machine(seed));
    for name in tree.files() {
        if chance(&mut random, 8) {
            tree = tree.without(&name);
        } else if chance(&mut random, 4) {
            tree = tree.with(&name, "0,2");
        }
    }
    Knowledge::discover_at(&tree.root(), &Allowed::of_process(&tree.root())).ok()
}

/// A seed that once failed: two caches of one level over the same cpus.
const FAILED: u64 = 20616;

fn all() -> impl Iterator<Item = (u64, Knowledge)> {
    let whole = SEEDS.map(|seed| (seed, Knowledge::from_machine(generated::machine(seed))));
    whole.chain(SEEDS.chain([FAILED]).filter_map(|seed| Some((seed, damaged(seed)?))))
}

#[test]
fn machine_files_and_hwloc_xml_lose_nothing() {
    for (seed, known) in all() {
        let text = toml::write(&known);
        assert_eq!(toml::parse(&text, "m.toml"), Ok(known.clone()), "seed {seed}: {text}");
        let text = xml::write(&known);
        assert_eq!(xml::parse(&text, "m.xml"), Ok(known), "seed {seed}: {text}");
    }
}

#[test]
fn a_dump_holds_all_that_discovery_reads() {
    for seed in SEEDS {
        let tree = Tree::from_machine(&generated::machine(seed));
        let root = dump::open(&dump::gather(&tree.root(), "dump"), "a.dump").unwrap();
        let again = Machine::discover_at(&root, &Allowed::of_process(&root)).unwrap();
        let named = Machine { name: "dump".to_owned(), ..tree.discover().unwrap() };
        assert_eq!(again, named, "seed {seed}");
    }
}

#[test]
fn what_numactl_prints_keeps_cpus_distances_and_whole_mebibytes() {
    for seed in SEEDS {
        let machine = generated::machine(seed);
        let text = numactl::write(&machine, DistanceWidth::Narrow);
        let again =
            numactl::parse(&text, "n").unwrap_or_else(|error| panic!("{seed}: {error}")).machine;
        assert_eq!(again.distances, machine.distances, "seed {seed}");
        for (node, again) in machine.nodes.iter().zip(&again.nodes) {
            assert_eq!((node.id, &node.cpus), (again.id, &again.cpus), "seed {seed}");
            assert_eq!(node.memory.0 >> 20, again.memory.0 >> 20, "seed {seed}");
        }
    }
}

#[test]
fn every_picture_and_document_is_made_of_any_machine() {
    for (seed, known) in all() {
        let svg = render::svg(&known);
        assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "seed {seed}");
        assert!(render::ascii(&known).contains("node"), "seed {seed}");
        let json = render::json(&known.machine);
        assert_eq!(json["nodes"].as_array().unwrap().len(), known.machine.nodes.len());
        assert_eq!(json["assumptions"].as_array().unwrap().len(), known.machine.assumptions.len());
        let facts = render::facts_json(known.all_facts(), SystemTime::now());
        assert!(!facts.as_array().unwrap().is_empty(), "seed {seed}");
        let tree = render::tree_with_facts(&known);
        for line in &known.machine.assumptions {
            assert!(tree.contains(line.as_str()), "seed {seed}: {line}");
        }
    }
}
