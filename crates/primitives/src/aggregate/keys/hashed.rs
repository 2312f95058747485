//! A hash table of words: slots with group numbers, linear probing, a low load factor.

use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use crate::hash;
use crate::kernel::groups::{EMPTY, GroupIds};
use crate::kernel::placed_vec::PlacedVec;

/// Minimum of slots for each group: most words are found in their first slot.
const SLOTS_PER_GROUP: usize = 4;
/// Minimum of slots.
const SLOTS_MIN: usize = 64;

/// Groups of words, numbered as they come.
#[derive(Debug)]
pub(in crate::aggregate) struct Hashed {
    /// Number of a group + 1, or [`EMPTY`].
    slots: PlacedVec<u32>,
    /// Word of each group.
    words: PlacedVec<u64>,
}

impl Hashed {
    /// An empty table with room for `expected` groups.
    pub(in crate::aggregate) fn new(
        expected: usize,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let mut slots = PlacedVec::new(arena, home);
        slots.grow((expected * SLOTS_PER_GROUP * 2).next_power_of_two().max(SLOTS_MIN), EMPTY)?;
        Ok(Self { slots, words: PlacedVec::new(arena, home) })
    }

    /// Groups of these words, in this order; lookups do not work.
    pub(in crate::aggregate) fn listed(
        words: &[u64],
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let mut listed =
            Self { slots: PlacedVec::new(arena, home), words: PlacedVec::new(arena, home) };
        listed.words.extend(words)?;
        Ok(listed)
    }

    /// Removes all groups.
    pub(in crate::aggregate) fn restart(&mut self) {
        self.slots.as_mut_slice().fill(EMPTY);
        self.words.clear();
    }

    pub(in crate::aggregate) fn groups(&self) -> usize {
        self.words.len()
    }

    /// Finds the groups; new words become groups.
    pub(in crate::aggregate) fn find(
        &mut self,
        words: &[u64],
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        ids.look_up(words, self.slots.as_slice(), self.words.as_slice());
        ids.settle(|row| self.find_one(words[row as usize]))
    }

    #[inline]
    fn find_one(&mut self, word: u64) -> Result<u32, PlacementError> {
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let mut slot = hash::word(word) as usize & mask;
        loop {
            match slots[slot] {
                EMPTY => return self.add(word, slot),
                group if self.words.as_slice()[group as usize - 1] == word => return Ok(group - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Adds a group in a free slot.
    #[inline(never)]
    fn add(&mut self, word: u64, slot: usize) -> Result<u32, PlacementError> {
        let group = self.words.len() as u32;
        self.words.push(word)?;
        self.slots.as_mut_slice()[slot] = group + 1;
        if self.words.len() * SLOTS_PER_GROUP > self.slots.len() {
            self.spread()?;
        }
        Ok(group)
    }

    /// Quadruples the slots.
    fn spread(&mut self) -> Result<(), PlacementError> {
        let len = self.slots.len() * 4;
        let mut slots = self.slots.beside();
        slots.grow(len, EMPTY)?;
        let to = slots.as_mut_slice();
        for (group, word) in self.words.as_slice().iter().enumerate() {
            let mut slot = hash::word(*word) as usize & (len - 1);
            while to[slot] != EMPTY {
                slot = (slot + 1) & (len - 1);
            }
            to[slot] = group as u32 + 1;
        }
        self.slots = slots;
        Ok(())
    }

    /// Words of all groups.
    pub(in crate::aggregate) fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Copies it into memory of another node.
    pub(in crate::aggregate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        self.slots.move_to(home)?;
        self.words.move_to(home)
    }

    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.words.memory_bytes()
    }
}
