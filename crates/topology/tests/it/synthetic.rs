use atoll_topology::{Bytes, CacheKind, CpuId, Machine, PackageId, Source};
use proptest::prelude::*;

use atoll_testkit::tree::{cores, domains, nodes};

fn machine(text: &str) -> Machine {
    Machine::synthetic(text).unwrap()
}

fn packages(machine: &Machine) -> Vec<String> {
    machine.packages.iter().map(|package| package.cpus.to_string()).collect()
}

#[test]
fn each_level_counts_within_the_level_above() {
    let machine = machine("pack:2 node:2 l3:2 core:3 pu:2");
    assert_eq!(packages(&machine), ["0-23", "24-47"]);
    assert_eq!(nodes(&machine), ["0: 0-11", "1: 12-23", "2: 24-35", "3: 36-47"]);
    assert_eq!(domains(&machine).len(), 8);
    assert_eq!(domains(&machine)[1], "6-11");
    assert_eq!(machine.cores.len(), 24);
    assert_eq!(cores(&machine)[1], "2-3");
}

#[test]
fn the_lab_s_shape_has_one_package_and_one_domain_for_each_node() {
    let machine = machine("node:4 core:2 pu:1");
    assert_eq!(packages(&machine), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(nodes(&machine), ["0: 0-1", "1: 2-3", "2: 4-5", "3: 6-7"]);
    assert_eq!(domains(&machine), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(machine.name, "node:4 core:2 pu:1");
    assert_eq!(machine.source, Source::Synthetic);
}

#[test]
fn without_a_node_level_one_node_spans_all_packages() {
    let machine = machine("pack:2 l3:2 core:1");
    assert_eq!(nodes(&machine), ["0: 0-3"]);
    assert_eq!(machine.nodes[0].package, None);
    assert_eq!(packages(&machine), ["0-1", "2-3"]);
    assert_eq!(domains(&machine), ["0", "1", "2", "3"]);
    assert_eq!(
        atoll_testkit::tree::domains(&Machine::synthetic("pack:2 core:2").unwrap()),
        ["0-3"]
    );
}

#[test]
fn levels_have_hwloc_s_names_in_any_case() {
    let machine = machine("  Package:1 NUMANode:2 L3Cache:1 Core:2 PU:2\n");
    assert_eq!(nodes(&machine), ["0: 0-3", "1: 4-7"]);
    assert_eq!(machine.name, "Package:1 NUMANode:2 L3Cache:1 Core:2 PU:2");
}

#[test]
fn sizes_are_decimal_or_binary_as_in_hwloc() {
    let memory = |text: &str| machine(text).nodes[0].memory;
    assert_eq!(memory("node:2(memory=16GB)"), Bytes(16_000_000_000));
    assert_eq!(memory("node:2(memory=16GiB)"), Bytes(16 << 30));
    assert_eq!(memory("node:2(memory=512kib) core:2"), Bytes(512 << 10));
    assert_eq!(memory("node:2(memory=4096)"), Bytes(4096));
    assert_eq!(machine("node:1 l3:2(size=32MiB)").domains[1].cache, Some(Bytes(32 << 20)));
}

#[test]
fn what_is_left_out_is_marked_as_assumed() {
    let bare = machine("node:2 core:2");
    assert_eq!(bare.distances, [[10, 20], [20, 10]]);
    assert_eq!(bare.distances_source, Source::Assumed);
    assert_eq!((bare.memory_source, bare.nodes[0].memory), (Source::Assumed, Bytes(1 << 30)));
    assert_eq!((bare.caches_source, bare.domains[0].cache_level), (Source::Assumed, None));
    let told = machine("node:2(memory=1MB) l3:1 core:2");
    assert_eq!(told.memory_source, Source::Synthetic);
    assert_eq!((told.caches_source, told.domains[0].cache_level), (Source::Synthetic, Some(3)));
    assert_eq!(told.domains[0].cache, None);
}

#[test]
fn errors_have_the_position_and_what_was_expected() {
    let cases = [
        ("", 1, "a level (pack, die", "the end"),
        ("node:2 cores:2", 8, "a level (pack, die", "'cores'"),
        ("node 2", 5, "':' and a number after node", "' '"),
        ("node:x", 6, "a number from 1 to 4096 (a machine", "'x'"),
        ("node:0", 6, "a number from 1 to 4096", "'0'"),
        ("node:-1", 6, "a number from 1 to 4096", "'-1'"),
        ("node:5000", 6, "a number from 1 to 4096", "'5000'"),
        ("node:99999999999999999999", 6, "a number from 1 to 4096", "'99999999999999999999'"),
        ("pack:1000 node:5", 16, "a number from 1 to 4 ", "'5'"),
        ("node:4096 core:16", 16, "a number from 1 to 15 ", "'16'"),
        ("node:4096 core:15 pu:2", 22, "1 (a machine", "'2'"),
        ("pu:2 node:2", 6, "the end after pu, the innermost level", "'node'"),
        ("core:2 core:2", 8, "another level, as core stands once", "'core'"),
        ("l3:2 core:2 L3Cache:2", 13, "another level, as l3 stands once", "'L3Cache'"),
        ("core:60000 node:2", 17, "fewer nodes and cpus", "'2'"),
        ("node:2 [numa] pu:2", 1, "nodes as a level or in brackets", "'node'"),
        ("pack:2 [core] pu:2", 9, "NUMANode in brackets", "'core'"),
        ("pack:2 [numa pu:2", 13, "']' after the node", "' '"),
        ("pack:2 3 pu:2", 1, "a name for every level but the last, or for none", "'pack'"),
        ("pack:4000 [numa] [numa] pu:2", 19, "at most 4096 nodes in all", "'numa'"),
        ("pu:4(indexes=0,1,1,2)", 14, "4 different numbers up to", "'0'"),
        ("pu:4(indexes=0,1,2)", 14, "4 different numbers up to", "'0'"),
        ("pu:2(indexes=0,70000)", 14, "2 different numbers up to", "'0'"),
        ("pu:4(indexes=2*3)", 14, "a list of numbers such as", "'2'"),
        ("pu:4(indexes=0*2)", 14, "a list of numbers such as", "'0'"),
        ("pu:4(indexes=pack)", 14, "a list of numbers such as", "'pack'"),
        ("core:2 pu:2(indexes=core:core)", 21, "a list of numbers such as", "'core'"),
        ("pu:2 pu:2", 6, "the end after pu, the innermost level", "'pu'"),
        ("node:2core:2", 7, "a blank and the next level", "'core'"),
        ("node:2 é:3", 8, "a level", "'é'"),
        ("é", 1, "a level", "'é'"),
        ("node:2(size=1)", 8, "memory= and a size", "'size'"),
        ("node:2(memory=1XB)", 15, "a size below 16 EiB", "'1XB'"),
        ("node:2(memory=99999999TiB)", 15, "a size below 16 EiB", "'99999999TiB'"),
        ("node:2(memory=1GB", 18, "')' after the size", "the end"),
        ("core:2(memory=1GB)", 8, "indexes= after core", "'memory'"),
    ];
    for (text, position, expected, found) in cases {
        let error = Machine::synthetic(text).unwrap_err();
        assert_eq!(error.position, position, "{error}");
        assert!(error.expected.starts_with(expected), "{error}");
        assert_eq!(error.found, found, "{error}");
        assert!(error.to_string().contains(&format!("at character {position}")), "{error}");
    }
}

#[test]
fn nodes_in_brackets_are_numbered_from_the_inside_out() {
    // Numbers and places as `lstopo` 2.9 shows them for the same text.
    let machine = machine("[numa] pack:2 [numa(memory=2GiB)] [NUMANode(memory=1MiB)] core:2 pu:2");
    let near: Vec<String> =
        machine.nodes.iter().map(|node| format!("{}|{}", node.cpus, node.near)).collect();
    assert_eq!(near, ["0-3|", "|0-3", "4-7|", "|4-7", "|"]);
    let memory: Vec<u64> = machine.nodes.iter().map(|node| node.memory.0 >> 20).collect();
    assert_eq!(memory, [2048, 1, 2048, 1, 1024]);
    assert_eq!(machine.memory_source, Source::Assumed);
    let numbered = self::machine("pack:2 [numa] core:2 [numa(indexes=8,7,5,4,1,2)] pu:4");
    let nodes: Vec<String> =
        numbered.nodes.iter().map(|node| format!("{}: {}", node.id, node.cpus)).collect();
    assert_eq!(nodes, ["1: 12-15", "2: ", "4: 8-11", "5: ", "7: 4-7", "8: 0-3"]);
}

#[test]
fn caches_of_every_level_and_kind_are_the_machine_s() {
    let machine = machine("pack:1 l3u:1(size=20mib) l2:2 l1i:1(size=16kiB) L1dCache:2 core:1 pu:2");
    let caches: Vec<_> = machine
        .caches
        .iter()
        .map(|cache| {
            (cache.level, cache.kind, cache.cpus.to_string(), cache.size.map(|it| it.0 >> 10))
        })
        .collect();
    let (data, code, both) = (CacheKind::Data, CacheKind::Instruction, CacheKind::Unified);
    let cache = |level, kind, cpus: &str, size| (level, kind, cpus.to_owned(), size);
    assert_eq!(
        caches,
        [
            cache(1, data, "0-1", None),
            cache(1, data, "2-3", None),
            cache(1, data, "4-5", None),
            cache(1, data, "6-7", None),
            cache(1, code, "0-3", Some(16)),
            cache(1, code, "4-7", Some(16)),
            cache(2, both, "0-3", None),
            cache(2, both, "4-7", None),
            cache(3, both, "0-7", Some(20 << 10)),
        ]
    );
    assert_eq!(domains(&machine), ["0-7"]);
    assert_eq!(domains(&self::machine("pack:2 l2:2 core:1 pu:2")), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(self::machine("l1i:2 pu:2").caches_source, Source::Assumed);
}

#[test]
fn objects_are_numbered_by_lists_loops_and_levels() {
    let cpus = |text: &str| -> Vec<String> { cores(&machine(text)) };
    let list = cpus("pack:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)");
    assert_eq!(list, ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(cpus("pack:2 core:2 pu:2(indexes=4*2:2*2:1*2)"), list);
    assert_eq!(cpus("pack:2 core:2 pu:2(indexes=pack:core)"), ["0,4", "1,5", "2,6", "3,7"]);
    // hwloc's own test of loops: PU 13 in the order is number 14.
    let text = "pack:2(indexes=3,5) numa:2(memory=256GiB indexes=pack) l3u:1(size=20mib) l2:2 \
                l1i:1(size=16kiB) l1dcache:2 core:1 pu:2(indexes=pack:l2)";
    let machine = machine(text);
    let ids: Vec<u32> = machine.packages.iter().map(|package| package.id.0).collect();
    assert_eq!(ids, [3, 5]);
    assert_eq!(nodes(&machine)[0], "0: 0,2,8,10,16,18,24,26");
    assert_eq!(machine.cpu(CpuId(14)).unwrap().core, machine.cpu(CpuId(6)).unwrap().core);
    assert_eq!(machine.nodes[2].package, Some(PackageId(3)));
}

#[test]
fn dies_groups_and_side_caches_are_described() {
    let machine = machine("pack:2 group:1 die:2 numa:1(memorysidecachesize=1GB) core:2 pu:1");
    let dies: Vec<_> =
        machine.dies.iter().map(|die| (die.package.0, die.id, die.cpus.to_string())).collect();
    let die = |package, id, cpus: &str| (package, id, cpus.to_owned());
    assert_eq!(dies, [die(0, 0, "0-1"), die(0, 1, "2-3"), die(1, 2, "4-5"), die(1, 3, "6-7")]);
    assert_eq!(machine.nodes.len(), 4);
    assert_eq!(machine.nodes[3].side_caches[0].size, Bytes(1_000_000_000));
}

#[test]
fn numbers_alone_get_the_levels_that_hwloc_gives_them() {
    let shape = |text: &str| {
        let machine = machine(text);
        let caches = machine.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
        let [packages, nodes] = [machine.packages.len(), machine.nodes.len()];
        (packages, nodes, caches, machine.cores.len(), machine.cpus.len())
    };
    assert_eq!(shape("2 3 4"), (2, 6, 0, 6, 24));
    assert_eq!(shape("2 2 2 2"), (2, 4, 0, 8, 16));
    assert_eq!(shape("2 2 2 2 2 2 2"), (2, 4, 3, 64, 128));
    assert_eq!(shape("pack:8 core:2 1"), (8, 1, 0, 16, 16));
    assert_eq!(shape("0x10"), (1, 1, 0, 1, 16));
    assert_eq!(machine("(memory=4GB) pu:2").memory(), Bytes(4_000_000_000));
}

#[test]
fn a_node_in_brackets_alone_is_a_machine_of_one_cpu() {
    assert_eq!(nodes(&machine("[numa]")), ["0: 0"]);
}

#[test]
fn nodes_that_lie_over_one_another_cost_no_more_than_their_text() {
    let text = format!("pack:2 {} core:30000", "[numa] ".repeat(2000));
    assert!(Machine::synthetic(&text).unwrap_err().expected.contains("fewer nodes over"));
}

#[test]
fn the_largest_machine_is_built() {
    let machine = machine("node:1 core:65535");
    assert_eq!(machine.cpus.len(), 65_535);
    assert_eq!(machine.domains.len(), 1);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
        let _ = Machine::synthetic(&text);
    }

    #[test]
    fn no_text_of_the_grammar_s_own_words_makes_the_parser_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "pack", "node", "l3", "core", "pu", ":", "(", ")", "memory=", "size=", " ", "0",
                "1", "3", "70000", "[", "]", "l1i", "die", "group", "indexes=", "0x", "*", ",", "16GB", "18446744073709551615", "TiB", "é",
            ]),
            0..16,
        )
    ) {
        if let Err(error) = Machine::synthetic(&words.concat()) {
            prop_assert!(error.position >= 1);
        }
    }

    #[test]
    fn counts_multiply(pack in 1u32..4, node in 1u32..4, l3 in 1u32..4, core in 1u32..4, pu in 1u32..4) {
        let machine = machine(&format!("pack:{pack} node:{node} l3:{l3} core:{core} pu:{pu}"));
        prop_assert_eq!(machine.packages.len() as u32, pack);
        prop_assert_eq!(machine.nodes.len() as u32, pack * node);
        prop_assert_eq!(machine.domains.len() as u32, pack * node * l3);
        prop_assert_eq!(machine.cores.len() as u32, pack * node * l3 * core);
        prop_assert_eq!(machine.cpus.len() as u32, pack * node * l3 * core * pu);
    }
}
