//! [`Arena`]: memory with a home, recycled, because its first touch costs more than most work
//! on it (0.3 s per GB).
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
//! buffer reports its actual home, not the requested one. On a machine with one node there is
//! nothing to choose, and policy and look-up are left out.
//!
//! Unplaced buffers (no home) on a machine with several nodes are mappings of their own, neither
//! touched nor recycled: recycled pages would keep the home of their last use, and the first touch
//! would decide nothing.

mod buffer;
mod class;
mod fallback;
mod place;
mod pool;
mod region;
mod shared;

use std::sync::Arc;

use atoll_topology::{Bytes, Machine, NodeId};

use crate::budget::Charge;
use crate::{Budget, Kernel, PlacementError};
pub use buffer::NodeBuffer;
use class::{BUFFER_BYTES_MAX, Class};
use fallback::Fallbacks;
pub use fallback::{Fallback, FallbackReason};
use pool::NodeArena;
use shared::{ArenaShared, Origin};

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

/// Allocates memory with a home. Clones share everything.
#[derive(Clone, Debug)]
pub struct Arena {
    inner: Arc<ArenaShared>,
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
        let class = Class::for_bytes(bytes).ok_or(PlacementError::TooLarge {
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

    /// Placements that differ from the requested ones, by reason; empty if there are none.
    pub fn fallbacks(&self) -> Vec<Fallback> {
        self.inner.fallbacks.list()
    }

    /// Memory kept in unused regions.
    pub fn kept(&self) -> Bytes {
        Bytes(self.inner.pools.values().map(|pool| pool.kept().0).sum())
    }

    /// Returns the memory of all unused regions to the kernel; returns its size.
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
