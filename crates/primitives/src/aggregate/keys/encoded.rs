//! Keys of any type by the hash of their bytes.

use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use arrow_array::ArrayRef;

use super::{Encoder, KeyBlock};
use crate::PrimitiveError;
use crate::kernel::groups::GroupIds;
use crate::kernel::placed_vec::PlacedVec;
use crate::kernel::stream::prefetch;

/// Slots for each group, at least.
const SLOTS_PER_GROUP: usize = 2;
/// Slots of an empty table.
const SLOTS_MIN: usize = 1024;
/// An empty slot.
const EMPTY: u64 = 0;
/// Bits of a slot that hold the number of a group + 1; above them are those of its hash.
const GROUP_BITS: u32 = 32;
/// Keys that are looked up together: what each of them will read is prefetched before.
const TOGETHER: usize = 64;

/// Groups of encoded keys, numbered as they come.
#[derive(Debug)]
pub(in crate::aggregate) struct Encoded {
    encoder: Encoder,
    slots: PlacedVec<u64>,
    hashes: PlacedVec<u64>,
    /// Bytes of all groups' keys, and where each ends.
    bytes: PlacedVec<u8>,
    ends: PlacedVec<u64>,
}

/// Encoded keys with their hashes.
trait HashedKeys {
    fn len(&self) -> usize;
    fn hash(&self, at: usize) -> u64;
    fn key(&self, at: usize) -> &[u8];
}

impl HashedKeys for KeyBlock {
    fn len(&self) -> usize {
        self.len()
    }

    fn hash(&self, at: usize) -> u64 {
        self.hashes()[at]
    }

    fn key(&self, at: usize) -> &[u8] {
        self.key(at)
    }
}

/// Some groups of a table.
struct ChosenKeys<'a>(&'a Encoded, &'a [u32]);

impl HashedKeys for ChosenKeys<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }

    fn hash(&self, at: usize) -> u64 {
        self.0.hashes.as_slice()[self.1[at] as usize]
    }

    fn key(&self, at: usize) -> &[u8] {
        self.0.key(self.1[at] as usize)
    }
}

impl Encoded {
    /// No groups yet.
    pub(in crate::aggregate) fn new(
        encoder: Encoder,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let mut slots = PlacedVec::new(arena, home);
        slots.grow(SLOTS_MIN, EMPTY)?;
        let (hashes, ends) = (PlacedVec::new(arena, home), PlacedVec::new(arena, home));
        Ok(Self { encoder, slots, hashes, bytes: PlacedVec::new(arena, home), ends })
    }

    /// What encodes its keys.
    pub(in crate::aggregate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    pub(in crate::aggregate) fn groups(&self) -> usize {
        self.hashes.len()
    }

    /// No groups again.
    pub(in crate::aggregate) fn restart(&mut self) {
        self.slots.as_mut_slice().fill(EMPTY);
        self.hashes.clear();
        self.bytes.clear();
        self.ends.clear();
    }

    /// Finds the groups of encoded keys; new keys become groups.
    pub(in crate::aggregate) fn find(
        &mut self,
        keys: &KeyBlock,
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        self.find_all(keys, ids)
    }

    /// Finds the groups of some of another table's keys.
    pub(in crate::aggregate) fn find_groups(
        &mut self,
        other: &Self,
        chosen: &[u32],
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        self.find_all(&ChosenKeys(other, chosen), ids)
    }

    /// Slots, ends and bytes are read in passes of their own, each prefetched by the one before.
    fn find_all(
        &mut self,
        keys: &impl HashedKeys,
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        let mut found = Vec::with_capacity(keys.len());
        let mut likely = [None; TOGETHER];
        for start in (0..keys.len()).step_by(TOGETHER) {
            let len = TOGETHER.min(keys.len() - start);
            let mask = self.slots.len() - 1;
            for at in start..start + len {
                prefetch(&raw const self.slots.as_slice()[keys.hash(at) as usize & mask]);
            }
            for (at, likely) in (start..).zip(&mut likely[..len]) {
                let hash = keys.hash(at);
                let slot = self.slots.as_slice()[hash as usize & mask];
                *likely = (slot != EMPTY && same_tag(slot, hash)).then(|| group(slot));
                if let Some(group) = *likely {
                    prefetch(&raw const self.ends.as_slice()[group]);
                }
            }
            for group in likely[..len].iter().flatten() {
                let start = self.start(*group);
                prefetch(&raw const self.bytes.as_slice()[start]);
            }
            for (at, likely) in (start..).zip(&likely[..len]) {
                let key = keys.key(at);
                found.push(match likely {
                    Some(group) if self.key(*group) == key => *group as u32,
                    _ => self.find_one(keys.hash(at), key)?,
                });
            }
        }
        ids.take(found.into_iter(), self.groups());
        Ok(())
    }

    fn find_one(&mut self, hash: u64, key: &[u8]) -> Result<u32, PlacementError> {
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match slots[at] {
                EMPTY => return self.add(hash, key, at),
                slot if same_tag(slot, hash) && self.key(group(slot)) == key => {
                    return Ok(group(slot) as u32);
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[inline(never)]
    fn add(&mut self, hash: u64, key: &[u8], slot: usize) -> Result<u32, PlacementError> {
        let group = self.hashes.len();
        self.append(hash, key)?;
        self.slots.as_mut_slice()[slot] = slot_of(hash, group);
        if self.hashes.len() * SLOTS_PER_GROUP > self.slots.len() {
            self.spread()?;
        }
        Ok(group as u32)
    }

    fn append(&mut self, hash: u64, key: &[u8]) -> Result<(), PlacementError> {
        self.bytes.extend(key)?;
        self.ends.push(self.bytes.len() as u64)?;
        self.hashes.push(hash)
    }

    /// Four times as many slots.
    fn spread(&mut self) -> Result<(), PlacementError> {
        let len = self.slots.len() * 4;
        let mut slots = self.slots.beside();
        slots.grow(len, EMPTY)?;
        let to = slots.as_mut_slice();
        for (group, hash) in self.hashes.as_slice().iter().enumerate() {
            let mut slot = *hash as usize & (len - 1);
            while to[slot] != EMPTY {
                slot = (slot + 1) & (len - 1);
            }
            to[slot] = slot_of(*hash, group);
        }
        self.slots = slots;
        Ok(())
    }

    /// The chosen groups in this order; nothing is found in it any more.
    pub(in crate::aggregate) fn listed(&self, chosen: &[u32]) -> Result<Self, PlacementError> {
        let (slots, hashes) = (self.slots.beside(), self.hashes.beside());
        let (bytes, ends) = (self.bytes.beside(), self.ends.beside());
        let mut listed = Self { encoder: self.encoder.clone(), slots, hashes, bytes, ends };
        listed.bytes.reserve(self.bytes.len())?;
        for group in chosen.iter().map(|group| *group as usize) {
            listed.append(self.hashes.as_slice()[group], self.key(group))?;
        }
        Ok(listed)
    }

    fn start(&self, group: usize) -> usize {
        if group == 0 { 0 } else { self.ends.as_slice()[group - 1] as usize }
    }

    fn key(&self, group: usize) -> &[u8] {
        &self.bytes.as_slice()[self.start(group)..self.ends.as_slice()[group] as usize]
    }

    /// Hash of each group.
    pub(in crate::aggregate) fn hashes(&self) -> &[u64] {
        self.hashes.as_slice()
    }

    /// Key columns of groups.
    pub(in crate::aggregate) fn columns(
        &self,
        chosen: &[u32],
    ) -> Result<Vec<ArrayRef>, PrimitiveError> {
        let keys: Vec<&[u8]> = chosen.iter().map(|group| self.key(*group as usize)).collect();
        self.encoder.decode(&keys)
    }

    /// Copies it into memory of another node.
    pub(in crate::aggregate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        self.slots.move_to(home)?;
        self.hashes.move_to(home)?;
        self.bytes.move_to(home)?;
        self.ends.move_to(home)
    }

    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        let rooms = self.slots.memory_bytes() + self.hashes.memory_bytes();
        rooms + self.bytes.memory_bytes() + self.ends.memory_bytes()
    }
}

/// The slot of a group.
fn slot_of(hash: u64, group: usize) -> u64 {
    hash >> GROUP_BITS << GROUP_BITS | (group as u64 + 1)
}

fn same_tag(slot: u64, hash: u64) -> bool {
    (slot ^ hash) >> GROUP_BITS == 0
}

fn group(slot: u64) -> usize {
    slot as u32 as usize - 1
}
