//! What a serializable transaction has read, for the check when it commits (backward validation: Härder, "Observations
//! on Optimistic Concurrency Control Schemes", Information Systems 9(2), 1984).
//!
//! Commits are ordered one after the other. A transaction that changes something has read one version, and commits if
//! what it read is in the newest version as it was in its own: then it could have run as a whole at that moment. A
//! transaction that changes nothing could have run when its version was the newest one.
//!
//! It has read whole tables, or the row that a unique key finds, which may be none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Result, Transaction};
use crate::database::error::TransactionError;
use crate::database::version::DatabaseVersion;
use crate::ids::TableId;
use crate::table::Key;

/// More keys than this count as the whole table: commits wait for the check.
const KEYS_MAX: usize = 10_000;

/// What a transaction has read. Clones are of the same transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionReads(Arc<Mutex<BTreeMap<TableId, TableReads>>>);

/// What it has read of one table.
#[derive(Debug)]
enum TableReads {
    Whole,
    /// Keys, each with the number of its unique constraint.
    Keys(BTreeSet<(usize, Key)>),
}

impl TransactionReads {
    /// Notes that rows of a table are read, or that there are none.
    pub fn note_table(&self, table: TableId) {
        self.0.lock().insert(table, TableReads::Whole);
    }

    /// Notes that the row with a key of a unique constraint is read, or that there is none.
    pub fn note_key(&self, table: TableId, unique: usize, key: &Key) {
        let mut tables = self.0.lock();
        let reads = tables.entry(table).or_insert_with(|| TableReads::Keys(BTreeSet::new()));
        if let TableReads::Keys(keys) = reads {
            keys.insert((unique, key.clone()));
            if keys.len() > KEYS_MAX {
                *reads = TableReads::Whole;
            }
        }
    }

    /// Refuses to commit if others have changed what was read in `base`.
    pub(super) fn check(&self, base: &DatabaseVersion, newest: &DatabaseVersion) -> Result<()> {
        let tables = self.0.lock();
        match tables.iter().all(|(table, reads)| reads.is_same(*table, base, newest)) {
            true => Ok(()),
            false => Err(TransactionError::ReadChanged),
        }
    }
}

impl TableReads {
    /// Whether what was read is the same in two versions.
    fn is_same(&self, table: TableId, base: &DatabaseVersion, newest: &DatabaseVersion) -> bool {
        let (before, now) = match (base.tables.get(&table), newest.tables.get(&table)) {
            (Some(before), Some(now)) => (before, now),
            // A table of the transaction's own is in neither version.
            (before, now) => return before.is_none() && now.is_none(),
        };
        let Self::Keys(keys) = self else { return before.changed == now.changed };
        if before.changed == now.changed {
            return true;
        }
        let (before, now) = (&before.version, &now.version);
        before.definition() == now.definition()
            && keys.iter().all(|(unique, key)| {
                match (before.find(*unique, key), now.find(*unique, key)) {
                    (Some(before_id), Some(now_id)) => {
                        before_id == now_id && before.same_row(now, now_id)
                    }
                    (before_id, now_id) => before_id == now_id,
                }
            })
    }
}

impl Transaction {
    /// What takes notes of what its statements read; `None` unless it is serializable.
    pub fn reads(&self) -> Option<&TransactionReads> {
        self.reads.as_ref()
    }
}
