//! Addresses of the guest's RAM.
//!
//! RAM is one linear space, in which the pieces of the nodes follow each other. The guest sees it with
//! a hole: below `low_memory` as it is, the rest from 4 GiB on. Everything is modelled by linear
//! address.

use crate::Setup;

/// End of the hole.
const HIGH: u64 = 1 << 32;

/// Position of a node in [`Setup::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeIndex(pub(crate) usize);

/// Number of a line of RAM, by linear address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineNumber(pub(crate) u64);

/// Place of a byte of RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RamAddress {
    pub(crate) node: NodeIndex,
    /// Linear address.
    pub(crate) linear: u64,
}

/// Where the pieces of the nodes lie.
pub(crate) struct Ram {
    /// End of each node's piece.
    ends: Vec<u64>,
    low: u64,
}

impl Ram {
    pub(crate) fn new(setup: &Setup) -> Self {
        let end = |end: &mut u64, bytes: u64| {
            *end += bytes;
            Some(*end)
        };
        let ends = setup.nodes.iter().map(|node| node.memory.0).scan(0, end).collect();
        Self { ends, low: setup.low_memory.0 }
    }

    /// Bytes of all nodes.
    pub(crate) fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Node of a linear address below [`Ram::size`].
    pub(crate) fn node(&self, linear: u64) -> NodeIndex {
        NodeIndex(self.ends.partition_point(|end| *end <= linear))
    }

    /// Linear address of a node's first byte.
    pub(crate) fn start(&self, node: NodeIndex) -> u64 {
        node.0.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Place of a guest-physical address. Returns None in the hole and after the end.
    pub(crate) fn place(&self, physical: u64) -> Option<RamAddress> {
        let linear = match physical {
            low if low < self.low => low,
            hole if hole < HIGH => return None,
            high => high - HIGH + self.low,
        };
        (linear < self.size()).then(|| RamAddress { node: self.node(linear), linear })
    }
}
