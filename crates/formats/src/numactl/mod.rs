//! The output of `numactl -H`: parsed into a machine, and written byte for byte.
//!
//! | Function | From | To |
//! |---|---|---|
//! | [`parse`] | the text | a [`Knowledge`](atoll_topology::Knowledge) |
//! | [`write()`] | a described [`Machine`] | the text |
//! | [`hardware`] | sysfs under a root | the output of numactl on that machine |
//!
//! The format is that of `hardware()` in numactl's `numactl.c`; the files are those that `numa_node_size64`,
//! `numa_node_to_cpus` and `numa_distance` of its library read.

mod hardware;
mod parse;

use std::fmt::Write;

use atoll_topology::{Bytes, CpuSet, Machine, NodeId, NodeSet};

pub use hardware::{HardwareError, hardware};
pub use parse::parse;

/// The output of numactl on a kernel without NUMA; numactl then exits with code 1.
pub const NO_NUMA: &str = "No NUMA available on this system";

/// Width of the distance columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceWidth {
    /// Up to numactl 2.0.18: three characters.
    #[default]
    Narrow,
    /// From numactl 2.0.19 on: four.
    Wide,
}

/// A node of the output.
#[derive(Clone, Debug)]
struct NodeLines {
    id: NodeId,
    cpus: CpuSet,
    /// None if not available.
    size: Option<Bytes>,
    free: Option<Bytes>,
}

/// Writes a described machine as `numactl -H` would print it.
pub fn write(machine: &Machine, columns: DistanceWidth) -> String {
    let nodes: Vec<NodeLines> = machine
        .nodes
        .iter()
        .map(|node| NodeLines {
            id: node.id,
            cpus: node.cpus.clone(),
            size: Some(node.memory),
            free: Some(node.memory_free),
        })
        .collect();
    text(&nodes, &machine.distances, columns)
}

/// The text; `distances` has a row and a column for each node.
fn text(nodes: &[NodeLines], distances: &[Vec<u32>], columns: DistanceWidth) -> String {
    let ids: NodeSet = nodes.iter().map(|node| node.id).collect();
    let mut text = format!("available: {} nodes ({ids})\n", nodes.len());
    for node in nodes {
        write_node(node, &mut text);
    }
    write_distances(nodes, distances, columns, &mut text);
    text
}

fn write_node(node: &NodeLines, text: &mut String) {
    let id = node.id;
    let _ = write!(text, "node {id} cpus:");
    for cpu in node.cpus.iter() {
        let _ = write!(text, " {cpu}");
    }
    let _ = writeln!(text, "\nnode {id} size: {}", megabytes(node.size));
    let _ = writeln!(text, "node {id} free: {}", megabytes(node.free));
}

fn megabytes(memory: Option<Bytes>) -> String {
    memory.map_or_else(|| "<not available>".to_owned(), |memory| format!("{} MB", memory.0 >> 20))
}

/// The matrix; numactl treats a distance of 0 from the last node to the first as no distances at all.
fn write_distances(
    nodes: &[NodeLines],
    distances: &[Vec<u32>],
    columns: DistanceWidth,
    text: &mut String,
) {
    if distances.last().and_then(|row| row.first()).is_none_or(|&distance| distance == 0) {
        text.push_str("No distance information available.\n");
        return;
    }
    let (corner, width) = match columns {
        DistanceWidth::Narrow => ("node ", 3),
        DistanceWidth::Wide => ("node  ", 4),
    };
    // printf's `% 3d`: always a space before the number.
    let number = |number: u32| format!("{:>width$}", format!(" {number}"));
    let _ = write!(text, "node distances:\n{corner}");
    for node in nodes {
        let _ = write!(text, "{} ", number(node.id.0));
    }
    text.push('\n');
    for (node, row) in nodes.iter().zip(distances) {
        let _ = write!(text, "{}: ", number(node.id.0));
        for &distance in row {
            let _ = write!(text, "{} ", number(distance));
        }
        text.push('\n');
    }
}
