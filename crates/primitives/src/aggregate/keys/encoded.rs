//! Keys of any type, hashed by their bytes.

use std::ops::Range;

use atoll_placement::{Arena, PlacementError};
use atoll_topology::{Bytes, NodeId};

use arrow_array::ArrayRef;

use super::{EncodedKeys, Encoder, is_same};
use crate::PrimitiveError;
use crate::kernel::groups::GroupIds;
use crate::kernel::placed_vec::PlacedVec;
use crate::kernel::stream::prefetch;

/// Minimum of slots for each group.
const SLOTS_PER_GROUP: usize = 2;
/// Slots of an empty table.
const SLOTS_MIN: usize = 1024;
/// An empty slot.
const EMPTY: u64 = 0;
/// Bits of a slot with the place of a key; the bits above hold a part of its hash.
const PLACE_BITS: u32 = 32;
/// Alignment of keys; a place is the aligned position + 1.
const UNIT: usize = 8;
/// Bytes in front of a key: its length and its group.
const HEAD: usize = 8;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Keys looked up together, so that their memory is prefetched.
const TOGETHER: usize = 64;
/// Prefetch distance for keys copied out of order, in keys.
const AHEAD: usize = 16;
/// Marks a key that has no group yet.
const MISSING: u32 = u32::MAX;

/// Groups of encoded keys, numbered as they come.
#[derive(Debug)]
pub(in crate::aggregate) struct Encoded {
    encoder: Encoder,
    slots: PlacedVec<u64>,
    hashes: PlacedVec<u64>,
    /// All keys, each after its header, so that one lookup finds both.
    keys: PlacedVec<u8>,
    /// Position of each group's key.
    places: PlacedVec<u32>,
}

/// Some groups of a table.
struct ChosenKeys<'a>(&'a Encoded, &'a [u32]);

impl EncodedKeys for ChosenKeys<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }

    fn hash(&self, at: usize) -> u64 {
        self.0.hashes.as_slice()[self.1[at] as usize]
    }

    fn bytes(&self, at: usize) -> usize {
        self.0.key(self.1[at]).len()
    }

    fn is_same(&self, at: usize, key: &[u8]) -> bool {
        is_same(self.0.key(self.1[at]), key)
    }

    fn write(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(self.0.key(self.1[at]));
    }
}

impl Encoded {
    /// An empty table.
    pub(in crate::aggregate) fn new(
        encoder: Encoder,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let mut slots = PlacedVec::new(arena, home);
        slots.grow(SLOTS_MIN, EMPTY)?;
        let (hashes, places) = (PlacedVec::new(arena, home), PlacedVec::new(arena, home));
        Ok(Self { encoder, slots, hashes, keys: PlacedVec::new(arena, home), places })
    }

    /// The encoder of its keys.
    pub(in crate::aggregate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    pub(in crate::aggregate) fn groups(&self) -> usize {
        self.hashes.len()
    }

    /// Bytes of all keys.
    pub(in crate::aggregate) fn key_bytes(&self) -> usize {
        self.keys.len()
    }

    /// Removes all groups.
    pub(in crate::aggregate) fn restart(&mut self) {
        self.slots.as_mut_slice().fill(EMPTY);
        self.hashes.clear();
        self.keys.clear();
        self.places.clear();
    }

    /// Finds the groups of encoded keys; new keys become groups.
    pub(in crate::aggregate) fn find(
        &mut self,
        keys: &impl EncodedKeys,
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        self.find_all(keys, ids)
    }

    /// Finds the groups for some of another table's keys.
    pub(in crate::aggregate) fn find_groups(
        &mut self,
        other: &Self,
        chosen: &[u32],
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        self.find_all(&ChosenKeys(other, chosen), ids)
    }

    fn find_all(
        &mut self,
        keys: &impl EncodedKeys,
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        let mut found = Vec::with_capacity(keys.len());
        self.prefetch_slots(keys, 0..TOGETHER);
        for start in (0..keys.len()).step_by(TOGETHER) {
            let range = start..keys.len().min(start + TOGETHER);
            if self.look_up(keys, range.clone(), &mut found) {
                for at in range.filter(|at| found[*at] == MISSING).collect::<Vec<_>>() {
                    found[at] = self.find_one(keys, at)?;
                }
            }
        }
        match keys.of_rows() {
            None => ids.take(found.into_iter(), self.groups()),
            Some(keys) => ids.take(keys.iter().map(|key| found[*key as usize]), self.groups()),
        }
        Ok(())
    }

    /// Prefetches the slots of some keys; there may be fewer keys than slots.
    #[inline(always)]
    fn prefetch_slots(&self, keys: &impl EncodedKeys, range: Range<usize>) {
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        for at in range.start..range.end.min(keys.len()) {
            prefetch(&raw const slots[keys.hash(at) as usize & mask]);
        }
    }

    /// Appends the groups of some keys, [`MISSING`] for keys without a group; returns whether any is missing. It reads
    /// slots and keys in separate passes and prefetches both: slots while it compares the previous keys.
    #[inline(always)]
    fn look_up(&self, keys: &impl EncodedKeys, range: Range<usize>, found: &mut Vec<u32>) -> bool {
        let (slots, stored) = (self.slots.as_slice(), self.keys.as_slice());
        let mut likely = [None; TOGETHER];
        for (at, likely) in range.clone().zip(&mut likely) {
            *likely = tagged(slots, keys.hash(at));
            if let Some(place) = *likely {
                let first = &raw const stored[place];
                prefetch(first);
                if place % LINE + HEAD + keys.bytes(at) > LINE {
                    prefetch(first.wrapping_add(LINE));
                }
            }
        }
        self.prefetch_slots(keys, range.end..range.end + TOGETHER);
        let mut has_missing = false;
        for (at, likely) in range.zip(likely) {
            let group = likely.and_then(|place| group_of(stored, place, keys, at));
            has_missing |= group.is_none();
            found.push(group.unwrap_or(MISSING));
        }
        has_missing
    }

    fn find_one(&mut self, keys: &impl EncodedKeys, row: usize) -> Result<u32, PlacementError> {
        let hash = keys.hash(row);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = slots[at];
            if slot == EMPTY {
                return self.add(keys, row, at);
            }
            if same_tag(slot, hash)
                && let Some(group) = group_of(self.keys.as_slice(), place(slot), keys, row)
            {
                return Ok(group);
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(never)]
    fn add(
        &mut self,
        keys: &impl EncodedKeys,
        at: usize,
        slot: usize,
    ) -> Result<u32, PlacementError> {
        let group = self.hashes.len();
        self.append(keys, at)?;
        self.slots.as_mut_slice()[slot] = slot_of(keys.hash(at), self.places.as_slice()[group]);
        if self.hashes.len() * SLOTS_PER_GROUP > self.slots.len() {
            self.spread()?;
        }
        Ok(group as u32)
    }

    fn append(&mut self, keys: &impl EncodedKeys, at: usize) -> Result<(), PlacementError> {
        let (group, bytes) = (self.hashes.len() as u64, keys.bytes(at));
        let start = start_of(self.keys.len(), HEAD + bytes);
        let place = u32::try_from(start / UNIT + 1).map_err(|_| PlacementError::TooLarge {
            asked: Bytes(start as u64),
            limit: Bytes(u64::from(u32::MAX) * UNIT as u64),
        })?;
        self.keys.grow(start + (HEAD + bytes).next_multiple_of(UNIT), 0)?;
        let (head, to) = self.keys.as_mut_slice()[start..].split_at_mut(HEAD);
        head.copy_from_slice(&(group << u32::BITS | bytes as u64).to_le_bytes());
        keys.write(at, &mut to[..bytes]);
        self.places.push(place)?;
        self.hashes.push(keys.hash(at))
    }

    /// Quadruples the slots.
    fn spread(&mut self) -> Result<(), PlacementError> {
        let len = self.slots.len() * 4;
        let mut slots = self.slots.beside();
        slots.grow(len, EMPTY)?;
        let to = slots.as_mut_slice();
        for (hash, place) in self.hashes.as_slice().iter().zip(self.places.as_slice()) {
            let mut slot = *hash as usize & (len - 1);
            while to[slot] != EMPTY {
                slot = (slot + 1) & (len - 1);
            }
            to[slot] = slot_of(*hash, *place);
        }
        self.slots = slots;
        Ok(())
    }

    /// The chosen groups in this order; lookups no longer work.
    pub(in crate::aggregate) fn listed(&self, chosen: &[u32]) -> Result<Self, PlacementError> {
        let (slots, hashes) = (self.slots.beside(), self.hashes.beside());
        let (keys, places) = (self.keys.beside(), self.places.beside());
        let mut listed = Self { encoder: self.encoder.clone(), slots, hashes, keys, places };
        listed.keys.reserve(self.keys.len())?;
        let keys = ChosenKeys(self, chosen);
        for at in 0..chosen.len() {
            if let Some(ahead) = chosen.get(at + AHEAD) {
                prefetch(&raw const self.keys.as_slice()[self.place_of(*ahead)]);
            }
            listed.append(&keys, at)?;
        }
        Ok(listed)
    }

    /// Position of a group's key.
    fn place_of(&self, group: u32) -> usize {
        (self.places.as_slice()[group as usize] as usize - 1) * UNIT
    }

    #[inline(always)]
    fn key(&self, group: u32) -> &[u8] {
        let at = self.place_of(group);
        let keys = self.keys.as_slice();
        let length = u32::from_le_bytes(keys[at..at + 4].try_into().expect("four bytes"));
        &keys[at + HEAD..at + HEAD + length as usize]
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
        let keys: Vec<&[u8]> = chosen.iter().map(|group| self.key(*group)).collect();
        self.encoder.decode(&keys)
    }

    /// Copies it into memory of another node.
    pub(in crate::aggregate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        self.slots.move_to(home)?;
        self.hashes.move_to(home)?;
        self.keys.move_to(home)?;
        self.places.move_to(home)
    }

    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        let rooms = self.slots.memory_bytes() + self.hashes.memory_bytes();
        rooms + self.keys.memory_bytes() + self.places.memory_bytes()
    }
}

/// Position for a key after others: a key that fits a cache line does not cross one.
fn start_of(end: usize, bytes: usize) -> usize {
    match bytes <= LINE && end % LINE + bytes > LINE {
        true => end.next_multiple_of(LINE),
        false => end,
    }
}

/// The place of the first key with this hash's tag; None if there is none.
#[inline(always)]
fn tagged(slots: &[u64], hash: u64) -> Option<usize> {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    loop {
        match slots[at] {
            EMPTY => return None,
            slot if same_tag(slot, hash) => return Some(place(slot)),
            _ => at = (at + 1) & mask,
        }
    }
}

/// The group of the key at a place, if it is equal.
#[inline(always)]
fn group_of(stored: &[u8], place: usize, keys: &impl EncodedKeys, at: usize) -> Option<u32> {
    let (head, rest) = stored[place..].split_first_chunk::<HEAD>()?;
    let head = u64::from_le_bytes(*head);
    let bytes = head as u32 as usize;
    let is_same = bytes == keys.bytes(at) && keys.is_same(at, rest.get(..bytes)?);
    is_same.then_some((head >> u32::BITS) as u32)
}

/// The slot of a key.
fn slot_of(hash: u64, place: u32) -> u64 {
    hash >> PLACE_BITS << PLACE_BITS | u64::from(place)
}

fn same_tag(slot: u64, hash: u64) -> bool {
    (slot ^ hash) >> PLACE_BITS == 0
}

/// Position of a slot's key.
fn place(slot: u64) -> usize {
    (slot as u32 as usize - 1) * UNIT
}
