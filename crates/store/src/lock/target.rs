//! Lock targets and lock modes.

use std::fmt;

use crate::ids::{RowId, SequenceId, TableId};

/// A transaction, from its beginning to its end. The id is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The target of a lock. Keys and names are locked by their hashes: two with the same hash wait for each other,
/// which is slower but not wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockTarget {
    /// Committing: exclusively while commits are paused, for the length of a call.
    Commits,
    /// The name of a schema or of an object in one.
    Name(u64),
    /// A sequence, for transactions that alter it.
    Sequence(SequenceId),
    /// The values of a sequence that are logged ahead, for the length of a call.
    SequenceAhead(SequenceId),
    /// A table: shared by transactions that change its rows, exclusive for changes of the whole table.
    Table(TableId),
    /// A key of a unique constraint, existing or not: shared by those that refer to its row.
    Key {
        /// The table.
        table: TableId,
        /// Number of the constraint among the table's unique constraints.
        unique: u32,
        /// Hash of the key.
        hash: u64,
    },
    /// A row of a table.
    Row(TableId, RowId),
}

impl LockTarget {
    /// The table of the lock, if it is on a table or a part of one.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Self::Table(table) | Self::Key { table, .. } | Self::Row(table, _) => Some(*table),
            Self::Commits | Self::Name(_) | Self::Sequence(_) | Self::SequenceAhead(_) => None,
        }
    }
}

/// A lock mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// Together with others.
    Shared,
    /// Exclusively.
    Exclusive,
}
