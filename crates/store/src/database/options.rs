//! How transactions run.

use std::time::Duration;

use crate::ids::Epoch;
use crate::log::Position;

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Each statement sees what was committed before it began; a statement that meets a row that was
    /// changed meanwhile waits and runs again.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the first one: snapshot isolation. To change what was
    /// changed meanwhile is refused.
    RepeatableRead,
}

/// How a transaction runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    /// What it sees of others.
    pub isolation: Isolation,
    /// Whether it must not change anything.
    pub read_only: bool,
    /// The number of the session that it is of, by which others know it; 0 for none.
    pub session: u32,
    /// When it began, by the caller's clock; only for [`Database::snapshots`](super::Database::snapshots).
    pub begun: Duration,
}

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A power cut: it is acknowledged when its record is on disk.
    #[default]
    Fsync,
    /// A power cut after a fraction of a second: its record is written and synced soon.
    Async,
    /// Nothing but the next checkpoint: no record is written.
    Off,
}

/// What to do about a lock that another transaction holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockWait {
    /// Wait for it.
    #[default]
    Wait,
    /// `NOWAIT`: refuse the statement.
    NoWait,
    /// `SKIP LOCKED`: leave the row out.
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

/// What a change came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a change of what was changed meanwhile is not made"]
pub enum Written {
    /// It is part of the transaction.
    Done,
    /// Another transaction changed the rows, or the table, since the statement began: the statement is to
    /// be run again on what [`Transaction::statement`](super::Transaction::statement) gives now, and planned
    /// again where the definition of the table is another one. The locks stay, so that it gets on.
    Stale,
}

/// A commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Number of commits up to this one; of those that were seen where it changed nothing.
    pub epoch: Epoch,
    /// Place of its record in the log.
    pub position: Position,
}
