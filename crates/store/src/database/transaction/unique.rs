//! Keys that PRIMARY KEY and UNIQUE constraints allow once.
//!
//! A transaction locks each key that it brings into a table or takes out of it. So with the lock of a key,
//! the newest version says whether it is there until the transaction ends.

use std::sync::Arc;

use super::write::{MadeChange, key_target};
use super::{Result, Transaction};
use crate::database::error::TransactionError;
use crate::ids::{RowId, TableId};
use crate::lock::{LockMode, LockTarget};
use crate::table::{Key, TableChange, TableVersion, Unique};

/// A key that a change brings into a table, or takes out of it.
struct ChangedKey {
    unique: usize,
    row: RowId,
    key: Key,
    is_new: bool,
}

impl Transaction {
    /// Looks for rows with the keys that a change brings. False where the version that it was made on is
    /// not the newest one any more when the keys are locked: it is to be made again.
    pub(super) async fn check_keys(
        &mut self,
        table: TableId,
        change: &TableChange,
        made: &MadeChange,
        is_whole: bool,
    ) -> Result<bool> {
        let after = &made.after;
        let keys = changed_keys(change, &made.before, after);
        if !is_whole && !keys.is_empty() {
            let is_new = self.lock_keys(table, &keys).await?;
            if is_new && !Arc::ptr_eq(&made.newest, &self.database.newest()) {
                return Ok(false);
            }
        }
        match first_duplicate(&keys, after) {
            Some(new) => {
                let unique = &after.definition().uniques[new.unique];
                Err(violation(after, unique, &new.key))
            }
            None => Ok(true),
        }
    }

    /// Locks keys; whether one of them was not locked before.
    async fn lock_keys(&mut self, table: TableId, keys: &[ChangedKey]) -> Result<bool> {
        let count = self.locks.count();
        let target = |changed: &ChangedKey| key_target(table, changed.unique, &changed.key);
        let mut targets: Vec<LockTarget> = keys.iter().map(target).collect();
        targets.sort_unstable();
        for target in targets {
            self.lock(target, LockMode::Exclusive).await?;
        }
        Ok(self.locks.count() > count)
    }
}

/// The keys that rows of a change have only before or only after it.
fn changed_keys(
    change: &TableChange,
    before: &TableVersion,
    after: &TableVersion,
) -> Vec<ChangedKey> {
    let mut keys = Vec::new();
    for (unique, constraint) in after.definition().uniques.iter().enumerate() {
        let columns = &constraint.columns;
        let changed =
            |row, key: Option<Key>, is_new| key.map(|key| ChangedKey { unique, row, key, is_new });
        let appended = change.appended.iter().flat_map(|chunk| {
            let ids = chunk.ids();
            (0..ids.count()).map(move |at| ids.at(at))
        });
        for row in change.inserted.keys().copied().chain(appended) {
            keys.extend(changed(row, after.key_of(row, columns), true));
        }
        let replaced = change.replaced.iter().flat_map(|chunk| chunk.ids.iter());
        for row in change.updated.keys().copied().chain(replaced) {
            let (old, new) = (before.key_of(row, columns), after.key_of(row, columns));
            if old != new {
                keys.extend(changed(row, old, false));
                keys.extend(changed(row, new, true));
            }
        }
        for row in change.deleted.iter().map(RowId::new) {
            keys.extend(changed(row, before.key_of(row, columns), false));
        }
    }
    keys
}

/// The first new key that another row has too.
fn first_duplicate<'k>(keys: &'k [ChangedKey], after: &TableVersion) -> Option<&'k ChangedKey> {
    let is_duplicate = |new: &&ChangedKey| {
        let mut rows = after.find_all(new.unique, &new.key);
        new.is_new && rows.any(|row| row != new.row)
    };
    keys.iter().find(is_duplicate)
}

fn violation(table: &TableVersion, unique: &Unique, key: &Key) -> TransactionError {
    TransactionError::UniqueViolation {
        table: table.name().to_string(),
        constraint: unique.name.to_string(),
        key: table.codec().describe_key(key, &unique.columns),
    }
}
