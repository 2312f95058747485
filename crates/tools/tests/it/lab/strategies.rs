//! Every strategy of `run` puts threads and pages where it says, and `where` reports what the kernel
//! says.

use serde_json::Value;

use super::guest::{EIGHT_NODES, FOUR_NODES, Printed, UNEVEN, by_node};

/// The placement expected of a program: (strategy, instance, cpus, nodes that hold its pages alike).
type Expected = (&'static str, u32, &'static str, &'static [u32]);

/// Pages of the program's 8 MiB.
const PAGES: u64 = 2048;

#[test]
fn strategies_hold_on_a_fully_connected_machine_of_four_nodes() {
    let Some(printed) = FOUR_NODES.printed() else { return };
    let expected: &[Expected] = &[
        ("aligned", 0, "0-1", &[0]),
        ("aligned", 1, "2-3", &[1]),
        ("aligned", 2, "4-5", &[2]),
        ("aligned", 3, "6-7", &[3]),
        ("ahead(1)", 0, "0-1", &[1]),
        ("ahead(1)", 1, "2-3", &[2]),
        ("ahead(1)", 2, "4-5", &[3]),
        ("ahead(1)", 3, "6-7", &[0]),
        ("ahead(2)", 0, "0-1", &[2]),
        ("ahead(2)", 3, "6-7", &[1]),
        ("farthest", 0, "0-1", &[1]),
        ("farthest", 3, "6-7", &[0]),
        ("interleave", 0, "0-1", &[0, 1, 2, 3]),
        ("interleave", 3, "6-7", &[0, 1, 2, 3]),
        ("spread", 0, "0-7", &[0, 1, 2, 3]),
        ("subset(2)", 0, "0-3", &[0, 1]),
        ("preferred(1)", 0, "0-7", &[1]),
        ("membind", 0, "0-1", &[1]),
        ("physcpubind", 0, "0", &[0]),
        // One instance has the first node's cpus unless set otherwise.
        ("interleave-two", 0, "0-1", &[0, 1]),
        ("preferred-many", 0, "0-1", &[1]),
    ];
    check(printed, expected);
    are_free(printed, "0-7");
    assert_eq!(printed.lines("balancing", 1), [["0"]], "balancing was to be off");
}

#[test]
fn strategies_hold_on_an_uneven_machine_with_a_node_of_memory_only() {
    let Some(printed) = UNEVEN.printed() else { return };
    let expected: &[Expected] = &[
        ("aligned", 0, "0-2", &[0]),
        ("aligned", 1, "3", &[1]),
        ("aligned", 2, "4-5", &[2]),
        ("ahead(1)", 0, "0-2", &[1]),
        ("ahead(1)", 1, "3", &[2]),
        ("ahead(1)", 2, "4-5", &[3]),
        ("farthest", 0, "0-2", &[2]),
        ("farthest", 1, "3", &[3]),
        ("farthest", 2, "4-5", &[3]),
        ("interleave", 1, "3", &[0, 1, 2, 3]),
        // Cpus 6 to 8 could be plugged in, so that the kernel lets programs have them.
        ("spread", 0, "0-8", &[0, 1, 2, 3]),
        ("subset(2)", 0, "0-3", &[0, 1]),
        ("preferred(1)", 0, "0-8", &[1]),
        ("membind", 0, "0-2", &[1]),
        ("physcpubind", 0, "0", &[0]),
    ];
    check(printed, expected);
    are_free(printed, "0-8");
}

#[test]
fn strategies_hold_on_eight_nodes_with_the_published_distances() {
    let Some(printed) = EIGHT_NODES.printed() else { return };
    let all: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7];
    let expected: &[Expected] = &[
        ("aligned", 0, "0", &[0]),
        ("aligned", 3, "3", &[3]),
        ("aligned", 7, "7", &[7]),
        ("ahead(1)", 6, "6", &[7]),
        ("ahead(1)", 7, "7", &[0]),
        ("ahead(2)", 7, "7", &[1]),
        // By the published matrix: the first after the node, of those at 22.
        ("farthest", 0, "0", &[3]),
        ("farthest", 1, "1", &[2]),
        ("farthest", 2, "2", &[5]),
        ("farthest", 3, "3", &[4]),
        ("farthest", 4, "4", &[7]),
        ("farthest", 5, "5", &[6]),
        ("farthest", 6, "6", &[1]),
        ("farthest", 7, "7", &[0]),
        ("interleave", 5, "5", all),
        ("spread", 0, "0-7", all),
        ("subset(2)", 0, "0-1", &[0, 1]),
        ("preferred(1)", 0, "0-7", &[1]),
        ("membind", 0, "0", &[1]),
    ];
    check(printed, expected);
    are_free(printed, "0-7");
}

#[track_caller]
fn check(printed: &Printed, expected: &[Expected]) {
    assert!(printed.lines("refused", 2).is_empty(), "{:?}", printed.lines("refused", 2));
    for (strategy, instance, cpus, nodes) in expected {
        let held = held(printed, strategy, *instance);
        assert_eq!(held[2], *cpus, "cpus of {strategy} {instance}");
        assert_alike(held[3], nodes, &format!("{strategy} {instance}"));
    }
    where_agrees_with_the_kernel(printed);
}

#[track_caller]
fn held<'a>(printed: &'a Printed, strategy: &str, instance: u32) -> Vec<&'a str> {
    let instance = instance.to_string();
    let lines = printed.lines("held", 4);
    let of_it = |line: &Vec<&str>| line[0] == strategy && line[1] == instance;
    lines.into_iter().find(of_it).unwrap_or_else(|| panic!("no program of {strategy} {instance}"))
}

/// All pages lie on the nodes, each with its share but for a hundredth.
#[track_caller]
fn assert_alike(found: &str, nodes: &[u32], what: &str) {
    let pages = by_node(found);
    let total: u64 = pages.values().sum();
    assert!(total >= PAGES, "{what}: {found}");
    let share = total / nodes.len() as u64;
    for node in nodes {
        let here = pages.get(node).copied().unwrap_or(0);
        assert!(here.abs_diff(share) <= share / 100, "{what}: {found}, wanted {nodes:?} alike");
    }
    let elsewhere: u64 =
        pages.iter().filter(|(node, _)| !nodes.contains(node)).map(|(_, pages)| pages).sum();
    assert!(elsewhere * 100 <= total, "{what}: {found}, wanted {nodes:?} only");
}

/// Under `default` and `local` threads may run anywhere, and pages are where they were touched.
#[track_caller]
fn are_free(printed: &Printed, cpus: &str) {
    for strategy in ["default", "local"] {
        let held = held(printed, strategy, 0);
        assert_eq!(held[2], cpus, "{strategy}");
        assert!(by_node(held[3]).values().sum::<u64>() >= PAGES, "{strategy}: {}", held[3]);
    }
}

/// `where` and the kernel's own numa_maps agree for every program on every node to the last page but
/// those that come and go with reading it.
#[track_caller]
fn where_agrees_with_the_kernel(printed: &Printed) {
    const SLACK: u64 = 64 << 10;
    let maps = printed.lines("maps", 3);
    let shown = printed.lines("where", 3);
    assert_eq!(maps.len(), shown.len());
    assert!(shown.len() > 10);
    for (maps, shown) in maps.iter().zip(&shown) {
        assert_eq!(maps[..2], shown[..2]);
        let document: Value = serde_json::from_str(shown[2]).expect("one JSON document");
        for (node, bytes) in by_node(maps[2]) {
            let nodes = document["nodes"].as_array().expect("a list of nodes");
            let row = nodes.iter().find(|row| row["node"] == node).expect("a row for each node");
            let found = row["memory_bytes"].as_u64().expect("bytes");
            assert!(
                found.abs_diff(bytes) <= SLACK,
                "{:?} node {node}: {found}, {bytes}",
                &maps[..2]
            );
        }
    }
}
