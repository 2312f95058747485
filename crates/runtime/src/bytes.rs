//! Bytes read by (reader's node, home node).

use std::sync::atomic::{AtomicU64, Ordering};

use atoll_topology::{Bytes, Machine, NodeId};

/// Counters that any number of workers may add to at once.
#[derive(Debug)]
pub struct ByteCounters {
    nodes: Vec<NodeId>,
    cells: Vec<AtomicU64>,
    unknown: AtomicU64,
}

impl ByteCounters {
    /// Zeroed counters for every pair of nodes of the machine.
    pub fn new(machine: &Machine) -> Self {
        let nodes: Vec<NodeId> = machine.nodes.iter().map(|node| node.id).collect();
        let cells = (0..nodes.len() * nodes.len()).map(|_| AtomicU64::new(0)).collect();
        Self { nodes, cells, unknown: AtomicU64::new(0) }
    }

    /// Adds what a reader on one node has read from memory whose home is another, or the same.
    /// A node the machine does not have counts as unknown.
    pub fn count(&self, reader: NodeId, home: NodeId, bytes: Bytes) {
        let cell = match cell(&self.nodes, reader, home) {
            Some(index) => &self.cells[index],
            None => &self.unknown,
        };
        cell.fetch_add(bytes.0, Ordering::Relaxed);
    }

    /// The counts now; while workers still count, each cell is exact for some moment of the call.
    pub fn snapshot(&self) -> ByteMatrix {
        ByteMatrix {
            nodes: self.nodes.clone(),
            cells: self.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect(),
            unknown: self.unknown.load(Ordering::Relaxed),
        }
    }
}

/// Bytes read by (reader's node, home node), row (reader) major in the order of the machine's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteMatrix {
    nodes: Vec<NodeId>,
    cells: Vec<u64>,
    unknown: u64,
}

impl ByteMatrix {
    /// The nodes of rows and of columns.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Bytes that readers on one node read from memory of another, or the same. Zero for a node
    /// that is not in the matrix.
    pub fn get(&self, reader: NodeId, home: NodeId) -> Bytes {
        Bytes(cell(&self.nodes, reader, home).map_or(0, |index| self.cells[index]))
    }

    /// Bytes read where they live.
    pub fn local(&self) -> Bytes {
        Bytes(self.nodes.iter().map(|node| self.get(*node, *node).0).fold(0, u64::saturating_add))
    }

    /// Bytes read from another node's memory.
    pub fn remote(&self) -> Bytes {
        Bytes(self.cells.iter().copied().fold(0, u64::saturating_add) - self.local().0)
    }

    /// Bytes whose reader or home is no node of the machine.
    pub fn unknown(&self) -> Bytes {
        Bytes(self.unknown)
    }

    /// All bytes read.
    pub fn total(&self) -> Bytes {
        Bytes(self.cells.iter().copied().fold(self.unknown, u64::saturating_add))
    }

    /// Adds the counts of another matrix; its nodes are added where they are new.
    pub fn add(&mut self, other: &ByteMatrix) {
        if self.nodes != other.nodes {
            self.grow(&other.nodes);
        }
        for (reader, home) in other.pairs() {
            if let Some(index) = cell(&self.nodes, reader, home) {
                self.cells[index] = self.cells[index].saturating_add(other.get(reader, home).0);
            }
        }
        self.unknown = self.unknown.saturating_add(other.unknown);
    }

    fn pairs(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.nodes.iter().flat_map(|reader| self.nodes.iter().map(|home| (*reader, *home)))
    }

    fn grow(&mut self, nodes: &[NodeId]) {
        let mut all: Vec<NodeId> = self.nodes.iter().chain(nodes).copied().collect();
        all.sort();
        all.dedup();
        let mut grown =
            ByteMatrix { cells: vec![0; all.len() * all.len()], nodes: all, unknown: self.unknown };
        for (reader, home) in self.pairs() {
            if let Some(index) = cell(&grown.nodes, reader, home) {
                grown.cells[index] = self.get(reader, home).0;
            }
        }
        *self = grown;
    }
}

/// Index of a pair of nodes in the cells.
fn cell(nodes: &[NodeId], reader: NodeId, home: NodeId) -> Option<usize> {
    let position = |id| nodes.iter().position(|node| *node == id);
    Some(position(reader)? * nodes.len() + position(home)?)
}
