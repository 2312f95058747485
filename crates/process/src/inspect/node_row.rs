//! What lives on each node.

use std::collections::BTreeMap;

use atoll_topology::{CpuSet, NodeId};

use super::bytes::NodeBytes;
use super::nodes::NodeMap;
use super::threads::Thread;

/// What lives on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// The node; none for threads and memory of which the node is not known.
    pub node: Option<NodeId>,
    /// Its cpus.
    pub cpus: CpuSet,
    /// Threads that last ran on it.
    pub threads: u64,
    /// Cpus' worth of time that they use.
    pub cpu_share: f64,
    /// Bytes resident on it.
    pub bytes: u64,
    /// Of all that is resident: what a thread that runs here has locally. Resident, not accessed.
    pub share: f64,
}

/// Every node, with those of the threads and bytes that are on it.
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
    // What is not known comes last.
    let mut rows: Vec<NodeRow> = rows.into_values().collect();
    rows.sort_by_key(|row| (row.node.is_none(), row.node));
    rows
}
