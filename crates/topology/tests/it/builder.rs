use atoll_topology::{
    BuildError, Bytes, Machine, MachineBuilder, NodeId, NodeShape, Numbering, PackageId, Source,
};

use atoll_testkit::tree::{cores, domains, nodes};

fn node(id: u32, domains: u32, cores: u32, threads: u32) -> NodeShape {
    NodeShape::with_cpus(NodeId(id), domains, cores, threads)
}

fn build(nodes: impl IntoIterator<Item = NodeShape>) -> Result<Machine, BuildError> {
    nodes.into_iter().fold(MachineBuilder::new("m"), MachineBuilder::node).build()
}

#[test]
fn cpus_are_numbered_core_by_core_over_the_nodes_by_number() {
    let machine = build([node(5, 1, 1, 2), node(2, 2, 1, 2)]).unwrap();
    assert_eq!(nodes(&machine), ["2: 0-3", "5: 4-5"]);
    assert_eq!(domains(&machine), ["0-1", "2-3", "4-5"]);
    assert_eq!(cores(&machine), ["0-1", "2-3", "4-5"]);
}

#[test]
fn threads_last_numbers_second_threads_after_all_first_threads() {
    let builder = MachineBuilder::new("m").node(node(0, 1, 2, 2)).node(node(1, 1, 1, 2));
    let machine = builder.numbering(Numbering::ThreadsLast).build().unwrap();
    assert_eq!(cores(&machine), ["0,3", "1,4", "2,5"]);
    assert_eq!(nodes(&machine), ["0: 0-1,3-4", "1: 2,5"]);
}

#[test]
fn a_node_is_a_package_by_default_and_a_node_without_cpus_is_in_none() {
    let in_3 = |shape: NodeShape| shape.package(PackageId(3));
    let memory = NodeShape::memory_only(NodeId(9), Bytes(1 << 20));
    let machine = build([in_3(node(0, 1, 1, 1)), in_3(node(1, 1, 1, 1)), node(2, 1, 1, 1), memory]);
    let machine = machine.unwrap();
    let packages: Vec<_> = machine.nodes.iter().map(|node| node.package.map(|id| id.0)).collect();
    assert_eq!(packages, [Some(3), Some(3), Some(2), None]);
    assert_eq!(machine.packages.len(), 2);
}

#[test]
fn missing_distances_are_assumed() {
    let machine = build([node(0, 1, 1, 1), node(1, 1, 1, 1)]).unwrap();
    assert_eq!(machine.distances, [[10, 20], [20, 10]]);
    assert_eq!(machine.distances_source, Source::Assumed);
}

#[test]
fn an_invalid_machine_is_an_error_with_the_reason() {
    let cases = [
        (build([]), "has no cpu"),
        (build([NodeShape::memory_only(NodeId(0), Bytes(1))]), "has no cpu"),
        (build([node(1, 1, 1, 1), node(1, 1, 1, 1)]), "has node 1 twice"),
        (build([node(0, 1, 1, 1), node(4, 0, 0, 0)]), "node 4 of machine 'm' has neither"),
        (build([node(70_000, 1, 1, 1)]), "node 70000; the largest number is 65535"),
        (build([node(0, 256, 256, 1)]), "65536 cpus; the most is 65535"),
        (build([node(0, u32::MAX, u32::MAX, u32::MAX)]), "cpus; the most is 65535"),
        (build((0..4097).map(|id| node(id, 1, 1, 1))), "4097 nodes; the most is 4096"),
    ];
    for (result, part) in cases {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn distances_that_are_not_a_square_of_the_nodes_are_rejected() {
    let builder = || MachineBuilder::new("m").node(node(0, 1, 1, 1)).node(node(1, 1, 1, 1));
    for rows in [vec![vec![10, 20]], vec![vec![10], vec![20, 10]], vec![]] {
        let error = builder().distances(rows).build().unwrap_err();
        assert_eq!(error.to_string(), "machine 'm' has 2 nodes; its distances need 2 rows of 2");
    }
}
