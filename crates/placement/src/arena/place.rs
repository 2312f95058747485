//! From a node and a size to a block whose pages are where they should be, or to the next best and
//! a record of it.

use atoll_topology::{Bytes, NodeId, NodeSet};

use super::class::Class;
use super::fallback::{FallbackReason, policy_reason};
use super::pool::{ArenaBlock, NodeArena};
use super::region::Pages;
use super::shared::{ArenaShared, PoolBlock};
use crate::{KernelError, Mapping, PlacementError, Policy};

/// The kernel keeps some memory of each node to itself: a node counts as full this share of its
/// memory (at most [`RESERVE_MAX`]) before the last byte.
const RESERVE_SHARE: u64 = 128;
const RESERVE_MAX: u64 = 512 << 20;

/// After reading a node's free memory, this share of it may be used before reading it again: the
/// file takes some 40 µs to read, as long as touching 200 KiB.
const ALLOWANCE_SHARE: u64 = 16;

/// Pages looked up in each fresh block: enough to notice a node that ran full within it.
const SAMPLE_PAGES: usize = 8;

/// A block with the home it has.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) memory: Mapping,
    pub(super) block: PoolBlock,
    pub(super) home: Option<NodeId>,
}

impl ArenaShared {
    /// A block on `node`, which has a pool; when the node is full and placement is not strict, on
    /// the next by distance; when all are full, wherever the kernel finds memory by giving up
    /// caches.
    pub(super) fn place(&self, node: NodeId, class: Class) -> Result<Placed, PlacementError> {
        let own = self.pool(node)?;
        if let Some(placed) = self.place_in(own, class, true)? {
            return Ok(placed);
        }
        if self.strict {
            return Err(self.node_full(node, class));
        }
        for next in self.machine.nodes_by_distance(node) {
            let Some(pool) = self.pools.get(&next.id).filter(|pool| pool.node != node) else {
                continue;
            };
            if let Some(placed) = self.place_in(pool, class, true)? {
                self.record_full(node, pool.node);
                return Ok(placed);
            }
        }
        self.check_machine(class)?;
        self.place_in(own, class, false)?.ok_or_else(|| self.node_full(node, class))
    }

    /// Touching more than all nodes have would bring the OOM killer, not an error.
    fn check_machine(&self, class: Class) -> Result<(), PlacementError> {
        let asked = Bytes(class.block_len as u64);
        let give = |node: &NodeId| self.free(*node, true).map(|free| free.0);
        let mut nodes = self.pools.keys().map(give);
        match nodes.try_fold(0_u64, |sum, free| free.map(|free| sum.saturating_add(free))) {
            Ok(free) if free < asked.0 => {
                Err(PlacementError::MachineFull { asked, free: Bytes(free) })
            }
            _ => Ok(()),
        }
    }

    fn pool(&self, node: NodeId) -> Result<&NodeArena, PlacementError> {
        let known = || self.pools.keys().copied().collect();
        self.pools.get(&node).ok_or_else(|| PlacementError::UnknownNode { node, known: known() })
    }

    /// A block of this pool. Returns None if the node is full, which only a checked call finds out.
    fn place_in(
        &self,
        pool: &NodeArena,
        class: Class,
        checked: bool,
    ) -> Result<Option<Placed>, PlacementError> {
        let taken = pool.take(class);
        if let Some(block @ ArenaBlock { pages: Pages::Touched(home), .. }) = taken {
            self.record_elsewhere(pool.node, home, block.bound);
            return Ok(Some(self.placed(pool, block, class, home)));
        }
        let admitted = if checked { self.admits(pool, class) } else { Ok(true) };
        if !matches!(admitted, Ok(true)) {
            self.give_back(pool, taken, class);
            return admitted.map(|_| None);
        }
        let block = match taken {
            Some(block) => block,
            None => self.grow(pool, class)?,
        };
        self.touch(pool, block, class).map(Some)
    }

    fn give_back(&self, pool: &NodeArena, block: Option<ArenaBlock>, class: Class) {
        if let Some(block) = block {
            let (node, slot, pages) = (pool.node, block.slot, block.pages);
            self.give_block(PoolBlock { node, slot, class, pages });
        }
    }

    fn placed(
        &self,
        pool: &NodeArena,
        block: ArenaBlock,
        class: Class,
        home: Option<NodeId>,
    ) -> Placed {
        let (node, slot, pages) = (pool.node, block.slot, block.pages);
        Placed { memory: block.memory, block: PoolBlock { node, slot, class, pages }, home }
    }

    /// Whether the node has room for one more block, if necessary after giving back what the
    /// pool keeps unused.
    fn admits(&self, pool: &NodeArena, class: Class) -> Result<bool, PlacementError> {
        let asked = class.block_len as u64;
        if pool.use_allowance(asked) {
            return Ok(true);
        }
        let mut free = self.free(pool.node, self.strict);
        if free.as_ref().is_ok_and(|free| free.0 < asked) && self.drain(pool) > 0 {
            free = self.free(pool.node, self.strict);
        }
        match free {
            Ok(free) => {
                let rest = free.0.checked_sub(asked);
                pool.set_allowance(rest.unwrap_or(0) / ALLOWANCE_SHARE);
                Ok(rest.is_some())
            }
            Err(error) if self.strict => Err(error.into()),
            Err(error) => {
                self.fallbacks.record(FallbackReason::FreeUnknown, || error.to_string());
                Ok(true)
            }
        }
    }

    /// What a node can give beyond the reserve. File cache counts where the kernel gives it up before
    /// it goes elsewhere: under a strict policy, or when every node is full; not under a preferred
    /// one.
    fn free(&self, node: NodeId, with_cache: bool) -> Result<Bytes, KernelError> {
        let mut free = self.kernel.node_free(node)?.0;
        if with_cache {
            free = free.saturating_add(self.kernel.node_reclaimable(node)?.0);
        }
        let memory = self.machine.node(node).map_or(0, |node| node.memory.0);
        Ok(Bytes(free.saturating_sub((memory / RESERVE_SHARE).min(RESERVE_MAX))))
    }

    /// A block of a new region under the node's policy.
    fn grow(&self, pool: &NodeArena, class: Class) -> Result<ArenaBlock, PlacementError> {
        let mapping = self.map(class.region_len())?;
        match self.set_policy(pool.node, mapping) {
            Ok(bound) => Ok(pool.add(mapping, bound, class)),
            Err(error) => {
                self.unmap(mapping);
                Err(error.into())
            }
        }
    }

    /// Whether later pages of the mapping come from the node: by policy, or for want of another.
    /// Strictly, anything else is an error.
    fn set_policy(&self, node: NodeId, mapping: Mapping) -> Result<bool, KernelError> {
        if self.only_node().is_some() {
            return Ok(true);
        }
        let policy = match self.strict {
            true => Policy::Bind(NodeSet::from_iter([node])),
            false => Policy::Preferred(node),
        };
        match self.kernel.set_policy(mapping, &policy) {
            Ok(()) => Ok(true),
            Err(error) if self.strict => Err(error),
            Err(error) => {
                self.fallbacks.record(policy_reason(&error), || error.to_string());
                Ok(false)
            }
        }
    }

    /// Touches a fresh block and finds out its home.
    fn touch(
        &self,
        pool: &NodeArena,
        mut block: ArenaBlock,
        class: Class,
    ) -> Result<Placed, PlacementError> {
        let home = match self.kernel.populate(block.memory) {
            Ok(()) => {
                let home = self.find_home(pool.node, &block);
                block.pages = Pages::Touched(home);
                home
            }
            Err(error) if self.strict || matches!(error, KernelError::OutOfMemory { .. }) => {
                self.give_back(pool, Some(block), class);
                return Err(self.not_touched(pool.node, class, error));
            }
            Err(error) => {
                self.fallbacks.record(FallbackReason::NotPopulated, || error.to_string());
                block.bound.then_some(pool.node)
            }
        };
        Ok(self.placed(pool, block, class, home))
    }

    fn not_touched(&self, node: NodeId, class: Class, error: KernelError) -> PlacementError {
        match error {
            KernelError::OutOfMemory { .. } if self.strict => self.node_full(node, class),
            error => error.into(),
        }
    }

    /// The one node of the sampled pages of a block. Returns None if they are on several, or
    /// cannot be looked up and no policy determines one.
    fn find_home(&self, node: NodeId, block: &ArenaBlock) -> Option<NodeId> {
        if self.only_node().is_some() {
            return Some(node);
        }
        let trusted = block.bound.then_some(node);
        let homes = match self.kernel.homes(&sample(block.memory)) {
            Ok(homes) => homes,
            Err(error) => {
                self.fallbacks.record(FallbackReason::HomesUnknown, || error.to_string());
                return trusted;
            }
        };
        let mut found = homes.into_iter().flatten();
        let Some(first) = found.next() else { return trusted };
        let home = found.all(|home| home == first).then_some(first);
        self.record_elsewhere(node, home, block.bound);
        home
    }

    /// Counts a block whose pages are not where its policy said. Where no policy could be set, that
    /// is counted already.
    fn record_elsewhere(&self, node: NodeId, home: Option<NodeId>, bound: bool) {
        if bound && home != Some(node) {
            self.fallbacks.record(FallbackReason::Elsewhere, || match home {
                Some(home) => format!("asked for node {node}, found on node {home}"),
                None => format!("asked for node {node}, found on several"),
            });
        }
    }

    fn record_full(&self, node: NodeId, next: NodeId) {
        self.fallbacks.record(FallbackReason::NodeFull, || {
            format!("node {node} was full; node {next} had room")
        });
    }

    fn node_full(&self, node: NodeId, class: Class) -> PlacementError {
        let free = self.free(node, self.strict).unwrap_or_default();
        PlacementError::NodeFull { node, asked: Bytes(class.block_len as u64), free }
    }
}

/// Addresses spread evenly over a block, its first byte among them.
fn sample(memory: Mapping) -> Vec<usize> {
    let stride = (memory.len() / SAMPLE_PAGES).max(1);
    (0..memory.len()).step_by(stride).take(SAMPLE_PAGES).map(|at| memory.address() + at).collect()
}
