//! Threads and memory of each node.

use std::collections::BTreeMap;

use atoll_topology::{CpuSet, NodeId};

use super::bytes::NodeBytes;
use super::nodes::NodeMap;
use super::threads::Thread;

/// Threads and memory of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// The node; `None` for threads and memory whose node is unknown.
    pub node: Option<NodeId>,
    /// Its cpus.
    pub cpus: CpuSet,
    /// Threads that last ran on it.
    pub threads: u64,
    /// Cpu usage of these threads, in cpus.
    pub cpu_share: f64,
    /// Bytes resident on it.
    pub bytes: u64,
    /// Local share of the resident bytes of threads that run here. Resident, not accessed.
    pub share: f64,
}

/// Every node, with its threads and bytes.
pub(super) fn rows<'a>(
    threads: impl Iterator<Item = &'a Thread>,
    bytes: &NodeBytes,
    nodes: &NodeMap,
) -> Vec<NodeRow> {
    let empty = |node, cpus: &CpuSet| NodeRow {
        node,
        cpus: cpus.clone(),
        threads: 0,
        cpu_share: 0.0,
        bytes: 0,
        share: 0.0,
    };
    let mut rows: BTreeMap<Option<NodeId>, NodeRow> =
        nodes.nodes().map(|(node, cpus)| (Some(node), empty(Some(node), cpus))).collect();
    for thread in threads {
        let row = rows.entry(thread.node).or_insert_with(|| empty(thread.node, &CpuSet::default()));
        row.threads += 1;
        row.cpu_share += thread.cpu_share.unwrap_or(0.0);
    }
    let total = bytes.values().sum::<u64>().max(1) as f64;
    for (node, bytes) in bytes {
        let row = rows.entry(*node).or_insert_with(|| empty(*node, &CpuSet::default()));
        row.bytes = *bytes;
        row.share = *bytes as f64 / total;
    }
    // Unknown nodes come last.
    let mut rows: Vec<NodeRow> = rows.into_values().collect();
    rows.sort_by_key(|row| (row.node.is_none(), row.node));
    rows
}
