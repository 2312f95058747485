//! The priority queue of section 3.2.1: "each entry keeps the PIDs of the active threads with their address spaces and
//! the number of pages per NUMA node". Its first node is the one with most accessed pages.

use std::collections::BTreeMap;
use std::ops::Range;

use atoll_topology::NodeId;

/// Maximum number of entries; further ones are added to the last.
const ENTRIES_MAX: usize = 4096;

/// Pages of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessEntry {
    /// The process or, if the kernel counts per thread, the thread.
    pub pid: u32,
    /// The address ranges; empty if the kernel reports only sums.
    pub addresses: Range<u64>,
    /// Pages by node.
    pub pages: BTreeMap<NodeId, u64>,
}

/// The known pages that a target accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQueue {
    entries: Vec<AccessEntry>,
    sums: BTreeMap<NodeId, u64>,
}

impl PageQueue {
    /// A queue with these entries.
    pub fn new(entries: impl IntoIterator<Item = AccessEntry>) -> Self {
        let mut queue = Self::default();
        for entry in entries {
            queue.push(entry);
        }
        queue
    }

    /// Pages by node, without a process.
    pub fn of_nodes(pages: impl IntoIterator<Item = (NodeId, u64)>) -> Self {
        Self::new([AccessEntry { pid: 0, addresses: 0..0, pages: pages.into_iter().collect() }])
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: AccessEntry) {
        for (node, pages) in &entry.pages {
            let sum = self.sums.entry(*node).or_insert(0);
            *sum = sum.saturating_add(*pages);
        }
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(entry);
        }
    }

    /// The entries.
    pub fn entries(&self) -> &[AccessEntry] {
        &self.entries
    }

    /// Pages accessed on a node.
    pub fn pages(&self, node: NodeId) -> u64 {
        self.sums.get(&node).copied().unwrap_or(0)
    }

    /// Pages accessed on all nodes.
    pub fn total(&self) -> u64 {
        self.sums.values().fold(0, |sum, pages| sum.saturating_add(*pages))
    }

    /// The node with most pages; None if no page is known.
    pub fn top(&self) -> Option<NodeId> {
        self.in_order().first().map(|(node, _)| *node)
    }

    /// Nodes with their pages, in descending order; equal nodes by number.
    pub fn in_order(&self) -> Vec<(NodeId, u64)> {
        let known = self.sums.iter().filter(|(_, pages)| **pages > 0);
        let mut nodes: Vec<_> = known.map(|(node, pages)| (*node, *pages)).collect();
        nodes.sort_by_key(|(node, pages)| (u64::MAX - pages, *node));
        nodes
    }
}
