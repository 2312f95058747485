//! State shared by an arena's clones and its buffers, and the return of memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_topology::{Bytes, Machine, NodeId};

use super::class::Class;
use super::fallback::{FallbackReason, Fallbacks};
use super::pool::{NodeArena, Slot};
use super::region::Pages;
use crate::{Budget, Kernel, KernelError, Mapping, PlacementError};

/// What buffers hold on to.
#[derive(Debug)]
pub(super) struct ArenaShared {
    pub(super) machine: Arc<Machine>,
    pub(super) kernel: Arc<dyn Kernel>,
    pub(super) budget: Option<Arc<dyn Budget>>,
    pub(super) strict: bool,
    pub(super) pools: BTreeMap<NodeId, NodeArena>,
    pub(super) fallbacks: Fallbacks,
}

/// Where a block goes back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolBlock {
    pub(super) node: NodeId,
    pub(super) slot: Slot,
    pub(super) class: Class,
    pub(super) pages: Pages,
}

/// Where the memory of a buffer goes back to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// To the pool of its node.
    Pool(PoolBlock),
    /// To the kernel: it is a whole mapping.
    OwnMapping,
}

impl ArenaShared {
    /// Takes a buffer's memory back.
    pub(super) fn give(&self, memory: Mapping, origin: Origin) {
        match origin {
            Origin::Pool(block) => self.give_block(block),
            Origin::OwnMapping => self.unmap(memory),
        }
    }

    pub(super) fn give_block(&self, block: PoolBlock) {
        let pool = self.pools.get(&block.node);
        if let Some(unused) = pool.and_then(|pool| pool.give(block.slot, block.class, block.pages))
        {
            self.unmap(unused);
        }
    }

    /// The node, when there is only one with memory.
    pub(super) fn only_node(&self) -> Option<NodeId> {
        if self.pools.len() == 1 { self.pools.keys().next().copied() } else { None }
    }

    /// The node with memory that serves `node`.
    pub(super) fn memory_node(&self, node: NodeId, class: Class) -> Result<NodeId, PlacementError> {
        if self.pools.contains_key(&node) {
            return Ok(node);
        }
        if self.machine.node(node).is_none() {
            let known = self.machine.nodes.iter().map(|node| node.id).collect();
            return Err(PlacementError::UnknownNode { node, known });
        }
        if self.strict {
            let asked = Bytes(class.block_len as u64);
            return Err(PlacementError::NodeFull { node, asked, free: Bytes(0) });
        }
        let nearest = self.machine.nearest_with_memory(node).map(|node| node.id);
        let nearest = nearest
            .ok_or_else(|| PlacementError::NoMemory { machine: self.machine.name.clone() })?;
        self.fallbacks.record(FallbackReason::NodeWithoutMemory, || {
            format!("node {node} has no memory; node {nearest} is its nearest")
        });
        Ok(nearest)
    }

    pub(super) fn map(&self, len: usize) -> Result<Mapping, KernelError> {
        let huge = self.kernel.huge_page_size().is_some_and(|huge| len >= huge);
        self.kernel.map(len, huge)
    }

    pub(super) fn unmap(&self, mapping: Mapping) {
        // SAFETY: every mapping given back here came from `map` of the same kernel, and the buffers
        // that referred to it are gone: a region leaves its pool only when none of its blocks is in
        // use, and an unplaced buffer gives its mapping back when it is dropped.
        unsafe { self.kernel.unmap(mapping) };
    }

    /// Unmaps the unused regions of a pool; returns their size in bytes.
    pub(super) fn drain(&self, pool: &NodeArena) -> u64 {
        let kept = pool.drain();
        kept.into_iter().map(|mapping| (self.unmap(mapping), mapping.len() as u64).1).sum()
    }
}

impl Drop for ArenaShared {
    fn drop(&mut self) {
        for pool in self.pools.values() {
            self.drain(pool);
        }
    }
}
