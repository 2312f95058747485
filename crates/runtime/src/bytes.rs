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

    /// Adds bytes that a reader on one node read from memory of another node, or its own.
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

    /// Bytes that readers on one node read from memory of another node, or their own. Zero for a node
    /// that is not in the matrix.
    pub fn get(&self, reader: NodeId, home: NodeId) -> Bytes {
        Bytes(cell(&self.nodes, reader, home).map_or(0, |index| self.cells[index]))
    }

    /// Bytes read from local memory.
    pub fn local(&self) -> Bytes {
        Bytes(self.nodes.iter().map(|node| self.get(*node, *node).0).fold(0, u64::saturating_add))
    }

    /// Bytes read from another node's memory.
    pub fn remote(&self) -> Bytes {
        Bytes(self.cells.iter().copied().fold(0, u64::saturating_add) - self.local().0)
    }

    /// Bytes whose reader or home is not a node of the machine.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(nodes: &[u32], counts: &[(u32, u32, u64)]) -> ByteMatrix {
        let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
        let cells = (0..nodes.len() * nodes.len()).map(|_| AtomicU64::new(0)).collect();
        let counters = ByteCounters { nodes, cells, unknown: AtomicU64::new(0) };
        for (reader, home, bytes) in counts {
            counters.count(NodeId(*reader), NodeId(*home), Bytes(*bytes));
        }
        counters.snapshot()
    }

    #[test]
    fn matrices_of_the_same_nodes_add_up_cell_by_cell() {
        let mut sum = matrix(&[0, 1], &[(0, 1, 3), (1, 1, 5)]);
        sum.add(&matrix(&[0, 1], &[(0, 1, 4), (1, 7, 2)]));
        let mut expected = matrix(&[0, 1], &[(0, 1, 7), (1, 1, 5)]);
        expected.unknown = 2;
        assert_eq!(sum, expected);
    }

    #[test]
    fn a_matrix_grows_by_the_nodes_of_the_one_that_is_added() {
        let mut sum = ByteMatrix::default();
        sum.add(&matrix(&[0, 4], &[(4, 0, 1), (4, 4, 2)]));
        sum.add(&matrix(&[2, 4], &[(2, 4, 8), (4, 4, 16)]));
        assert_eq!(sum, matrix(&[0, 2, 4], &[(4, 0, 1), (4, 4, 18), (2, 4, 8)]));
        assert_eq!((sum.local(), sum.remote()), (Bytes(18), Bytes(9)));
    }

    #[test]
    fn sums_stop_at_the_largest_number() {
        let mut sum = matrix(&[0], &[(0, 0, u64::MAX)]);
        sum.add(&matrix(&[0], &[(0, 0, 1)]));
        assert_eq!(
            (sum.get(NodeId(0), NodeId(0)), sum.total()),
            (Bytes(u64::MAX), Bytes(u64::MAX))
        );
    }
}
