//! Placement strategies: where threads run and where the memory they use lies.
//!
//! | Strategy | Threads | Memory | Source |
//! |---|---|---|---|
//! | `default` | free | the operating system's policy | Kiefer 2013, 4.2; Symas 2014 |
//! | `aligned` | on their node | the same node | Kiefer 2013, 4.2, figure 4a |
//! | `ahead(k)` | on their node | the k-th next node | Kiefer 2013, 4.2, figure 4b (1-ahead) |
//! | `farthest` | on their node | the node with the largest distance | worst case where links are missing |
//! | `interleave` | on their node | over all nodes | Kiefer 2013, 4.2, figure 4c |
//! | `spread` | free | over all nodes | Symas 2014, `numactl --interleave=all` |
//! | `subset(k)` | on k nodes | over those k nodes | Symas 2014, conclusion |
//! | `local` | free | the node of the thread that touches it | `numactl --localalloc` |
//! | `preferred(n)` | free | node n | `numactl --preferred` |
//! | `weighted-interleave` | free | over all nodes by weight | `numactl --weighted-interleave` |
//! | `replicate` | on their node | one copy on every node | practice, for small hot tables |
//!
//! [`Strategy::home_of`] answers for whole instances, page by page; [`Strategy::chunk_home`] for the
//! chunks of a table, each of which has one home. Both only ask the [`Machine`]. A node without
//! memory hands its part to the nearest node that has some.

mod chunks;
mod homes;
mod parse;

use atoll_topology::{Machine, Node, NodeId, NodeSet};

pub use homes::{Homes, MemoryHome};
pub use parse::StrategyParseError;

/// A placement strategy. Read from and printed as `aligned`, `ahead(2)`, `preferred(0)`, …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No policy: threads run free and the first touch decides. What a DBMS that knows nothing of
    /// nodes gets (Kiefer 2013, section 4.2; Symas 2014, where it is called local).
    #[default]
    Default,
    /// Threads and memory of each part on one node: the expected best case (Kiefer 2013, section
    /// 4.2, figure 4a).
    Aligned,
    /// Memory on the k-th next node with memory after the threads' node, in the order of ids and
    /// cyclic: for k = 1 the expected worst case (Kiefer 2013, section 4.2, figure 4b, "1-ahead").
    Ahead(u32),
    /// Memory on the node farthest from the threads' node; of several, the first after it in the
    /// order of ids. The true worst case where links are missing and the next node is a neighbour.
    Farthest,
    /// Threads of each part on its node, memory over all nodes (Kiefer 2013, section 4.2, figure
    /// 4c).
    Interleave,
    /// Threads free, memory over all nodes (Symas 2014, `numactl --interleave=all`).
    Spread,
    /// Threads and memory on the first k nodes with memory (Symas 2014, conclusion: a small number
    /// of threads with a small data set on a subset of nodes). Zero counts as one.
    Subset(u32),
    /// Threads free, memory on the node of the thread that touches it, whatever the policy of the
    /// process says (`numactl --localalloc`).
    Local,
    /// Threads free, memory on this node while it has room (`numactl --preferred`).
    Preferred(NodeId),
    /// Threads free, memory over all nodes in proportion to weights (`numactl
    /// --weighted-interleave`).
    WeightedInterleave,
    /// Threads of each part on its node, one copy of the data on every node with memory: for small
    /// tables that all nodes read.
    Replicate,
}

/// Where the memory of one chunk of a table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChunkHome {
    /// On this node.
    Node(NodeId),
    /// No policy: where its first touch puts it.
    Unbound,
    /// One copy on every node with memory.
    CopyPerNode,
}

/// Why a strategy has no answer for a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// A node that the machine does not have.
    #[error("node {node} does not exist; nodes of this machine: {known}")]
    UnknownNode {
        /// The node asked for.
        node: NodeId,
        /// Nodes of the machine.
        known: NodeSet,
    },
    /// No node with memory, or none with cpus.
    #[error("no node of machine '{machine}' has {what} this process may use; check its cpuset")]
    NothingUsable {
        /// Name of the machine.
        machine: String,
        /// `memory` or `cpus`.
        what: &'static str,
    },
}

/// The node with memory that serves `node`: itself, or the nearest.
fn memory_node(machine: &Machine, node: NodeId) -> Result<NodeId, StrategyError> {
    known(machine, node)?;
    machine.nearest_with_memory(node).map(|node| node.id).ok_or_else(|| nothing(machine, "memory"))
}

fn known(machine: &Machine, node: NodeId) -> Result<&Node, StrategyError> {
    machine.node(node).ok_or_else(|| StrategyError::UnknownNode {
        node,
        known: machine.nodes.iter().map(|node| node.id).collect(),
    })
}

fn nothing(machine: &Machine, what: &'static str) -> StrategyError {
    StrategyError::NothingUsable { machine: machine.name.clone(), what }
}

/// Ids of the nodes with memory, in rising order; at least one.
fn memory_ids(machine: &Machine) -> Result<Vec<NodeId>, StrategyError> {
    let ids: Vec<NodeId> = machine.nodes_with_memory().map(|node| node.id).collect();
    if ids.is_empty() { Err(nothing(machine, "memory")) } else { Ok(ids) }
}

/// The first k nodes with memory; at least one, at most all.
fn subset_ids(machine: &Machine, k: u32) -> Result<Vec<NodeId>, StrategyError> {
    let mut ids = memory_ids(machine)?;
    ids.truncate(k.max(1) as usize);
    Ok(ids)
}

/// The k-th next node with memory after `node` in the order of ids, cyclic. A node without memory
/// counts from the node that serves it.
fn ahead(machine: &Machine, node: NodeId, k: u32) -> Result<NodeId, StrategyError> {
    let ids = memory_ids(machine)?;
    let own = memory_node(machine, node)?;
    let position = ids.iter().position(|id| *id == own).unwrap_or(0);
    Ok(ids[(position + k as usize % ids.len()) % ids.len()])
}

/// The node with memory at the largest distance from `node`; of several, the first after it in the
/// order of ids, cyclic, so that the nodes of a symmetric machine do not all choose the same.
fn farthest(machine: &Machine, node: NodeId) -> Result<NodeId, StrategyError> {
    known(machine, node)?;
    let ids = memory_ids(machine)?;
    let after = ids.partition_point(|id| *id <= node);
    let distance = |id: &NodeId| machine.distance(node, *id).unwrap_or(0);
    let cyclic = ids[after..].iter().chain(&ids[..after]);
    let first_of_largest = |best: NodeId, id: &NodeId| {
        if distance(id) > distance(&best) { *id } else { best }
    };
    Ok(cyclic.fold(ids[after % ids.len()], first_of_largest))
}
