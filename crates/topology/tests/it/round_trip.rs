use atoll_testkit::machines;
use atoll_topology::{
    Bytes, CpuTimeLimit, Limits, Machine, MachineBuilder, MemoryLimit, NodeId, NodeShape,
    Numbering, PackageId, Source,
};

use atoll_testkit::tree::Tree;

/// The machine as discovery should see it: the same, from another source.
fn discovered(machine: &Machine) -> Machine {
    let caches_known = machine.domains.iter().any(|domain| domain.cache_level.is_some());
    Machine {
        source: Source::Discovered,
        memory_source: Source::Discovered,
        memory_free_source: Source::Observed,
        caches_source: if caches_known { Source::Discovered } else { Source::Assumed },
        distances_source: Source::Discovered,
        pages_source: Source::Discovered,
        caches: machines::caches_written(machine),
        ..machine.clone()
    }
}

fn assert_round_trip(machine: &Machine) {
    let found = Tree::from_machine(machine).discover().unwrap();
    assert_eq!(found, discovered(machine), "{}", machine.name);
}

#[test]
fn every_fake_machine_is_discovered_as_it_was_written() {
    for machine in machines::all() {
        assert_round_trip(&machine);
    }
}

#[test]
fn synthetic_machines_are_discovered_as_they_were_written() {
    for text in ["node:4 core:2 pu:1", "pack:2 node:2 l3:3(size=8MiB) core:2 pu:2", "pack:2 core:3"]
    {
        assert_round_trip(&Machine::synthetic(text).unwrap());
    }
}

#[test]
fn limits_pages_and_free_memory_survive() {
    let mut machine = machines::two_nodes();
    machine.page_size = Bytes(65_536);
    machine.huge_page_size = None;
    machine.nodes[1].memory_free = Bytes(5 << 30);
    machine.limits = Limits {
        memory: Some(MemoryLimit {
            bytes: Bytes(3 << 30),
            file: "/sys/fs/cgroup/atoll/memory.max".to_owned(),
        }),
        cpu_time: Some(CpuTimeLimit { cpus: 1.5, file: "/sys/fs/cgroup/atoll/cpu.max".to_owned() }),
    };
    assert_round_trip(&machine);
}

#[test]
fn a_machine_of_many_small_nodes_survives() {
    let builder = (0..20).fold(MachineBuilder::new("many"), |builder, id| {
        let shape = NodeShape::with_cpus(NodeId(id * 50), 1 + id % 2, 1 + id % 3, 1 + id % 4);
        builder.node(shape.package(PackageId(id / 4)).memory(Bytes(1 << 20)))
    });
    assert_round_trip(&builder.numbering(Numbering::ThreadsLast).build().unwrap());
}
