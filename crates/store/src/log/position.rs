//! Places in the log.

use std::fmt;

/// A place in the log: how many bytes of records lie before it since the log was created. The position
/// of a record is the one behind it: when the log is synced up to there, the record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Where a new log begins.
    pub const START: Self = Self(0);

    /// The position this many bytes behind.
    pub(super) fn after(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
