//! Sequences: numbers that are given once, whatever becomes of the transactions that asked for them.

use std::sync::Arc;

/// How many values are logged ahead at least: a crash skips at most these, and most calls log nothing.
const LOGGED_AHEAD: u64 = 32;

/// `CREATE SEQUENCE`: how the next value follows from the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceDefinition {
    /// From one value to the next; negative for one that falls, never 0.
    pub increment: i64,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// The first value.
    pub start: i64,
    /// Whether it goes on from the other end where it would leave its limits.
    pub cycle: bool,
    /// How many values are taken from the log at once, where that is more than 32.
    pub cache: u32,
}

impl Default for SequenceDefinition {
    fn default() -> Self {
        Self { increment: 1, min: 1, max: i64::MAX, start: 1, cycle: false, cache: 1 }
    }
}

/// A sequence in a version of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceState {
    /// How values follow each other.
    pub definition: Arc<SequenceDefinition>,
    /// A value such that all up to it may have been given; none before the first.
    pub last: Option<i64>,
    /// How often it was altered: values that were logged ahead before are not given after.
    pub generation: u64,
}

impl SequenceState {
    /// A sequence that gave no value yet.
    pub fn new(definition: Arc<SequenceDefinition>) -> Self {
        Self { definition, last: None, generation: 0 }
    }
}

impl SequenceDefinition {
    /// The value after another one, or the first; none where it would leave the limits.
    pub fn after(&self, last: Option<i64>) -> Option<i64> {
        let Some(last) = last else { return Some(self.start) };
        let next = last.checked_add(self.increment);
        match next.filter(|next| (self.min..=self.max).contains(next)) {
            None if self.cycle && self.increment > 0 => Some(self.min),
            None if self.cycle => Some(self.max),
            next => next,
        }
    }

    /// What is logged ahead: the value some steps after one without leaving the limits, and how many values
    /// that are, both among them.
    pub fn ahead(&self, from: i64) -> (i64, u64) {
        let steps = i128::from(LOGGED_AHEAD.max(u64::from(self.cache)));
        let room = match self.increment > 0 {
            true => i128::from(self.max) - i128::from(from),
            false => i128::from(from) - i128::from(self.min),
        };
        let size = i128::from(self.increment).abs().max(1);
        let steps = steps.min(room.max(0) / size);
        let ahead = i128::from(from) + steps * i128::from(self.increment);
        (i64::try_from(ahead).unwrap_or(from), steps as u64 + 1)
    }
}
