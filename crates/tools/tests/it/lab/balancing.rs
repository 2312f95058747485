//! Automatic NUMA balancing: pages follow a program that was moved when it is on, and stay when it is off
//! or a policy binds them.

use super::guest::{FOUR_NODES, by_node};

#[test]
fn pages_follow_a_moved_program_only_with_balancing_and_without_a_policy() {
    let Some(printed) = FOUR_NODES.printed() else { return };
    let after = printed.lines("after", 2);
    let on_node = |label: &str, node: u32| {
        let line = after.iter().find(|line| line[0] == label).expect("a line for each");
        by_node(line[1]).get(&node).copied().unwrap_or(0)
    };
    assert!(on_node("on", 1) >= 1900, "{after:?}");
    assert_eq!(on_node("on-membind", 0), 2048, "{after:?}");
    assert_eq!(on_node("off", 0), 2048, "{after:?}");
}
