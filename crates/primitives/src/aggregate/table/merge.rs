//! Merges the groups of several tables: all of them, or those of a piece.

use atoll_placement::PlacementError;
use atoll_topology::NodeId;

use super::{Check, GroupTable, TableKeys, TableShape};
use crate::aggregate::keys::KeyBlock;
use crate::aggregate::packing::Packing;
use crate::aggregate::plan::AggregatePlan;
use crate::aggregate::state::{GroupStates, Touched};
use crate::kernel::groups::GroupIds;
use crate::partition::FanOut;
use crate::{PrimitiveError, hash};

/// Groups merged at a time.
const BLOCK_GROUPS: usize = 4096;

/// A table whose groups are ordered by piece, according to their hashes: a piece is read sequentially.
#[derive(Debug)]
pub(in crate::aggregate) struct Pieced {
    pub(in crate::aggregate) table: GroupTable,
    /// Start of each piece, and end of the last.
    starts: Vec<u32>,
}

impl Pieced {
    /// Groups of a piece.
    pub(in crate::aggregate) fn groups(&self, piece: usize) -> Vec<u32> {
        (self.starts[piece]..self.starts[piece + 1]).collect()
    }
}

impl GroupTable {
    /// Adds all groups of another table of the same query that has the same kind of keys, or words in a hash table;
    /// calls `check` before each block.
    pub(in crate::aggregate) fn merge(
        &mut self,
        other: &GroupTable,
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        self.merge_groups(other, &other.chosen(), check)
    }

    /// Adds some groups of such a table; all of them have rows.
    pub(in crate::aggregate) fn merge_groups(
        &mut self,
        other: &GroupTable,
        chosen: &[u32],
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        for chosen in chosen.chunks(BLOCK_GROUPS) {
            check()?;
            let before = self.groups();
            self.find_groups(other, chosen)?;
            self.merge_states(before, &other.states, chosen)?;
        }
        Ok(())
    }

    /// Adds states of another table's groups `from` to the groups `ids`.
    fn merge_states(
        &mut self,
        before: usize,
        others: &[GroupStates],
        from: &[u32],
    ) -> Result<(), PlacementError> {
        for (state, more) in self.states.iter_mut().zip(others) {
            state.grow(self.ids.groups())?;
            state.merge(&self.ids, more, from, self.keys.touched(before))?;
        }
        if let TableKeys::Dense(dense) = &mut self.keys {
            dense.mark(&self.ids);
        }
        if let TableKeys::One { rows } = &mut self.keys {
            *rows = true;
        }
        Ok(())
    }

    /// Leaves in `ids` the own group of each of some groups of another table.
    fn find_groups(&mut self, other: &GroupTable, chosen: &[u32]) -> Result<(), PrimitiveError> {
        match (&mut self.keys, &other.keys) {
            (TableKeys::One { .. }, _) => self.ids.all_of(0, chosen.len()),
            (TableKeys::Dense(own), TableKeys::Dense(more)) => {
                own.find_groups(more, chosen, &mut self.ids)
            }
            (TableKeys::Hashed(own), TableKeys::Hashed(_) | TableKeys::Dense(_)) => {
                own.find(&other.words(chosen), &mut self.ids)?;
            }
            (TableKeys::Encoded(own), TableKeys::Encoded(more)) => {
                own.find_groups(more, chosen, &mut self.ids)?;
            }
            _ => unreachable!("tables that are merged have keys of one kind"),
        }
        Ok(())
    }

    /// Words of some groups of a table of words.
    pub(super) fn words(&self, chosen: &[u32]) -> Vec<u64> {
        let of = |words: &[u64]| chosen.iter().map(|group| words[*group as usize]).collect();
        match &self.keys {
            TableKeys::Dense(dense) => dense.words(chosen),
            TableKeys::Hashed(hashed) => of(hashed.words()),
            TableKeys::Ordered(ordered) => of(ordered.words()),
            _ => unreachable!("words are asked of tables of words"),
        }
    }

    /// Adds all groups of a table of packed keys to this one of encoded keys.
    pub(in crate::aggregate) fn merge_packed(
        &mut self,
        other: &GroupTable,
        packing: &Packing,
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        let mut block = KeyBlock::default();
        for chosen in other.chosen().chunks(BLOCK_GROUPS) {
            check()?;
            let before = self.groups();
            let TableKeys::Encoded(own) = &mut self.keys else {
                unreachable!("packed keys come to a table of encoded ones")
            };
            let encoder = own.encoder().clone();
            let columns = encoder.columns(&packing.unpack(&other.words(chosen))?)?;
            let keys = encoder.encode(&columns, (0, chosen.len()), &mut block);
            own.find(&keys, &mut self.ids)?;
            self.merge_states(before, &other.states, chosen)?;
        }
        Ok(())
    }

    /// Whether another table has the same range of words.
    pub(in crate::aggregate) fn has_range_of(&self, other: &GroupTable) -> bool {
        match (&self.keys, &other.keys) {
            (TableKeys::Dense(own), TableKeys::Dense(more)) => own.is_like(more),
            _ => false,
        }
    }

    /// Converts it to a hash table.
    pub(in crate::aggregate) fn into_hashed(
        self,
        plan: &AggregatePlan,
    ) -> Result<Self, PrimitiveError> {
        let shape = TableShape::Hashed { expected: self.chosen().len() };
        let mut hashed = Self::new(plan, &shape, self.prefetch, &self.arena, self.home)?;
        hashed.merge(&self, &|| Ok(()))?;
        Ok(hashed)
    }

    /// The specification of a table for all groups of this table and its peers.
    pub(in crate::aggregate) fn shape(&self, expected: usize) -> TableShape {
        match &self.keys {
            TableKeys::One { .. } => TableShape::One,
            TableKeys::Encoded(encoded) => TableShape::Encoded(encoded.encoder().clone()),
            _ => TableShape::Hashed { expected },
        }
    }

    /// The specification of a table for one of `parts` parts of the range of words, both sizes being powers of two;
    /// None without a range.
    pub(in crate::aggregate) fn range_shape(
        &self,
        part: usize,
        parts: usize,
    ) -> Option<TableShape> {
        let TableKeys::Dense(dense) = &self.keys else { return None };
        let (min, bits) = dense.part(part, parts);
        Some(TableShape::Dense { min, bits })
    }

    /// Groups with rows in one of `parts` parts of the range of words.
    pub(in crate::aggregate) fn in_range(&self, part: usize, parts: usize) -> Vec<u32> {
        match &self.keys {
            TableKeys::Dense(dense) => dense.chosen_in(part, parts),
            _ => unreachable!("parts of a range are asked of tables that have one"),
        }
    }

    /// Orders the groups by piece. Lookups in the table no longer work.
    pub(in crate::aggregate) fn into_pieces(
        self,
        plan: &AggregatePlan,
        fan_out: FanOut,
    ) -> Result<Pieced, PrimitiveError> {
        let chosen = self.chosen();
        let hashes: Vec<u64> = match &self.keys {
            TableKeys::Encoded(encoded) => encoded.hashes().to_vec(),
            _ => self.words(&chosen).into_iter().map(hash::word).collect(),
        };
        let mut starts = vec![0_u32; fan_out.partitions() + 1];
        for hash in &hashes {
            starts[fan_out.digit(*hash) + 1] += 1;
        }
        for piece in 1..starts.len() {
            starts[piece] += starts[piece - 1];
        }
        let mut next = starts.clone();
        let mut order = vec![0; chosen.len()];
        for (group, hash) in chosen.iter().zip(&hashes) {
            let next = &mut next[fan_out.digit(*hash)];
            order[*next as usize] = *group;
            *next += 1;
        }
        Ok(Pieced { table: self.listed(plan, &order)?, starts })
    }

    /// The chosen groups in this order.
    fn listed(&self, plan: &AggregatePlan, chosen: &[u32]) -> Result<Self, PlacementError> {
        let (arena, home) = (self.arena.clone(), self.home);
        let keys = match &self.keys {
            TableKeys::Encoded(encoded) => TableKeys::Encoded(Box::new(encoded.listed(chosen)?)),
            _ => TableKeys::Hashed(super::Hashed::listed(&self.words(chosen), &arena, home)?),
        };
        let mut ids = GroupIds::default();
        ids.number(chosen.len() as u32);
        let mut states = plan.empty_states(&arena, home, usize::MAX);
        for (state, from) in states.iter_mut().zip(&self.states) {
            state.grow(chosen.len())?;
            state.merge(&ids, from, chosen, Touched::Below(0))?;
        }
        let (takes, prefetch) = (self.takes.clone(), self.prefetch);
        Ok(Self { keys, states, takes, ids: GroupIds::default(), prefetch, arena, home })
    }

    /// Bytes of memory it holds.
    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        let keys = match &self.keys {
            TableKeys::Dense(dense) => dense.memory_bytes(),
            TableKeys::Hashed(hashed) => hashed.memory_bytes(),
            TableKeys::Encoded(encoded) => encoded.memory_bytes(),
            _ => 0,
        };
        keys + self.states.iter().map(GroupStates::memory_bytes).sum::<usize>()
    }

    /// Copies its words and states into memory of another node.
    pub(in crate::aggregate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        match &mut self.keys {
            TableKeys::Dense(dense) => dense.move_to(home)?,
            TableKeys::Hashed(hashed) => hashed.move_to(home)?,
            TableKeys::Encoded(encoded) => encoded.move_to(home)?,
            TableKeys::One { .. } | TableKeys::Ordered(_) => {}
        }
        self.home = Some(home);
        self.states.iter_mut().try_for_each(|state| state.move_to(home))
    }
}
