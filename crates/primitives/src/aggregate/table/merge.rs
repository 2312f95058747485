//! Groups of several tables in one: all of them, or one worker's share.

use atoll_placement::PlacementError;
use atoll_topology::NodeId;

use super::{Check, Keys, Shape, Table};
use crate::aggregate::packing::Packing;
use crate::aggregate::plan::Plan;
use crate::aggregate::state::State;
use crate::{PrimitiveError, hash};

/// Groups that are merged at a time.
const BLOCK_GROUPS: usize = 4096;

/// How the groups of tables are divided among those who merge them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aggregate) enum Cut {
    /// By parts of the range that all tables have; the number of parts is a power of two.
    Range,
    /// By the high bits of a key's hash.
    Hash,
}

impl Table {
    /// Takes all groups of another table of the same query whose keys are found the same way, or as
    /// words in a hash table, asking `check` before each block of them.
    pub(in crate::aggregate) fn merge(
        &mut self,
        other: &Table,
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        self.merge_groups(other, &other.chosen(), check)
    }

    /// Takes some groups of such a table; all of them have rows.
    pub(in crate::aggregate) fn merge_groups(
        &mut self,
        other: &Table,
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

    /// Adds states of another table's groups `from` to those that `ids` tells.
    fn merge_states(
        &mut self,
        before: usize,
        others: &[State],
        from: &[u32],
    ) -> Result<(), PlacementError> {
        for (state, more) in self.states.iter_mut().zip(others) {
            state.grow(self.ids.groups())?;
            state.merge(&self.ids, more, from, self.keys.touched(before))?;
        }
        if let Keys::Dense(dense) = &mut self.keys {
            dense.mark(&self.ids);
        }
        if let Keys::One { rows } = &mut self.keys {
            *rows = true;
        }
        Ok(())
    }

    /// Leaves in `ids` the own group of each of some groups of another table.
    fn find_groups(&mut self, other: &Table, chosen: &[u32]) -> Result<(), PrimitiveError> {
        match (&mut self.keys, &other.keys) {
            (Keys::One { .. }, _) => self.ids.all_of(0, chosen.len()),
            (Keys::Dense(own), Keys::Dense(more)) => own.find_groups(more, chosen, &mut self.ids),
            (Keys::Hashed(own), Keys::Hashed(_) | Keys::Dense(_)) => {
                own.find(&other.words(chosen), &mut self.ids)?;
            }
            (Keys::Encoded(own), Keys::Encoded(more)) => {
                own.find_groups(more, chosen, &mut self.ids)?;
            }
            _ => unreachable!("tables that are merged have keys of one kind"),
        }
        Ok(())
    }

    /// Words of some groups of a table of words.
    fn words(&self, chosen: &[u32]) -> Vec<u64> {
        match &self.keys {
            Keys::Dense(dense) => dense.words(chosen),
            Keys::Hashed(hashed) => {
                let words = hashed.words();
                chosen.iter().map(|group| words[*group as usize]).collect()
            }
            Keys::Ordered(ordered) => {
                let words = ordered.words();
                chosen.iter().map(|group| words[*group as usize]).collect()
            }
            _ => unreachable!("words are asked of tables of words"),
        }
    }

    /// Takes all groups of a table of packed keys into this one of encoded keys.
    pub(in crate::aggregate) fn merge_packed(
        &mut self,
        other: &Table,
        packing: &Packing,
        check: Check<'_>,
    ) -> Result<(), PrimitiveError> {
        let words = matches!(other.keys, Keys::Hashed(_) | Keys::Dense(_) | Keys::Ordered(_));
        if !(words && matches!(self.keys, Keys::Encoded(_))) {
            return self.merge(other, check);
        }
        for chosen in other.chosen().chunks(BLOCK_GROUPS) {
            check()?;
            let words = other.words(chosen);
            let before = self.groups();
            if let Keys::Encoded(own) = &mut self.keys {
                let keys = own.encoder().encode(&packing.unpack(&words)?)?;
                own.find(&keys, (0, chosen.len()), &mut self.ids)?;
            }
            self.merge_states(before, &other.states, chosen)?;
        }
        Ok(())
    }

    /// Whether another table's groups can be merged into this one.
    pub(in crate::aggregate) fn is_like(&self, other: &Table) -> bool {
        match (&self.keys, &other.keys) {
            (Keys::Dense(own), Keys::Dense(more)) => own.is_like(more),
            (Keys::Dense(_), _) => false,
            (Keys::Encoded(_), _) => matches!(other.keys, Keys::Encoded(_)),
            _ => true,
        }
    }

    /// The same groups in a hash table.
    pub(in crate::aggregate) fn into_hashed(self, plan: &Plan) -> Result<Self, PrimitiveError> {
        let shape = Shape::Hashed { expected: self.chosen().len() };
        let mut hashed = Self::new(plan, &shape, self.prefetch, &self.arena, self.home)?;
        hashed.merge(&self, &|| Ok(()))?;
        Ok(hashed)
    }

    /// What a table for one part of this table's and its likes' groups is.
    pub(in crate::aggregate) fn part_shape(&self, cut: Cut, part: usize, parts: usize) -> Shape {
        match &self.keys {
            Keys::Dense(dense) if cut == Cut::Range => {
                let (min, bits) = dense.part(part, parts);
                Shape::Dense { min, bits }
            }
            Keys::One { .. } => Shape::One,
            Keys::Encoded(encoded) => Shape::Encoded(encoded.encoder().clone()),
            _ => Shape::Hashed { expected: self.groups().min(1 << 20) / parts },
        }
    }

    /// Groups with rows that belong to one part of all.
    pub(in crate::aggregate) fn part(&self, cut: Cut, part: usize, parts: usize) -> Vec<u32> {
        let is_own = |hash: u64| ((u128::from(hash) * parts as u128) >> 64) as usize == part;
        let of_hashes = |hashes: &mut dyn Iterator<Item = (u32, u64)>| -> Vec<u32> {
            hashes.filter(|(_, hash)| is_own(*hash)).map(|(group, _)| group).collect()
        };
        match &self.keys {
            Keys::Dense(dense) if cut == Cut::Range => dense.chosen_in(part, parts),
            Keys::Dense(_) | Keys::Hashed(_) => {
                let chosen = self.chosen();
                let words = self.words(&chosen);
                of_hashes(&mut chosen.into_iter().zip(words.into_iter().map(hash::word)))
            }
            Keys::Encoded(encoded) => of_hashes(&mut (0..).zip(encoded.hashes().iter().copied())),
            _ if part == 0 => self.chosen(),
            _ => Vec::new(),
        }
    }

    /// Bytes of memory it holds.
    pub(in crate::aggregate) fn memory_bytes(&self) -> usize {
        let keys = match &self.keys {
            Keys::Dense(dense) => dense.memory_bytes(),
            Keys::Hashed(hashed) => hashed.memory_bytes(),
            Keys::Encoded(encoded) => encoded.memory_bytes(),
            _ => 0,
        };
        keys + self.states.iter().map(State::memory_bytes).sum::<usize>()
    }

    /// Copies its words and states into memory of another node.
    pub(in crate::aggregate) fn move_to(&mut self, home: NodeId) -> Result<(), PlacementError> {
        match &mut self.keys {
            Keys::Dense(dense) => dense.move_to(home)?,
            Keys::Hashed(hashed) => hashed.move_to(home)?,
            _ => {}
        }
        self.home = Some(home);
        self.states.iter_mut().try_for_each(|state| state.move_to(home))
    }
}
