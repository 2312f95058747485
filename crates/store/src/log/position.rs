//! Positions in the log.

use std::fmt;

/// A position in the log: the number of bytes of records before it since the log was created. The position
/// of a record is the one after it: the record is synced when the log is synced up to there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// The start of a new log.
    pub const START: Self = Self(0);

    /// The position this many bytes later.
    pub(super) fn after(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
