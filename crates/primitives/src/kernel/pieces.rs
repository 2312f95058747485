//! The result of a partitioner: for each partition a chain of blocks.

use atoll_placement::NodeBuffer;
use atoll_topology::NodeId;

use super::fan_out::FanOut;
use super::words;

/// Rows of `W` words in pieces, each a chain of blocks in the memory of one node.
#[derive(Debug)]
pub struct Pieces<const W: usize> {
    fan_out: FanOut,
    home: Option<NodeId>,
    slabs: Vec<NodeBuffer>,
    chains: Vec<Vec<PieceBlock>>,
}

/// A block of rows in a slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceBlock {
    /// Position of its slab.
    pub(crate) slab: usize,
    /// First byte.
    pub(crate) offset: usize,
    /// Size in bytes.
    pub(crate) bytes: usize,
    /// Rows it holds.
    pub(crate) rows: usize,
}

impl<const W: usize> Pieces<W> {
    pub(crate) fn new(
        fan_out: FanOut,
        home: Option<NodeId>,
        slabs: Vec<NodeBuffer>,
        chains: Vec<Vec<PieceBlock>>,
    ) -> Self {
        Self { fan_out, home, slabs, chains }
    }

    /// Number of pieces.
    pub fn fan_out(&self) -> FanOut {
        self.fan_out
    }

    /// Requested home of the rows.
    pub fn home(&self) -> Option<NodeId> {
        self.home
    }

    /// Rows of a piece.
    pub fn rows(&self, piece: usize) -> usize {
        self.chains[piece].iter().map(|block| block.rows).sum()
    }

    /// Rows of all pieces.
    pub fn total_rows(&self) -> usize {
        (0..self.chains.len()).map(|piece| self.rows(piece)).sum()
    }

    /// Bytes of memory it holds, including free space.
    pub fn memory_bytes(&self) -> usize {
        self.slabs.iter().map(NodeBuffer::capacity).sum()
    }

    /// Number of blocks of a piece.
    pub fn block_count(&self, piece: usize) -> usize {
        self.chains[piece].len()
    }

    /// Rows of one block of a piece.
    pub fn block(&self, piece: usize, block: usize) -> &[[u64; W]] {
        let block = &self.chains[piece][block];
        block_rows(&self.slabs[block.slab], block)
    }

    /// Rows of a piece, block by block, in insertion order.
    pub fn blocks(&self, piece: usize) -> impl Iterator<Item = &[[u64; W]]> {
        self.chains[piece].iter().map(|block| block_rows(&self.slabs[block.slab], block))
    }
}

/// The rows of a block in its slab.
fn block_rows<'a, const W: usize>(slab: &'a NodeBuffer, block: &PieceBlock) -> &'a [[u64; W]] {
    let bytes = &slab.as_slice()[block.offset..][..block.rows * W * 8];
    words::rows(bytes)
}
