use atoll_sys::Root;
use atoll_testkit::machines;
use atoll_topology::{
    Bytes, CacheKind, Fact, HugePages, Knowledge, NodeId, Quantity, Source, Subject,
};
use proptest::prelude::*;

use atoll_testkit::tree::{CPU, NODE, Tree};

fn path(from: u32, to: u32) -> Subject {
    Subject::Path { from: NodeId(from), to: NodeId(to) }
}

/// The firmware's facts, without the times at which they were read.
fn firmware(tree: &Tree) -> Vec<Fact> {
    let knowledge = Knowledge::discover_at(&tree.root(), &Default::default()).unwrap();
    let facts = knowledge.facts.into_iter();
    let facts = facts.filter(|fact| fact.source == Source::Discovered);
    facts.map(|fact| Fact { at: None, ..fact }).collect()
}

fn told(from: u32, to: u32, class: u32, file: &str, quantity: Quantity, value: f64) -> Fact {
    let origin = format!("/sys/devices/system/node/node{to}/access{class}/initiators/{file}");
    Fact::new(path(from, to), quantity, value, Source::Discovered, origin)
}

/// The firmware's facts about one node's memory for one initiator.
fn all_told(node: u32, latency: u32, read: u32, write: u32) -> [Fact; 3] {
    let mb = |value| f64::from(value) * 1e-3;
    [
        told(node, node, 0, "read_latency", Quantity::Latency, latency.into()),
        told(node, node, 0, "read_bandwidth", Quantity::ReadBandwidth, mb(read)),
        told(node, node, 0, "write_bandwidth", Quantity::WriteBandwidth, mb(write)),
    ]
}

fn two_by_two() -> Tree {
    Tree::bare()
        .with(&format!("{NODE}/online"), "0-1")
        .with_node(0, "0-1", "10 21")
        .with_node(1, "2-3", "21 10")
}

fn initiator(tree: Tree, class: u32, from: u32, to: u32) -> Tree {
    tree.with(&format!("{NODE}/node{to}/access{class}/initiators/node{from}/online"), "1\n")
}

fn figure(tree: Tree, class: u32, to: u32, file: &str, value: &str) -> Tree {
    tree.with(&format!("{NODE}/node{to}/access{class}/initiators/{file}"), value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_the_firmware_tells_is_discovered_as_it_was_written(
        figures in proptest::collection::vec((1u32..5000, 1u32..2_000_000, 1u32..2_000_000), 2),
    ) {
        let facts = figures.iter().zip(0..).flat_map(|(&(latency, read, write), node)| {
            all_told(node, latency, read, write)
        });
        let written = Knowledge { machine: machines::two_nodes(), facts: facts.collect() };
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        machines::write_knowledge(&written, directory.path()).unwrap();
        let root = Root::at(directory.path());
        let found = Knowledge::discover_at(&root, &Default::default()).unwrap();
        let found = found.facts.into_iter().filter(|fact| fact.source == Source::Discovered);
        let found: Vec<Fact> = found.map(|fact| Fact { at: None, ..fact }).collect();
        prop_assert_eq!(found, written.facts);
    }
}

#[test]
fn memory_without_cpus_has_facts_for_cpus_when_its_best_initiator_is_a_device() {
    // Node 2 is memory; the best initiator is node 3, a device that Linux shows as a node.
    let tree = Tree::from_machine(&machines::two_nodes());
    let tree = [(2, "10"), (3, "10")]
        .iter()
        .fold(tree, |tree, (node, _)| tree.with_node(*node, "", "10 20 20 20"));
    let tree = tree
        .with(&format!("{NODE}/online"), "0-3\n")
        .with(&format!("{NODE}/node0/distance"), "10 21 20 20")
        .with(&format!("{NODE}/node1/distance"), "21 10 20 20");
    let tree = figure(initiator(tree, 0, 3, 2), 0, 2, "read_latency", "50\n");
    let tree = figure(initiator(tree, 1, 1, 2), 1, 2, "read_latency", "250\n");
    assert_eq!(firmware(&tree), [told(1, 2, 1, "read_latency", Quantity::Latency, 250.0)]);
}

#[test]
fn an_initiator_of_both_classes_gives_one_fact() {
    let tree = initiator(initiator(two_by_two(), 0, 0, 1), 1, 0, 1);
    let tree = figure(figure(tree, 0, 1, "read_latency", "90"), 1, 1, "read_latency", "91");
    assert_eq!(firmware(&tree), [told(0, 1, 0, "read_latency", Quantity::Latency, 90.0)]);
}

#[test]
fn a_figure_of_zero_is_unknown() {
    let tree = figure(initiator(two_by_two(), 0, 0, 0), 0, 0, "read_latency", "0\n");
    assert!(firmware(&figure(tree, 0, 0, "write_latency", "7\n")).is_empty());
}

#[test]
fn a_figure_that_is_not_a_number_is_left_out_and_named() {
    for text in ["fast", "-1", ""] {
        let tree = figure(initiator(two_by_two(), 0, 0, 1), 0, 1, "read_bandwidth", text);
        assert!(firmware(&tree).is_empty());
        let known = Knowledge::discover_at(&tree.root(), &Default::default()).unwrap();
        let message = known.machine.assumptions.join("\n");
        assert!(message.contains("node1/access0/initiators/read_bandwidth"), "{message}");
    }
}

#[test]
fn free_memory_is_observed_with_its_time() {
    let tree = two_by_two();
    let before = std::time::SystemTime::now();
    let knowledge = Knowledge::discover_at(&tree.root(), &Default::default()).unwrap();
    let free: Vec<&Fact> = knowledge.facts.iter().collect();
    assert_eq!(free.len(), 2);
    for fact in free {
        assert_eq!((fact.quantity, fact.source), (Quantity::MemoryFree, Source::Observed));
        assert_eq!(fact.value, f64::from(512 << 10));
        assert!(fact.at.unwrap() >= before);
    }
}

#[test]
fn caches_of_every_level_have_their_lines_and_ways() {
    let machine = Tree::from_machine(&machines::full_detail()).discover().unwrap();
    assert_eq!(machine.caches, machines::full_detail().caches);
    let first = &machine.caches[0];
    assert_eq!(
        (first.level, first.kind, first.cpus.to_string().as_str()),
        (1, CacheKind::Data, "0-1")
    );
    assert_eq!(
        (first.size, first.line, first.ways),
        (Some(Bytes(48 << 10)), Some(Bytes(64)), Some(12))
    );
    assert_eq!(machine.caches.last().unwrap().ways, Some(0));
    assert_eq!(machine.caches.len(), 8 * 3 + 4);
}

#[test]
fn a_cache_over_two_nodes_is_one_and_its_domains_two() {
    let machine = two_by_two().with_cache("0-3", 3, 3, "0-3").discover_all();
    assert_eq!(machine.caches.len(), 1);
    assert_eq!(machine.caches[0].cpus.to_string(), "0-3");
    assert_eq!(machine.domains.len(), 2);
}

#[test]
fn caches_are_shared_by_usable_cpus_only_and_those_of_hidden_cpus_are_left_out() {
    let tree = Tree::from_machine(&machines::full_detail());
    let machine = tree.discover_only("1,2", "0").unwrap();
    let caches: Vec<(u32, String)> =
        machine.caches.iter().map(|cache| (cache.level, cache.cpus.to_string())).collect();
    let expected = [(1, "1"), (1, "2"), (1, "1"), (1, "2"), (2, "1"), (2, "2"), (3, "1-2")];
    assert_eq!(caches, expected.map(|(level, cpus)| (level, cpus.to_owned())));
}

#[test]
fn lists_that_differ_in_hidden_cpus_only_are_one_cache() {
    let tree = Tree::bare().with_cache("0", 3, 3, "0-2").with_cache("1", 3, 3, "0-1");
    assert_eq!(tree.discover_only("0-1", "0").unwrap().caches.len(), 1);
}

#[test]
fn details_of_a_cache_that_are_not_numbers_are_left_out_and_named() {
    for (file, text) in [
        ("coherency_line_size", "wide"),
        ("ways_of_associativity", "-2"),
        ("level", "99999999999"),
        ("size", "12 bananas"),
    ] {
        let name = format!("{CPU}/cpu0/cache/index3/{file}");
        let tree = Tree::bare().with_cache("0-3", 3, 3, "0-3").with(&name, text);
        let assumptions = tree.discover_all().assumptions;
        assert!(assumptions[0].contains(file), "{assumptions:?}");
    }
}

#[test]
fn huge_pages_of_a_kernel_without_numa_are_node_0_s() {
    let pool = "sys/kernel/mm/hugepages/hugepages-65536kB";
    let tree = Tree::bare()
        .with(&format!("{pool}/nr_hugepages"), "12\n")
        .with(&format!("{pool}/free_hugepages"), "5\n");
    let expected = HugePages { size: Bytes(64 << 20), total: 12, free: 5 };
    assert_eq!(tree.discover_all().nodes[0].huge_pages, [expected]);
}

#[test]
fn a_node_whose_memory_may_not_be_used_has_no_huge_pages() {
    let machine = Tree::from_machine(&machines::full_detail()).discover_only("0-15", "0").unwrap();
    assert_eq!(machine.nodes[0].huge_pages.len(), 2);
    assert!(machine.nodes[1].huge_pages.is_empty());
}

#[test]
fn a_pool_that_cannot_be_parsed_is_named() {
    for (pool, pages) in [("hugepages-0kB", "1"), ("hugepages-2MB", "1"), ("hugepages-4kB", "-1")] {
        let name = format!("sys/kernel/mm/hugepages/{pool}/nr_hugepages");
        let tree = Tree::bare().with(&name, pages);
        let assumptions = tree.discover_all().assumptions;
        assert!(assumptions[0].contains(pool), "{assumptions:?}");
    }
}
