//! One worker's table: groups and their states.

mod merge;

use arrow_array::{ArrayRef, RecordBatch};
use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use super::keys::{Dense, Encoded, EncodedKeys, Encoder, Hashed, Ordered};
use super::lane::{LaneValues, ValueBlock};
use super::packing::Packing;
use super::plan::AggregatePlan;
use super::state::{GroupStates, Touched};
use crate::PrimitiveError;
use crate::kernel::groups::GroupIds;

pub(super) use merge::Pieced;

/// Bytes of an array up to which it stays in the second-level cache: nothing is prefetched.
const CACHED_BYTES: usize = 512 << 10;

/// A check between blocks: an error if the work was cancelled.
pub(super) type Check<'a> = &'a dyn Fn() -> Result<(), PrimitiveError>;

/// Groups and their states.
#[derive(Debug)]
pub(super) struct GroupTable {
    keys: TableKeys,
    states: Vec<GroupStates>,
    /// For each state, the position of its value in a block.
    takes: Vec<usize>,
    ids: GroupIds,
    prefetch: usize,
    arena: Arena,
    home: Option<NodeId>,
}

#[derive(Debug)]
enum TableKeys {
    /// One group, without keys.
    One {
        rows: bool,
    },
    Dense(Dense),
    Hashed(Hashed),
    Ordered(Ordered),
    Encoded(Box<Encoded>),
}

impl TableKeys {
    /// Which groups had rows when there were `before` groups, and before these are flagged.
    fn touched(&self, before: usize) -> Touched<'_> {
        match self {
            Self::Dense(dense) => Touched::Flags(dense.flags()),
            _ => Touched::Below(before),
        }
    }
}

/// Specification of a table.
#[derive(Clone, Debug)]
pub(super) enum TableShape {
    One,
    Dense {
        min: u64,
        bits: u32,
    },
    Hashed {
        expected: usize,
    },
    /// For words whose equal values are adjacent.
    Runs,
    Encoded(Encoder),
}

impl GroupTable {
    /// An empty table.
    pub(super) fn new(
        plan: &AggregatePlan,
        shape: &TableShape,
        prefetch: usize,
        arena: &Arena,
        home: Option<NodeId>,
    ) -> Result<Self, PlacementError> {
        let (keys, expected) = match shape {
            TableShape::One => (TableKeys::One { rows: false }, 1),
            TableShape::Dense { min, bits } => {
                (TableKeys::Dense(Dense::new(*min, *bits, arena, home)?), 1 << bits)
            }
            TableShape::Hashed { expected } => {
                (TableKeys::Hashed(Hashed::new(*expected, arena, home)?), *expected)
            }
            TableShape::Runs => (TableKeys::Ordered(Ordered::new(arena, home)), usize::MAX),
            TableShape::Encoded(encoder) => (
                TableKeys::Encoded(Box::new(Encoded::new(encoder.clone(), arena, home)?)),
                usize::MAX,
            ),
        };
        let mut states = plan.empty_states(arena, home, expected);
        if let TableKeys::Dense(dense) = &keys {
            states.iter_mut().try_for_each(|state| state.grow(dense.groups()))?;
        }
        let takes = plan.states.iter().map(|(_, value)| *value).collect();
        let (arena, ids) = (arena.clone(), GroupIds::default());
        Ok(Self { keys, states, takes, ids, prefetch, arena, home })
    }

    /// Removes all groups, and starts at `min` if it is dense; keeps the memory.
    pub(super) fn restart(&mut self, min: u64) -> Result<(), PlacementError> {
        self.states.iter_mut().for_each(GroupStates::clear);
        match &mut self.keys {
            TableKeys::Dense(dense) => {
                dense.restart(min);
                let groups = dense.groups();
                self.states.iter_mut().try_for_each(|state| state.grow(groups))
            }
            TableKeys::Hashed(hashed) => {
                hashed.restart();
                Ok(())
            }
            TableKeys::Ordered(ordered) => {
                ordered.restart();
                Ok(())
            }
            TableKeys::One { rows } => {
                *rows = false;
                Ok(())
            }
            TableKeys::Encoded(encoded) => {
                encoded.restart();
                Ok(())
            }
        }
    }

    /// Adds a block of rows by their words. If a word is outside of a dense table's range, it adds nothing and returns
    /// false.
    pub(super) fn update_words(
        &mut self,
        words: &[u64],
        values: &[ValueBlock<'_>],
    ) -> Result<bool, PlacementError> {
        let before = match &mut self.keys {
            TableKeys::Dense(dense) => {
                if !dense.find(words, &mut self.ids) {
                    return Ok(false);
                }
                0
            }
            TableKeys::Hashed(hashed) => {
                let before = hashed.groups();
                hashed.find(words, &mut self.ids)?;
                before
            }
            TableKeys::One { .. } | TableKeys::Ordered(_) | TableKeys::Encoded(_) => {
                unreachable!("rows with words come to tables of words")
            }
        };
        self.update(before, values)?;
        Ok(true)
    }

    /// Adds a block of grouped rows.
    pub(super) fn update_runs(
        &mut self,
        words: &[u64],
        values: &[ValueBlock<'_>],
    ) -> Result<(), PlacementError> {
        let before = match &mut self.keys {
            TableKeys::Ordered(ordered) => {
                let before = ordered.groups();
                ordered.find(words, &mut self.ids)?;
                before
            }
            _ => unreachable!("runs come to a table of runs"),
        };
        self.update(before, values)
    }

    /// Adds rows without keys.
    pub(super) fn update_all(
        &mut self,
        rows: usize,
        values: &[ValueBlock<'_>],
    ) -> Result<(), PlacementError> {
        let before = match &mut self.keys {
            TableKeys::One { rows: any } => usize::from(std::mem::replace(any, *any || rows > 0)),
            _ => unreachable!("rows without keys come to a table of one group"),
        };
        self.ids.all_of(0, rows);
        self.update(before, values)
    }

    /// Adds rows by their encoded keys.
    pub(super) fn update_encoded(
        &mut self,
        keys: &impl EncodedKeys,
        values: &[ValueBlock<'_>],
    ) -> Result<(), PlacementError> {
        let before = match &mut self.keys {
            TableKeys::Encoded(encoded) => {
                let before = encoded.groups();
                encoded.find(keys, &mut self.ids)?;
                before
            }
            _ => unreachable!("encoded rows come to tables of encoded keys"),
        };
        self.update(before, values)
    }

    fn update(&mut self, before: usize, values: &[ValueBlock<'_>]) -> Result<(), PlacementError> {
        let nothing = ValueBlock { values: LaneValues::Int(&[]), valid: None };
        let by = if self.ids.groups() * 8 > CACHED_BYTES { self.prefetch } else { 0 };
        for (state, takes) in self.states.iter_mut().zip(&self.takes) {
            state.grow(self.ids.groups())?;
            let block = values.get(*takes).copied().unwrap_or(nothing);
            let touched = self.keys.touched(before);
            state.update(&self.ids, block, touched, by)?;
        }
        if let TableKeys::Dense(dense) = &mut self.keys {
            dense.mark(&self.ids);
        }
        Ok(())
    }

    /// Home node of its memory.
    pub(super) fn home(&self) -> Option<NodeId> {
        self.home
    }

    /// Whether its groups are the words of a range.
    pub(super) fn is_dense(&self) -> bool {
        matches!(self.keys, TableKeys::Dense(_))
    }

    /// Number of groups, or the maximum.
    pub(super) fn groups(&self) -> usize {
        match &self.keys {
            TableKeys::One { rows } => usize::from(*rows),
            TableKeys::Dense(dense) => dense.groups(),
            TableKeys::Hashed(hashed) => hashed.groups(),
            TableKeys::Ordered(ordered) => ordered.groups(),
            TableKeys::Encoded(encoded) => encoded.groups(),
        }
    }

    /// Bytes of encoded keys.
    pub(super) fn key_bytes(&self) -> usize {
        match &self.keys {
            TableKeys::Encoded(encoded) => encoded.key_bytes(),
            _ => 0,
        }
    }

    /// Groups that have rows.
    pub(super) fn chosen(&self) -> Vec<u32> {
        match &self.keys {
            TableKeys::Dense(dense) => dense.chosen(),
            _ => (0..self.groups() as u32).collect(),
        }
    }

    /// The result rows of these groups.
    pub(super) fn batch(
        &self,
        plan: &AggregatePlan,
        packing: Option<&Packing>,
        chosen: &[u32],
    ) -> Result<RecordBatch, PrimitiveError> {
        let keys: Vec<ArrayRef> = match &self.keys {
            TableKeys::One { .. } => Vec::new(),
            TableKeys::Encoded(encoded) => encoded.columns(chosen)?,
            _ => unpack(packing, &self.words(chosen))?,
        };
        plan.batch(keys, &self.states, chosen, (&self.arena, self.home))
    }
}

/// Key columns of words.
fn unpack(packing: Option<&Packing>, words: &[u64]) -> Result<Vec<ArrayRef>, PrimitiveError> {
    match packing {
        Some(packing) => packing.unpack(words),
        None => unreachable!("tables of words have packed keys"),
    }
}
