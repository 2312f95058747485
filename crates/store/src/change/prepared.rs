//! Transactions that PREPARE TRANSACTION has left to COMMIT PREPARED or ROLLBACK PREPARED.

use std::sync::Arc;

use super::DatabaseChange;
use crate::ids::{RowId, SequenceId, TableId};
use crate::lock::LockMode;

/// A prepared transaction: it is part of the database until it ends.
#[derive(Debug)]
pub struct PreparedTransaction {
    /// The role that prepared it.
    pub owner: Arc<str>,
    /// When it was prepared: microseconds since 1970-01-01 in UTC.
    pub prepared_at: i64,
    /// Its changes.
    pub change: DatabaseChange,
    /// Its locks, to be taken again when the database is opened. Those of names follow from the changes.
    pub locks: Vec<KeptLock>,
}

/// A lock of a prepared transaction, as it is kept over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptLock {
    /// Of a table. A lock of a key is kept as an exclusive one of its table, because hashes of keys differ between
    /// processes.
    Table(TableId, LockMode),
    /// Of a row.
    Row(TableId, RowId, LockMode),
    /// Of a sequence that it alters.
    Sequence(SequenceId),
}
