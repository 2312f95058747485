//! How transactions run.

use std::time::Duration;

use crate::ids::Epoch;
use crate::log::Position;

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each statement sees what was committed before it began; a statement that finds a row changed
    /// meanwhile waits and runs again.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the first one: snapshot isolation. Changing a row that was
    /// changed meanwhile is refused.
    RepeatableRead,
    /// The same, and a transaction that changes something commits only if no other one has changed the tables that it
    /// read since it began: all serializable transactions have the results that they would have one after the other.
    Serializable,
}

impl Isolation {
    /// Whether all statements of a transaction see the same version of the database.
    pub fn is_repeatable(self) -> bool {
        match self {
            Self::ReadCommitted => false,
            Self::RepeatableRead | Self::Serializable => true,
        }
    }
}

/// How a transaction runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// Whether it is read-only.
    pub read_only: bool,
    /// The number of its session, which identifies it to others; 0 for none.
    pub session: u32,
    /// When it began, by the caller's clock; only for [`Database::snapshots`](super::Database::snapshots).
    pub begun: Duration,
}

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A power cut: the commit is acknowledged when its record is on disk.
    #[default]
    Fsync,
    /// A power cut after a fraction of a second: its record is written and synced soon.
    Async,
    /// Only what the next checkpoint saves: no record is written.
    Off,
}

/// What to do if another transaction holds a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockWait {
    /// Wait for it.
    #[default]
    Wait,
    /// `NOWAIT`: refuse the statement.
    NoWait,
    /// `SKIP LOCKED`: skip the row.
    SkipLocked,
}

/// What a change locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockScope {
    /// The rows and keys that it changes, while they are few; else the table.
    #[default]
    Rows,
    /// The table.
    Table,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a change of rows that were changed meanwhile is not made"]
pub enum Written {
    /// The change is part of the transaction.
    Done,
    /// Another transaction changed the rows, or the table, since the statement began: run the statement
    /// again on the result of [`Transaction::statement`](super::Transaction::statement), and plan it
    /// again if the definition of the table has changed. The locks are kept, so that it makes progress.
    Stale,
}

/// A commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Number of commits up to this one, or up to the last one seen if it changed nothing.
    pub epoch: Epoch,
    /// Position of its record in the log.
    pub position: Position,
}
