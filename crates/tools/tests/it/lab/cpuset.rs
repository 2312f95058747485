//! A cpuset that hides nodes: the allowed cpus and nodes bound everything, and refusals of the kernel are reported.

use super::guest::{FOUR_NODES, by_node};

#[test]
fn a_cpuset_bounds_topo_and_run_and_refusals_are_reported() {
    let Some(printed) = FOUR_NODES.printed() else { return };
    let machine = printed.json("topo");
    let nodes = machine["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 2, "{machine}");
    assert_eq!(machine["hidden"]["nodes"], "2-3", "{}", machine["hidden"]);
    let mut held = printed.lines("held", 4);
    held.retain(|line| line[0] == "hidden");
    assert_eq!(held.len(), 2, "one instance for each node that is allowed");
    for (line, cpus) in held.iter().zip(["0-1", "2-3"]) {
        assert_eq!(line[2], cpus, "instance {}", line[1]);
        let pages = by_node(line[3]);
        assert!(pages.keys().eq(&[0, 1]), "interleaved over what is allowed: {}", line[3]);
    }
    let strict = &printed.lines("strict", 2)[0];
    assert_eq!(strict[0], "3", "refused placement: {}", strict[1]);
    assert!(strict[1].contains("EINVAL") && strict[1].contains("cpuset"), "{}", strict[1]);
    let soft = &printed.lines("soft", 2)[0];
    assert_eq!(soft[0], "0", "goes on without --strict: {}", soft[1]);
    assert!(!soft[1].is_empty(), "and says so");
}
