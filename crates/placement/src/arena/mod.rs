//! [`Arena`]: memory with a home, recycled, because its first touch costs more than most work done
//! on it (0.3 s a GB).
//!
//! ```text
//! Arena ─┬─ Pool of node 0 ─┬─ Region: one mapping, one mbind, blocks of one size ── NodeBuffer
//!        ├─ Pool of node 1  ├─ Region …
//!        └─ …               └─ unused regions kept, up to a bound
//! ```
//!
//! A buffer comes, in this order, from a block that is free in a region, from an unused region that
//! was kept, or from a new mapping. Fresh blocks are touched by the calling thread, under
//! `MPOL_PREFERRED` or, when strict, `MPOL_BIND`; then a few of their pages are looked up, so that a
//! buffer tells the home it has and not the one it should have. On a machine with one node there is
//! nothing to choose, and policy and look-up are left out.
//!
//! Unplaced buffers (no home) on a machine with several nodes are mappings of their own, neither
//! touched nor recycled: recycled pages would keep the home of their last use, and the first touch
//! would decide nothing.

mod class;
mod fallback;
mod place;
mod pool;
mod region;

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_topology::{Bytes, Machine, NodeId};

use crate::buffer::{Charge, NodeBuffer, Origin};
use crate::{Budget, Kernel, KernelError, Mapping, PlacementError};
use class::{BUFFER_BYTES_MAX, Class};
use fallback::Fallbacks;
pub use fallback::{Fallback, FallbackReason};
use pool::{NodeArena, Slot};
use region::Pages;

/// Share of a node's memory that is kept in unused regions unless the options say otherwise.
const KEPT_SHARE: u64 = 8;

/// How an [`Arena`] places and keeps memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaOptions {
    /// Memory lies where it is asked for, or the allocation is an error; nothing falls back.
    pub strict: bool,
    /// Most memory kept unused on each node for the next buffers; an eighth of the node's memory
    /// when not set. Blocks free in regions still in use come on top.
    pub kept_max: Option<Bytes>,
}

/// Hands out memory with a home. Clones share everything.
#[derive(Clone, Debug)]
pub struct Arena {
    inner: Arc<ArenaShared>,
}

/// What buffers hold on to.
#[derive(Debug)]
pub(crate) struct ArenaShared {
    machine: Arc<Machine>,
    kernel: Arc<dyn Kernel>,
    budget: Option<Arc<dyn Budget>>,
    strict: bool,
    pools: BTreeMap<NodeId, NodeArena>,
    fallbacks: Fallbacks,
}

/// Where a block goes back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolBlock {
    node: NodeId,
    slot: Slot,
    class: Class,
    pages: Pages,
}

impl Arena {
    /// An arena over the nodes with memory of this machine, not strict; buffers are charged to the
    /// budget.
    pub fn new(
        machine: Arc<Machine>,
        kernel: Arc<dyn Kernel>,
        budget: Option<Arc<dyn Budget>>,
    ) -> Self {
        Self::with_options(machine, kernel, budget, ArenaOptions::default())
    }

    /// The same with options.
    pub fn with_options(
        machine: Arc<Machine>,
        kernel: Arc<dyn Kernel>,
        budget: Option<Arc<dyn Budget>>,
        options: ArenaOptions,
    ) -> Self {
        let kept_max = |memory: Bytes| options.kept_max.unwrap_or(Bytes(memory.0 / KEPT_SHARE));
        let nodes = machine.nodes_with_memory();
        let pools =
            nodes.map(|node| (node.id, NodeArena::new(node.id, kept_max(node.memory)))).collect();
        let (strict, fallbacks) = (options.strict, Fallbacks::default());
        Self { inner: Arc::new(ArenaShared { machine, kernel, budget, strict, pools, fallbacks }) }
    }

    /// Memory for `bytes` bytes on a node, touched by the calling thread; without a home, memory
    /// under no policy that the first touch places. Its contents are unspecified: zeros, or what a
    /// former buffer left.
    ///
    /// # Errors
    /// [`PlacementError::UnknownNode`] for a node that is not in the machine,
    /// [`PlacementError::Budget`] when the budget does not hold it, [`PlacementError::TooLarge`],
    /// and [`PlacementError::MachineFull`] when no node has memory left. When strict also
    /// [`PlacementError::NodeFull`], and whatever the kernel refuses; otherwise such cases fall
    /// back and are counted in [`fallbacks`](Self::fallbacks).
    pub fn allocate(
        &self,
        home: Option<NodeId>,
        bytes: usize,
    ) -> Result<NodeBuffer, PlacementError> {
        let class = Class::of(bytes).ok_or(PlacementError::TooLarge {
            asked: Bytes(bytes as u64),
            limit: Bytes(BUFFER_BYTES_MAX as u64),
        })?;
        let node = match (home, self.inner.only_node()) {
            (Some(node), _) => Some(self.inner.memory_node(node, class)?),
            (None, only) => only,
        };
        let allocate = || match node {
            Some(node) => self.allocate_on(node, home, bytes, class),
            None => self.allocate_unplaced(bytes, class),
        };
        match allocate() {
            Err(error) if error.is_lack_of_memory() && self.trim().0 > 0 => allocate(),
            result => result,
        }
    }

    /// What was done instead of what was asked, by reason; empty when all went as asked.
    pub fn fallbacks(&self) -> Vec<Fallback> {
        self.inner.fallbacks.list()
    }

    /// Memory kept in unused regions.
    pub fn kept(&self) -> Bytes {
        Bytes(self.inner.pools.values().map(|pool| pool.kept().0).sum())
    }

    /// Gives the memory of all unused regions back to the kernel; tells how much.
    pub fn trim(&self) -> Bytes {
        Bytes(self.inner.pools.values().map(|pool| self.inner.drain(pool)).sum())
    }

    /// The machine whose nodes it places on.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.inner.machine
    }

    /// The kernel it places with.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.inner.kernel
    }

    /// Whether placement otherwise than asked is an error.
    pub fn is_strict(&self) -> bool {
        self.inner.strict
    }

    fn allocate_on(
        &self,
        node: NodeId,
        wanted: Option<NodeId>,
        bytes: usize,
        class: Class,
    ) -> Result<NodeBuffer, PlacementError> {
        let charge = Charge::new(self.inner.budget.clone(), Bytes(class.block_len as u64))?;
        let placed = self.inner.place(node, class)?;
        let home = wanted.and(placed.home);
        let origin = Origin::Pool(placed.block);
        Ok(NodeBuffer::new(
            placed.memory,
            bytes,
            (wanted, home),
            origin,
            self.inner.clone(),
            charge,
        ))
    }

    fn allocate_unplaced(&self, bytes: usize, class: Class) -> Result<NodeBuffer, PlacementError> {
        let len = class.block_len.next_multiple_of(self.inner.kernel.page_size());
        let charge = Charge::new(self.inner.budget.clone(), Bytes(len as u64))?;
        let memory = self.inner.map(len)?;
        let origin = Origin::OwnMapping;
        Ok(NodeBuffer::new(memory, bytes, (None, None), origin, self.inner.clone(), charge))
    }
}

impl ArenaShared {
    /// Takes a buffer's memory back.
    pub(crate) fn give(&self, memory: Mapping, origin: Origin) {
        match origin {
            Origin::Pool(block) => self.give_block(block),
            Origin::OwnMapping => self.unmap(memory),
        }
    }

    fn give_block(&self, block: PoolBlock) {
        let pool = self.pools.get(&block.node);
        if let Some(unused) = pool.and_then(|pool| pool.give(block.slot, block.class, block.pages))
        {
            self.unmap(unused);
        }
    }

    /// The node, when there is only one with memory.
    fn only_node(&self) -> Option<NodeId> {
        if self.pools.len() == 1 { self.pools.keys().next().copied() } else { None }
    }

    /// The node with memory that serves `node`.
    fn memory_node(&self, node: NodeId, class: Class) -> Result<NodeId, PlacementError> {
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

    fn map(&self, len: usize) -> Result<Mapping, KernelError> {
        let huge = self.kernel.huge_page_size().is_some_and(|huge| len >= huge);
        self.kernel.map(len, huge)
    }

    fn unmap(&self, mapping: Mapping) {
        // SAFETY: every mapping given back here came from `map` of the same kernel, and the buffers
        // that referred to it are gone: a region leaves its pool only when none of its blocks is in
        // use, and an unplaced buffer gives its mapping back when it is dropped.
        unsafe { self.kernel.unmap(mapping) };
    }

    /// Unmaps what a pool keeps; tells how many bytes.
    fn drain(&self, pool: &NodeArena) -> u64 {
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
