//! Words of a small range: the group is the distance from the least word.

use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use crate::kernel::groups::GroupIds;
use crate::kernel::placed_vec::PlacedVec;

/// Groups of all words of a range, with a flag for each word that occurred.
#[derive(Debug)]
pub(in crate::aggregate) struct Dense {
    min: u64,
    bits: u32,
    flags: PlacedVec<u8>,
}

impl Dense {
    /// The range of `2^bits` words from `min`.
    pub(in crate::aggregate) fn new(
        min: u64,
        bits: u32,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let mut flags = PlacedVec::new(arena, home);
        flags.grow(1 << bits, 0)?;
        Ok(Self { min, bits, flags })
    }

    /// Restarts with another range of the same size.
    pub(in crate::aggregate) fn restart(&mut self, min: u64) {
        self.min = min;
        self.flags.as_mut_slice().fill(0);
    }

    /// Number of groups in the range.
    pub(in crate::aggregate) fn groups(&self) -> usize {
        1 << self.bits
    }

    /// Whether another table has the same range.
    pub(in crate::aggregate) fn is_like(&self, other: &Self) -> bool {
        (self.min, self.bits) == (other.min, other.bits)
    }

    /// Finds the groups; returns false if a word is outside of the range.
    pub(in crate::aggregate) fn find(&self, words: &[u64], ids: &mut GroupIds) -> bool {
        ids.dense(words, self.min, self.bits)
    }

    /// Marks groups as occurring.
    pub(in crate::aggregate) fn mark(&mut self, ids: &GroupIds) {
        ids.touch(self.flags.as_mut_slice(), 0, |_| 1);
    }

    /// Finds the groups for another table's groups, which must be in the range.
    pub(in crate::aggregate) fn find_groups(
        &self,
        other: &Self,
        chosen: &[u32],
        ids: &mut GroupIds,
    ) {
        let apart = other.min.wrapping_sub(self.min);
        ids.take(
            chosen.iter().map(|group| apart.wrapping_add(u64::from(*group)) as u32),
            self.groups(),
        );
    }

    /// Part `part` of `parts` of the range, both sizes being powers of two: its least word and its bits.
    pub(in crate::aggregate) fn part(&self, part: usize, parts: usize) -> (u64, u32) {
        let bits = self.bits - parts.ilog2().min(self.bits);
        (self.min.wrapping_add((part as u64) << bits), bits)
    }

    /// Copies it into memory of another node.
    pub(in crate::aggregate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        self.flags.move_to(home)
    }

    /// Flags of groups that occurred.
    pub(in crate::aggregate) fn flags(&self) -> &[u8] {
        self.flags.as_slice()
    }

    /// Groups that occurred.
    pub(in crate::aggregate) fn chosen(&self) -> Vec<u32> {
        self.chosen_in(0, 1)
    }

    /// Groups that occurred in one of `parts` equal parts of the range.
    pub(in crate::aggregate) fn chosen_in(&self, part: usize, parts: usize) -> Vec<u32> {
        let len = self.groups() / parts;
        let flags = self.flags.as_slice().iter().enumerate().skip(part * len).take(len);
        flags.filter(|(_, flag)| **flag == 1).map(|(group, _)| group as u32).collect()
    }

    /// Words of groups.
    pub(in crate::aggregate) fn words(&self, chosen: &[u32]) -> Vec<u64> {
        chosen.iter().map(|group| self.min.wrapping_add(u64::from(*group))).collect()
    }

    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        self.flags.memory_bytes()
    }
}
