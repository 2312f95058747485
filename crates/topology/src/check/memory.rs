//! Nodes with cpus and no memory, or much less than their peers.

use super::{FileReading, Finding, scene::Scene};
use crate::{Bytes, Node};

/// A node with less memory than the largest node's divided by this is unbalanced.
const UNEVEN_FACTOR: u64 = 2;
const ADVICE: &str = "Spread the modules evenly over the sockets and all their channels; \
                      'dmidecode -t memory' (as root) lists the slots.";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let machine = scene.machine();
    let allowed = |node: &&Node| !machine.hidden.nodes.contains(node.id);
    let most = machine.nodes_with_cpus().map(|node| node.memory).max().unwrap_or_default();
    machine
        .nodes_with_cpus()
        .filter(allowed)
        .filter_map(|node| match node.memory {
            Bytes(0) => Some(without(node)),
            memory if memory.0 < most.0 / UNEVEN_FACTOR => Some(with_less(node, most)),
            _ => None,
        })
        .collect()
}

fn without(node: &Node) -> Finding {
    Finding::warning(
        "node_without_memory",
        format!("Node {} has cpus {} and no memory", node.id, node.cpus),
        "Every access of these cpus is remote, and a thread bound to the node cannot have memory at \
         home.",
    )
    .from([reading(node)])
    .advice(ADVICE)
}

fn with_less(node: &Node, most: Bytes) -> Finding {
    Finding::warning(
        "memory_uneven",
        format!("Node {} has {} of memory, a peer has {most}", node.id, node.memory),
        "Data that is spread evenly fills this node first, and with fewer memory modules it also \
         has less bandwidth.",
    )
    .from([reading(node)])
    .advice(ADVICE)
}

fn reading(node: &Node) -> FileReading {
    let file = format!("/sys/devices/system/node/node{}/meminfo", node.id);
    FileReading { file, value: format!("MemTotal: {} kB", node.memory.0 / 1024) }
}
