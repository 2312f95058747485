//! Every dump under `tests/corpus` gives the tree next to it and the recorded output of `numactl -H`.
//!
//! `ATOLL_CORPUS_UPDATE=1 cargo test -p atoll-topology corpus` rewrites the trees: review the changes before you
//! keep them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use atoll_formats::numactl::{self, DistanceWidth};
use atoll_formats::xml;
use atoll_formats::{dump, render};
use atoll_sys::Root;
use atoll_topology::{Allowed, Machine};

use crate::crate_folder;
use atoll_testkit::tree::{cores, domains, nodes};

fn corpus() -> PathBuf {
    crate_folder().join("tests/corpus")
}

/// Shapes that have a file with this extension, in alphabetical order.
fn shapes(extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == extension));
    files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn text(shape: &str, extension: &str) -> String {
    let path = corpus().join(format!("{shape}.{extension}"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root(shape: &str) -> Root {
    let text = text(shape, "dump");
    dump::open(&text, &format!("{shape}.dump")).unwrap_or_else(|error| panic!("{error}"))
}

fn machine(shape: &str) -> Machine {
    let root = root(shape);
    let allowed = Allowed::of_process(&root);
    Machine::discover_at(&root, &allowed).unwrap_or_else(|error| panic!("{shape}: {error}"))
}

fn whole_machine(shape: &str) -> Machine {
    Machine::discover_at(&root(shape), &Allowed::everything()).unwrap()
}

#[test]
fn every_machine_of_the_corpus_is_shown_as_the_text_next_to_it() {
    let update = std::env::var_os("ATOLL_CORPUS_UPDATE").is_some();
    let mut different = Vec::new();
    for shape in shapes("dump") {
        let shown = render::tree(&machine(&shape));
        if update {
            fs::write(corpus().join(format!("{shape}.txt")), &shown).unwrap();
        } else if shown != text(&shape, "txt") {
            different.push(format!("{shape}:\n{shown}"));
        }
    }
    assert!(different.is_empty(), "not as in {}:\n{}", corpus().display(), different.join("\n"));
    let orphans: Vec<_> = shapes("txt").difference(&shapes("dump")).cloned().collect();
    assert!(orphans.is_empty(), "texts without a dump: {orphans:?}");
}

#[test]
fn the_corpus_says_of_every_machine_where_it_comes_from() {
    let readme = fs::read_to_string(corpus().join("README.md")).unwrap();
    for shape in shapes("dump") {
        assert!(readme.contains(&format!("`{shape}`")), "README.md does not name {shape}");
    }
}

#[test]
fn a_dump_of_a_dump_is_the_same_machine_and_the_same_dump() {
    for shape in shapes("dump") {
        let once = dump::gather(&root(&shape), &shape);
        let again = dump::open(&once, "again").unwrap();
        assert_eq!(dump::gather(&again, &shape), once, "{shape}");
        let found = Machine::discover_at(&again, &Allowed::of_process(&again)).unwrap();
        assert_eq!(found, machine(&shape), "{shape}");
    }
}

#[test]
fn every_machine_is_whole_and_consistent() {
    for shape in shapes("dump") {
        for machine in [machine(&shape), whole_machine(&shape)] {
            assert_whole(&shape, &machine);
        }
    }
}

/// Every cpu is in one core, one domain, one node and one package, and each of them lists it.
fn assert_whole(shape: &str, machine: &Machine) {
    for cpu in &machine.cpus {
        let core = &machine.cores[cpu.core.index()];
        let domain = &machine.domains[cpu.domain.index()];
        assert!(core.cpus.contains(cpu.id) && domain.cpus.contains(cpu.id), "{shape}: {cpu:?}");
        assert_eq!((core.domain, domain.node), (cpu.domain, cpu.node), "{shape}: {cpu:?}");
        assert!(machine.node(cpu.node).unwrap().cpus.contains(cpu.id), "{shape}: {cpu:?}");
    }
    let of_domains: usize = machine.domains.iter().map(|domain| domain.cpus.len()).sum();
    let of_cores: usize = machine.cores.iter().map(|core| core.cpus.len()).sum();
    assert_eq!([of_domains, of_cores], [machine.cpus.len(); 2], "{shape}");
    assert!(machine.distances.iter().all(|row| row.len() == machine.nodes.len()), "{shape}");
}

#[test]
fn numactl_s_text_is_what_numactl_printed_on_that_kernel() {
    for shape in shapes("numactl") {
        let shown = numactl::hardware(&root(&shape), DistanceWidth::Narrow);
        assert_eq!(shown.unwrap(), text(&shape, "numactl"), "{shape}");
    }
}

/// Cpus of every package, node, domain and core.
fn structure(machine: &Machine) -> [Vec<String>; 4] {
    let packages = machine.packages.iter().map(|package| package.cpus.to_string()).collect();
    [packages, nodes(machine), domains(machine), cores(machine)]
}

#[test]
fn lstopo_saw_the_same_machine_on_that_kernel() {
    for shape in shapes("xml") {
        let theirs = xml::parse(&text(&shape, "xml"), &shape).unwrap().machine;
        let ours = machine(&shape);
        assert_eq!(structure(&ours), structure(&theirs), "{shape}");
        assert_eq!(memory(&ours), memory(&theirs), "{shape}");
        assert_eq!(distances(&ours), distances(&theirs), "{shape}");
    }
}

/// Distances between nodes with memory: hwloc leaves out a node without memory, or whose memory the cpuset forbids,
/// and has no distances for it.
fn distances(machine: &Machine) -> Vec<Option<u32>> {
    let nodes = || machine.nodes_with_memory();
    nodes().flat_map(|from| nodes().map(|to| machine.distance(from.id, to.id))).collect()
}

fn memory(machine: &Machine) -> Vec<u64> {
    machine.nodes.iter().map(|node| node.memory.0).collect()
}

#[test]
fn the_shapes_are_what_their_names_say() {
    let hybrid = machine("hybrid-island");
    assert_eq!(domains(&hybrid), ["0-11", "12-13"]);
    let sparse = machine("sparse-node-numbers");
    assert_eq!(nodes(&sparse), ["1: 0-1", "4: 4-5", "9: 12-13"]);
    let gpus = machine("power9-gpu-memory");
    assert_eq!(nodes(&gpus)[1..], ["8: 16-31", "252: ", "253: ", "254: ", "255: "]);
    assert_eq!((gpus.domains.len(), gpus.page_size.0), (4, 65536));
    let many = machine("1024-cpus");
    assert_eq!((many.cpus.len(), many.cores.len(), many.domains.len()), (1024, 512, 16));
    let container = machine("old-kernel-docker");
    assert_eq!(nodes(&container), ["1: 1,3,9,11"]);
    assert_eq!(container.limits.cpu_time.unwrap().cpus, 2.5);
    assert_eq!(container.limits.memory.unwrap().bytes.0, 8 << 30);
    assert_eq!(nodes(&machine("kernel-without-numa")), ["0: 0-3"]);
}
