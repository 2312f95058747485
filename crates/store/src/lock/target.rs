//! What can be locked, and how.

use std::fmt;

use crate::ids::{RowId, SequenceId, TableId};

/// A transaction, from its beginning to its end. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a lock is on. Keys and names are locked by their hashes: two that share one wait for each other,
/// which is slower but not wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockTarget {
    /// Committing: alone by what holds commits back, for the length of a call.
    Commits,
    /// The name of a schema or of something in one.
    Name(u64),
    /// A sequence, for those that alter it.
    Sequence(SequenceId),
    /// What the log says ahead of a sequence, for the length of a call.
    SequenceAhead(SequenceId),
    /// A table: shared by all that change rows of it, exclusive for what changes it as a whole.
    Table(TableId),
    /// A key that a unique constraint allows once, there or not: shared by those that refer to its row.
    Key {
        /// The table.
        table: TableId,
        /// Number of the constraint among the table's unique ones.
        unique: u32,
        /// Hash of the key.
        hash: u64,
    },
    /// A row of a table.
    Row(TableId, RowId),
}

impl LockTarget {
    /// The table that the lock is on, or on a part of.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Self::Table(table) | Self::Key { table, .. } | Self::Row(table, _) => Some(*table),
            Self::Commits | Self::Name(_) | Self::Sequence(_) | Self::SequenceAhead(_) => None,
        }
    }
}

/// How something is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Together with others that share it.
    Shared,
    /// Alone.
    Exclusive,
}
