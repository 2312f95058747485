//! `atoll.nodes`, `atoll.cpus`, `atoll.distances`: the machine as far as this process may use it.

use std::sync::Arc;

use atoll_placement::Kernel;
use atoll_runtime::Runtime;
use atoll_topology::{Machine, Node};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use datafusion::arrow::datatypes::DataType::{UInt32, UInt64, Utf8};

use super::{SystemTable, table};

/// One row a node; free memory as of now.
pub(super) fn nodes(runtime: Runtime) -> SystemTable {
    table(
        "nodes",
        &[
            ("node", UInt32, false),
            ("package", UInt32, true),
            ("cpus", Utf8, false),
            ("cpu_count", UInt32, false),
            ("worker_count", UInt32, false),
            ("memory_bytes", UInt64, false),
            ("memory_free_bytes", UInt64, true),
        ],
        Box::new(move |_| {
            let runtime = runtime.clone();
            Box::pin(async move { Ok(node_values(&runtime)) })
        }),
    )
}

fn node_values(runtime: &Runtime) -> Vec<ArrayRef> {
    let nodes = || runtime.machine().nodes.iter();
    let kernel: &Arc<dyn Kernel> = runtime.kernel();
    let workers = |node: &Node| {
        runtime.workers().iter().filter(|worker| worker.node == node.id).count() as u32
    };
    let free = |node: &Node| kernel.node_free(node.id).ok().map(|bytes| bytes.0);
    vec![
        Arc::new(nodes().map(|node| Some(node.id.0)).collect::<UInt32Array>()),
        Arc::new(nodes().map(|node| node.package.map(|p| p.0)).collect::<UInt32Array>()),
        Arc::new(nodes().map(|node| Some(node.cpus.to_string())).collect::<StringArray>()),
        Arc::new(nodes().map(|node| Some(node.cpus.len() as u32)).collect::<UInt32Array>()),
        Arc::new(nodes().map(|node| Some(workers(node))).collect::<UInt32Array>()),
        Arc::new(nodes().map(|node| Some(node.memory.0)).collect::<UInt64Array>()),
        Arc::new(nodes().map(free).collect::<UInt64Array>()),
    ]
}

/// One row a cpu, with everything it lies in.
pub(super) fn cpus(machine: Arc<Machine>) -> SystemTable {
    table(
        "cpus",
        &[
            ("cpu", UInt32, false),
            ("core", UInt32, false),
            ("domain", UInt32, false),
            ("node", UInt32, false),
            ("package", UInt32, false),
        ],
        Box::new(move |_| {
            let column = |number: fn(&atoll_topology::Cpu) -> u32| -> ArrayRef {
                Arc::new(UInt32Array::from_iter_values(machine.cpus.iter().map(number)))
            };
            let values = vec![
                column(|cpu| cpu.id.0),
                column(|cpu| cpu.core.0),
                column(|cpu| cpu.domain.0),
                column(|cpu| cpu.node.0),
                column(|cpu| cpu.package.0),
            ];
            Box::pin(async move { Ok(values) })
        }),
    )
}

/// One row a pair of nodes.
pub(super) fn distances(machine: Arc<Machine>) -> SystemTable {
    table(
        "distances",
        &[
            ("from_node", UInt32, false),
            ("to_node", UInt32, false),
            ("distance", UInt32, false),
            ("source", Utf8, false),
        ],
        Box::new(move |_| {
            let values = distance_values(&machine);
            Box::pin(async move { Ok(values) })
        }),
    )
}

fn distance_values(machine: &Machine) -> Vec<ArrayRef> {
    let pairs: Vec<(u32, u32, u32)> = machine
        .nodes
        .iter()
        .flat_map(|from| machine.nodes.iter().map(move |to| (from.id, to.id)))
        .filter_map(|(from, to)| Some((from.0, to.0, machine.distance(from, to)?)))
        .collect();
    let source = machine.distances_source.name();
    vec![
        Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.0))),
        Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.1))),
        Arc::new(UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.2))),
        Arc::new(StringArray::from_iter_values(pairs.iter().map(|_| source))),
    ]
}
