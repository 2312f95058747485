//! `atoll.nodes`, `atoll.cpus`, `atoll.distances`: the machine as far as this process may use it.

use std::sync::Arc;

use atoll_runtime::Runtime;
use atoll_topology::{Cpu, Machine, Node};

use super::column::ColumnSpecs;
use super::{SystemTable, now};

/// One row per node; free memory as of now.
pub(super) fn nodes(runtime: Runtime) -> SystemTable {
    let (workers, kernel) = (runtime.clone(), Arc::clone(runtime.kernel()));
    let workers = move |node: &Node| {
        workers.workers().iter().filter(|worker| worker.node == node.id).count() as u32
    };
    ColumnSpecs::<Node>::new()
        .column("node", |node| node.id.0)
        .column("package", |node| node.package.map(|package| package.0))
        .column("cpus", |node| node.cpus.to_string())
        .column("cpu_count", |node| node.cpus.len() as u32)
        .column("worker_count", workers)
        .column("memory_bytes", |node| node.memory.0)
        .column("memory_free_bytes", move |node| Some(kernel.node_free(node.id).ok()?.0))
        .table("nodes", move |_| now(runtime.machine().nodes.clone()))
}

/// One row per cpu, with everything that contains it.
pub(super) fn cpus(machine: Arc<Machine>) -> SystemTable {
    ColumnSpecs::<Cpu>::new()
        .column("cpu", |cpu| cpu.id.0)
        .column("core", |cpu| cpu.core.0)
        .column("domain", |cpu| cpu.domain.0)
        .column("node", |cpu| cpu.node.0)
        .column("package", |cpu| cpu.package.0)
        .table("cpus", move |_| now(machine.cpus.clone()))
}

/// One row per pair of nodes.
pub(super) fn distances(machine: Arc<Machine>) -> SystemTable {
    let source = machine.distances_source.name();
    ColumnSpecs::<(u32, u32, u32)>::new()
        .column("from_node", |pair| pair.0)
        .column("to_node", |pair| pair.1)
        .column("distance", |pair| pair.2)
        .column("source", move |_| source)
        .table("distances", move |_| now(pairs(&machine)))
}

/// Two nodes and their distance.
fn pairs(machine: &Machine) -> Vec<(u32, u32, u32)> {
    let nodes = || machine.nodes.iter().map(|node| node.id);
    let pairs = nodes().flat_map(|from| nodes().map(move |to| (from, to)));
    pairs.filter_map(|(from, to)| Some((from.0, to.0, machine.distance(from, to)?))).collect()
}
