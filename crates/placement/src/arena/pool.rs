//! The memory of one node: regions in use, and what is kept for the next buffer.
//!
//! The lock is held for bookkeeping only, never across a system call.

use std::collections::HashMap;

use atoll_topology::{Bytes, NodeId};
use parking_lot::Mutex;

use super::class::Class;
use super::region::{ArenaRegion, FreeBlock, Pages, Spare};
use crate::Mapping;

/// Which block of which region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) region: u64,
    pub(super) index: u32,
}

/// A block handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArenaBlock {
    pub(super) slot: Slot,
    pub(super) memory: Mapping,
    pub(super) pages: Pages,
    /// Whether its pages come from the pool's node: by policy, or for want of another.
    pub(super) bound: bool,
}

/// The memory of one node.
#[derive(Debug)]
pub(super) struct NodeArena {
    pub(super) node: NodeId,
    /// Most bytes kept in unused regions.
    kept_max: Bytes,
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    regions: HashMap<u64, ArenaRegion>,
    next_region: u64,
    /// Regions with room, by class.
    open: HashMap<Class, Vec<u64>>,
    /// Unused regions by length, the last used last.
    kept: HashMap<usize, Vec<Spare>>,
    kept_len: u64,
    /// Bytes that may be touched before free memory is read again.
    allowance: u64,
}

impl NodeArena {
    pub(super) fn new(node: NodeId, kept_max: Bytes) -> Self {
        Self { node, kept_max, state: Mutex::default() }
    }

    /// A block from memory the pool has already.
    pub(super) fn take(&self, class: Class) -> Option<ArenaBlock> {
        let mut state = self.state.lock();
        if let Some(block) = state.take_open(class, self.node) {
            return Some(block);
        }
        let spare = state.take_kept(class.region_len())?;
        state.insert(ArenaRegion::new(spare, class), class);
        state.take_open(class, self.node)
    }

    /// The first block of new memory, which is one region of the class long.
    pub(super) fn add(&self, mapping: Mapping, bound: bool, class: Class) -> ArenaBlock {
        let mut region = ArenaRegion::new(Spare { mapping, bound, touched_len: 0 }, class);
        let FreeBlock { index, pages } = region.take(self.node).expect("a region has a block");
        let memory = region.block(index);
        let region = self.state.lock().insert(region, class);
        ArenaBlock { slot: Slot { region, index }, memory, pages, bound }
    }

    /// Takes a block back. The result is memory to unmap, when it left a region unused that is not
    /// kept.
    pub(super) fn give(&self, slot: Slot, class: Class, pages: Pages) -> Option<Mapping> {
        let mut state = self.state.lock();
        let region = state.regions.get_mut(&slot.region)?;
        let had_room = region.has_room();
        region.give(FreeBlock { index: slot.index, pages });
        let unused = region.is_unused();
        if !had_room {
            state.open.entry(class).or_default().push(slot.region);
        }
        if unused { state.retire(slot.region, class, self) } else { None }
    }

    /// Takes everything kept out of the pool, to be unmapped.
    pub(super) fn drain(&self) -> Vec<Mapping> {
        let mut state = self.state.lock();
        state.kept_len = 0;
        state.kept.drain().flat_map(|(_, spares)| spares).map(|spare| spare.mapping).collect()
    }

    /// Bytes kept in unused regions.
    pub(super) fn kept(&self) -> Bytes {
        Bytes(self.state.lock().kept_len)
    }

    /// Uses up part of what may be touched unasked; false when free memory is to be read.
    pub(super) fn use_allowance(&self, bytes: u64) -> bool {
        let mut state = self.state.lock();
        match state.allowance.checked_sub(bytes) {
            Some(rest) => state.allowance = rest,
            None => return false,
        }
        true
    }

    /// Sets what may be touched unasked from now on.
    pub(super) fn set_allowance(&self, bytes: u64) {
        self.state.lock().allowance = bytes;
    }
}

impl PoolState {
    fn insert(&mut self, region: ArenaRegion, class: Class) -> u64 {
        let key = self.next_region;
        self.next_region += 1;
        if region.has_room() {
            self.open.entry(class).or_default().push(key);
        }
        self.regions.insert(key, region);
        key
    }

    fn take_open(&mut self, class: Class, node: NodeId) -> Option<ArenaBlock> {
        let open = self.open.get_mut(&class)?;
        let key = *open.last()?;
        let region = self.regions.get_mut(&key)?;
        let FreeBlock { index, pages } = region.take(node)?;
        if !region.has_room() {
            open.pop();
        }
        let memory = region.block(index);
        Some(ArenaBlock {
            slot: Slot { region: key, index },
            memory,
            pages,
            bound: region.is_bound(),
        })
    }

    fn take_kept(&mut self, len: usize) -> Option<Spare> {
        let spare = self.kept.get_mut(&len)?.pop()?;
        self.kept_len -= len as u64;
        Some(spare)
    }

    /// Closes an unused region; what cannot be kept is returned to be unmapped.
    fn retire(&mut self, key: u64, class: Class, pool: &NodeArena) -> Option<Mapping> {
        if let Some(open) = self.open.get_mut(&class) {
            open.retain(|open| *open != key);
        }
        let (spare, keep) = self.regions.remove(&key)?.into_spare(pool.node);
        let len = spare.mapping.len();
        if !keep || self.kept_len + len as u64 > pool.kept_max.0 {
            return Some(spare.mapping);
        }
        self.kept_len += len as u64;
        self.kept.entry(len).or_default().push(spare);
        None
    }
}
