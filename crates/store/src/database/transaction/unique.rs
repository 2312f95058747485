//! Keys of PRIMARY KEY and UNIQUE constraints.
//!
//! A transaction locks each key that it adds to a table or removes from it. So with the lock of a key,
//! the newest version decides whether it exists until the transaction ends.

use std::sync::Arc;

use super::own::OwnBase;
use super::write::{MadeChange, key_target};
use super::{Result, Transaction};
use crate::database::error::TransactionError;
use crate::database::version::DatabaseVersion;
use crate::ids::{RowId, TableId};
use crate::lock::{LockMode, LockTarget};
use crate::table::{Key, TableChange, TableVersion, Unique};

/// A key that a change adds to a table or removes from it.
struct ChangedKey {
    unique: usize,
    row: RowId,
    key: Key,
}

impl Transaction {
    /// Locks the keys that a change of single rows adds or removes. Its rows are locked, so their keys stay
    /// as they are in the newest version.
    pub(super) async fn lock_changed_keys(
        &mut self,
        table: TableId,
        change: &TableChange,
        newest: &Arc<DatabaseVersion>,
    ) -> Result<()> {
        let own = self.own.on(OwnBase::Newest, newest, &self.database.environment)?;
        let Some(before) = own.table(table) else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        let keys = row_keys(change, before, WantedKeys::All);
        let target = |changed: &ChangedKey| key_target(table, changed.unique, &changed.key);
        let mut targets: Vec<LockTarget> = keys.iter().map(target).collect();
        targets.sort_unstable();
        for target in targets {
            self.lock(target, LockMode::Exclusive).await?;
        }
        Ok(())
    }

    /// Refuses a change that adds a key of another row, unless the check of the constraint is deferred.
    pub(super) fn check_keys(
        &mut self,
        table: TableId,
        change: &TableChange,
        made: &MadeChange,
    ) -> Result<()> {
        if !change.appended.is_empty() || !change.replaced.is_empty() {
            let after = &made.after;
            for (number, key) in made.before.first_duplicates(change, after)? {
                let unique = &after.definition().uniques[number];
                if !self.deferred.put_off_duplicate(table, unique, None) {
                    return Err(self.with_schema(table, violation(after, unique, &key)));
                }
            }
        }
        self.check_rows(table, &row_keys(change, &made.before, WantedKeys::New), &made.after)
    }

    /// The same for single rows that take no key from each other, checked against the version before them.
    pub(super) fn check_new_rows(
        &mut self,
        table: TableId,
        change: &TableChange,
        before: &TableVersion,
    ) -> Result<()> {
        self.check_rows(table, &row_keys(change, before, WantedKeys::New), before)
    }

    fn check_rows(
        &mut self,
        table: TableId,
        new: &[ChangedKey],
        version: &TableVersion,
    ) -> Result<()> {
        for new in new.iter().filter(|new| has_other_row(new, version)) {
            let unique = &version.definition().uniques[new.unique];
            if !self.deferred.put_off_duplicate(table, unique, Some(&new.key)) {
                return Err(self.with_schema(table, violation(version, unique, &new.key)));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WantedKeys {
    /// Only keys that rows have after a change.
    New,
    /// Also keys that rows have only before it.
    All,
}

/// The keys that single rows of a change have only after it, and optionally those that they have only before it.
fn row_keys(change: &TableChange, before: &TableVersion, wanted: WantedKeys) -> Vec<ChangedKey> {
    let mut keys = Vec::new();
    let gone = |key: Option<Key>| key.filter(|_| wanted == WantedKeys::All);
    for unique in 0..before.definition().uniques.len() {
        let columns = before.key_columns(unique);
        let changed = |row, key: Option<Key>| key.map(|key| ChangedKey { unique, row, key });
        for (id, row) in &change.inserted {
            keys.extend(changed(*id, before.codec().key(row, columns)));
        }
        let updated = change.updated.iter().filter(|_| !change.keeps_keys);
        for (id, row) in updated {
            let (old, new) = (before.key_of(*id, columns), before.codec().key(row, columns));
            if old != new {
                keys.extend(changed(*id, gone(old)));
                keys.extend(changed(*id, new));
            }
        }
        if wanted == WantedKeys::All {
            for id in change.deleted.iter().map(RowId::new) {
                keys.extend(changed(id, before.key_of(id, columns)));
            }
        }
    }
    keys
}

/// Whether another row has a new key too.
fn has_other_row(new: &ChangedKey, table: &TableVersion) -> bool {
    table.find_all(new.unique, &new.key).any(|row| row != new.row)
}

pub(super) fn violation(table: &TableVersion, unique: &Unique, key: &Key) -> TransactionError {
    let codec = table.codec();
    let mut names = codec.names_of(&unique.columns);
    for (name, expression) in names.iter_mut().zip(&unique.expressions) {
        if let Some(expression) = expression {
            *name = &expression.sql;
        }
    }
    TransactionError::UniqueViolation {
        // The transaction adds the name of the table.
        schema: String::new(),
        table: table.name().to_string(),
        constraint: unique.name.to_string(),
        key: match unique.nulls_not_distinct {
            true => codec.describe_key_with_nulls(key, &unique.columns, &names),
            false => codec.describe_key_of(key, &unique.columns, &names),
        },
    }
}
