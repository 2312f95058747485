use atoll_topology::{Bytes, Machine, Source};
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
fn what_is_not_told_is_marked_as_assumed() {
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
fn errors_tell_the_position_and_what_was_expected() {
    let cases = [
        ("", 1, "a level (pack, node, l3, core or pu)", "the end"),
        ("node:2 cores:2", 8, "a level (pack, node, l3, core or pu)", "'cores'"),
        ("node 2", 5, "':' and a number after node", "' '"),
        ("node:x", 6, "a number from 1 to 4096 (a machine", "'x'"),
        ("node:0", 6, "a number from 1 to 4096", "'0'"),
        ("node:-1", 6, "a number from 1 to 4096", "'-1'"),
        ("node:5000", 6, "a number from 1 to 4096", "'5000'"),
        ("node:99999999999999999999", 6, "a number from 1 to 4096", "'99999999999999999999'"),
        ("pack:1000 node:5", 16, "a number from 1 to 4 ", "'5'"),
        ("node:4096 core:16", 16, "a number from 1 to 15 ", "'16'"),
        ("node:4096 core:15 pu:2", 22, "1 (a machine", "'2'"),
        ("core:2 node:2", 8, "a level inside core (pu)", "'node'"),
        ("pu:2 pu:2", 6, "the end after pu, the innermost level", "'pu'"),
        ("node:2core:2", 7, "a blank and the next level", "'core'"),
        ("node:2 é:3", 8, "a level", "'é'"),
        ("é", 1, "a level", "'é'"),
        ("node:2(size=1)", 8, "memory= and a size", "'size'"),
        ("node:2(memory=1XB)", 15, "a size below 16 EiB", "'1XB'"),
        ("node:2(memory=99999999TiB)", 15, "a size below 16 EiB", "'99999999TiB'"),
        ("node:2(memory=1GB", 18, "')' after the size", "the end"),
        ("core:2(memory=1GB)", 8, "no attributes after core", "'memory'"),
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
                "1", "3", "70000", "16GB", "18446744073709551615", "TiB", "é",
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
