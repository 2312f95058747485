//! The tables that a serializable transaction has read, for the check when it commits (backward validation: Härder,
//! "Observations on Optimistic Concurrency Control Schemes", Information Systems 9(2), 1984).
//!
//! Commits are ordered one after the other. A transaction that changes something has read one version, and commits if
//! the tables that it read are in the newest version as they were in its own: then it could have run as a whole at that
//! moment. A transaction that changes nothing could have run when its version was the newest one.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Result, Transaction};
use crate::database::error::TransactionError;
use crate::database::version::DatabaseVersion;
use crate::ids::{Epoch, TableId};

/// The tables that a transaction has read. Clones are of the same transaction.
#[derive(Clone, Debug, Default)]
pub struct ReadTables(Arc<Mutex<BTreeSet<TableId>>>);

impl ReadTables {
    /// Notes that rows of a table are read, or that there are none.
    pub fn note(&self, table: TableId) {
        self.0.lock().insert(table);
    }

    /// Refuses to commit if others have changed a table that was read in `base`.
    pub(super) fn check(&self, base: &DatabaseVersion, newest: &DatabaseVersion) -> Result<()> {
        // A table of the transaction's own is in neither version.
        let is_same = |table: &TableId| base.changed(*table) == newest.changed(*table);
        match self.0.lock().iter().all(is_same) {
            true => Ok(()),
            false => Err(TransactionError::ReadChanged),
        }
    }
}

impl DatabaseVersion {
    /// The last commit that changed a table; `None` if there is no such table.
    fn changed(&self, table: TableId) -> Option<Epoch> {
        self.tables.get(&table).map(|stored| stored.changed)
    }
}

impl Transaction {
    /// What takes notes of the tables that its statements read; `None` unless it is serializable.
    pub fn reads(&self) -> Option<&ReadTables> {
        self.reads.as_ref()
    }
}
