//! A region: one mapping under one policy, cut into blocks of one size.

use atoll_topology::NodeId;

use super::class::Class;
use crate::Mapping;

/// What is known of a block's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Not touched yet.
    Fresh,
    /// Touched; on this node, or on several or an unknown one.
    Touched(Option<NodeId>),
}

/// A free block.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeBlock {
    pub(super) index: u32,
    pub(super) pages: Pages,
}

/// Memory of which no block is in use, ready to be cut anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spare {
    pub(super) mapping: Mapping,
    /// Whether its pages come from the pool's node: by policy, or for want of another.
    pub(super) bound: bool,
    /// Bytes from the start whose pages are touched and on the pool's node.
    pub(super) touched_len: usize,
}

/// A mapping with blocks in use.
#[derive(Debug)]
pub(super) struct ArenaRegion {
    spare: Spare,
    class: Class,
    /// Number of blocks cut so far; later ones were never used in this region's present class.
    cut: u32,
    free: Vec<FreeBlock>,
}

impl ArenaRegion {
    pub(super) fn new(spare: Spare, class: Class) -> Self {
        Self { spare, class, cut: 0, free: Vec::new() }
    }

    /// Whether its pages come from the pool's node: by policy, or for want of another.
    pub(super) fn is_bound(&self) -> bool {
        self.spare.bound
    }

    /// Takes a block; those already touched first. `node` is the pool's.
    pub(super) fn take(&mut self, node: NodeId) -> Option<FreeBlock> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        if self.cut == self.class.blocks {
            return None;
        }
        let index = self.cut;
        self.cut += 1;
        let touched = self.cut as usize * self.class.block_len <= self.spare.touched_len;
        let pages = if touched { Pages::Touched(Some(node)) } else { Pages::Fresh };
        Some(FreeBlock { index, pages })
    }

    /// Takes a block back.
    pub(super) fn give(&mut self, block: FreeBlock) {
        self.free.push(block);
    }

    /// Whether a block is to be had.
    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.cut < self.class.blocks
    }

    /// Whether no block is in use.
    pub(super) fn is_unused(&self) -> bool {
        self.free.len() == self.cut as usize
    }

    /// The memory of a block.
    pub(super) fn block(&self, index: u32) -> Mapping {
        let len = self.class.block_len;
        self.spare.mapping.part(index as usize * len, len).expect("blocks lie within their region")
    }

    /// The whole memory of an unused region. Worth keeping (second value) when its policy is set
    /// and every page touched lies on the pool's node.
    pub(super) fn into_spare(self, node: NodeId) -> (Spare, bool) {
        let at_home = |block: &FreeBlock| block.pages == Pages::Touched(Some(node));
        let astray =
            |block: &FreeBlock| matches!(block.pages, Pages::Touched(home) if home != Some(node));
        let keep = self.spare.bound && !self.free.iter().any(astray);
        let cut_len = self.cut as usize * self.class.block_len;
        let touched_len = match self.free.iter().all(at_home) {
            true => cut_len.max(self.spare.touched_len),
            false => 0,
        };
        (Spare { touched_len, ..self.spare }, keep)
    }
}
