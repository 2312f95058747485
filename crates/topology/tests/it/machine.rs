use atoll_testkit::machines;
use atoll_topology::{Bytes, CpuId, Machine, Node, NodeId};

fn ids<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<u32> {
    nodes.into_iter().map(|node| node.id.0).collect()
}

#[test]
fn nodes_are_ordered_by_distance_with_the_node_itself_first_and_ties_by_number() {
    let machine = machines::four_nodes();
    assert_eq!(ids(machine.nodes_by_distance(NodeId(2))), [2, 0, 3, 1]);
}

#[test]
fn distances_go_by_node_number_and_not_by_position() {
    let machine = machines::eight_uneven_nodes();
    assert_eq!(machine.distance(NodeId(0), NodeId(4)), Some(21));
    assert_eq!(machine.distance(NodeId(4), NodeId(0)), Some(22));
    assert_eq!(machine.distance(NodeId(8), NodeId(0)), Some(40));
    assert_eq!(machine.distance(NodeId(3), NodeId(0)), None);
}

#[test]
fn a_node_without_memory_or_cpus_has_a_nearest_node_that_has_them() {
    let machine = machines::eight_uneven_nodes();
    assert_eq!(machine.nearest_with_memory(NodeId(6)).unwrap().id, NodeId(2));
    assert_eq!(machine.nearest_with_cpus(NodeId(5)).unwrap().id, NodeId(0));
    assert_eq!(ids(machine.nodes_with_memory()), [0, 1, 2, 4, 5, 7, 8]);
    assert_eq!(ids(machine.nodes_with_cpus()), [0, 1, 2, 4, 6, 7, 8]);
}

#[test]
fn every_cpu_knows_its_place_and_every_list_agrees_with_it() {
    for machine in machines::all() {
        for cpu in &machine.cpus {
            assert_eq!(machine.cpu(cpu.id), Some(cpu));
            assert!(machine.node(cpu.node).unwrap().cpus.contains(cpu.id));
            assert!(machine.domains[cpu.domain.index()].cpus.contains(cpu.id));
            assert!(machine.cores[cpu.core.index()].cpus.contains(cpu.id));
            assert_eq!(machine.domains[cpu.domain.index()].node, cpu.node);
            assert_eq!(machine.cores[cpu.core.index()].domain, cpu.domain);
        }
        let sum = |counts: Vec<usize>| counts.into_iter().sum::<usize>();
        let cpus = machine.cpus.len();
        assert_eq!(sum(machine.nodes.iter().map(|node| node.cpus.len()).collect()), cpus);
        assert_eq!(sum(machine.domains.iter().map(|domain| domain.cpus.len()).collect()), cpus);
        assert_eq!(sum(machine.cores.iter().map(|core| core.cpus.len()).collect()), cpus);
    }
}

#[test]
fn memory_of_all_nodes_is_summed_without_overflow() {
    assert_eq!(machines::two_nodes().memory(), Bytes(64 << 30));
    let machine = Machine::synthetic("node:4(memory=9000000TiB)").unwrap();
    assert_eq!(machine.memory(), Bytes(u64::MAX));
}

#[test]
fn a_cpu_that_is_not_there_is_none() {
    assert_eq!(machines::one_node().cpu(CpuId(4)), None);
}
