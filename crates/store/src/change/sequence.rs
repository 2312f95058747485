//! Sequences: numbers that are given once, whether or not the transactions that request them commit.

use std::sync::Arc;

/// Minimum number of values logged ahead: a crash skips at most these, and most calls log nothing.
const LOGGED_AHEAD: u64 = 32;

/// `CREATE SEQUENCE`: how the next value follows from the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceDefinition {
    /// The increment; negative for a descending sequence, never 0.
    pub increment: i64,
    /// The smallest value.
    pub min: i64,
    /// The largest value.
    pub max: i64,
    /// The first value.
    pub start: i64,
    /// Whether it wraps around at its limits.
    pub cycle: bool,
    /// Number of values taken from the log at once, if more than 32.
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
    /// A value such that all up to it may have been given; `None` before the first.
    pub last: Option<i64>,
    /// How often it was altered: values that were logged ahead before an alteration are not given after it.
    pub generation: u64,
}

impl SequenceState {
    /// A sequence that has not given a value yet.
    pub fn new(definition: Arc<SequenceDefinition>) -> Self {
        Self { definition, last: None, generation: 0 }
    }
}

impl SequenceDefinition {
    /// The value after another one, or the first. Returns None if it would exceed the limits.
    pub fn after(&self, last: Option<i64>) -> Option<i64> {
        let Some(last) = last else { return Some(self.start) };
        let next = last.checked_add(self.increment);
        match next.filter(|next| (self.min..=self.max).contains(next)) {
            None if self.cycle && self.increment > 0 => Some(self.min),
            None if self.cycle => Some(self.max),
            next => next,
        }
    }

    /// The value to log ahead, some steps after `from` but within the limits, and the number of values up to
    /// it, itself included.
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
