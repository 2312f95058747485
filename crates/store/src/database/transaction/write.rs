//! Changes of rows. First come the locks: the table shared and each row and key, or the table exclusively; then, with
//! the locks held, checks against the newest version: rows are as the statement read them, keys are free.
//! A change that passes cannot be refused when it commits.

use std::sync::Arc;

use super::own::OwnBase;
use super::references::{NoActions, ReferenceWork, ReferentialActions};
use super::{Result, Transaction};
use crate::change::ChangeStep;
use crate::database::error::TransactionError;
use crate::database::options::{LockScope, Written};
use crate::database::version::DatabaseVersion;
use crate::ids::{RowId, TableId};
use crate::lock::{LockMode, LockTarget};
use crate::table::{Key, TableChange, TableVersion};
use crate::workers::OneThread;

/// A change of more rows or keys than this locks the table: a lock for each would take longer than the
/// change.
pub(super) const ROWS_LOCKED_MAX: usize = 10_000;

/// The effect of a change on the newest version.
pub(super) struct MadeChange {
    pub(super) newest: Arc<DatabaseVersion>,
    pub(super) own: Arc<DatabaseVersion>,
    pub(super) before: Arc<TableVersion>,
    pub(super) after: Arc<TableVersion>,
}

impl Transaction {
    /// Changes rows of a table as the statement begun by [`statement`](Self::statement) found them.
    pub async fn write(
        &mut self,
        table: TableId,
        change: TableChange,
        scope: LockScope,
    ) -> Result<Written> {
        self.write_with(table, change, scope, Some(&NoActions)).await
    }

    /// The same with `actions` for foreign keys that change rows; without, foreign keys are not checked: for
    /// the same rows with different columns.
    pub async fn write_with(
        &mut self,
        table: TableId,
        mut change: TableChange,
        scope: LockScope,
        actions: Option<&dyn ReferentialActions>,
    ) -> Result<Written> {
        self.check_writable("a change of rows")?;
        if change.is_empty() {
            return Ok(Written::Done);
        }
        let is_whole = scope == LockScope::Table || self.needs_table(table, &change);
        let rows = changed_rows(&change);
        self.lock_change(table, &rows, is_whole).await?;
        let newest = self.read_newest();
        let replaced = change.replaced.iter().flat_map(|chunk| chunk.ids.iter());
        if self.compare(&newest, table, rows.into_iter().chain(replaced))? == Written::Stale {
            return Ok(Written::Stale);
        }
        self.check_parts(table, &mut change, &newest)?;
        if change.is_empty() {
            return Ok(Written::Done);
        }
        let has_keys = !change.is_apart_from_keys();
        if !is_whole && has_keys {
            self.lock_changed_keys(table, &change, &newest).await?;
        }
        let follows = actions.is_some() && self.has_references(&newest, table, &change)?;
        if self.own.is_empty() && change.is_row_by_row() && change.rows() == 1 && !follows {
            if has_keys {
                self.check_row(table, &change)?;
            }
            self.own.push(ChangeStep::Table(table, change));
            return Ok(Written::Done);
        }
        let made = self.make(table, &mut change)?;
        self.check_keys(table, &change, &made)?;
        let mut work = ReferenceWork::default();
        if follows {
            self.collect_references(table, &change, &made, &mut work)?;
        }
        let undo = (!work.is_empty()).then(|| self.own.begin_level());
        let mut after = (*made.own).clone();
        after.set_table(table, made.after, made.newest.next_epoch());
        self.keep(ChangeStep::Table(table, change), &made.newest, after)?;
        let (Some(undo), Some(actions)) = (undo, actions) else { return Ok(Written::Done) };
        let followed = self.follow_references(work, actions).await;
        match followed {
            Ok(Written::Done) => self.own.merge_to(undo),
            Ok(Written::Stale) | Err(_) => self.own.undo_to(undo),
        }
        followed
    }

    /// Checks a change of one row, the first of the transaction, against existing rows: the version after it is made
    /// on demand, which for a commit is only once.
    fn check_row(&mut self, table: TableId, change: &TableChange) -> Result<()> {
        let newest = self.read_newest();
        let Some(before) = newest.table(table) else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        self.check_new_rows(table, change, before)
    }

    /// Whether a change locks its whole table.
    fn needs_table(&self, table: TableId, change: &TableChange) -> bool {
        let has_uniques = || {
            let newest = self.database.newest();
            newest.table(table).is_some_and(|table| !table.definition().uniques.is_empty())
        };
        let rows = change.inserted.len() + change.updated.len() + change.deleted.len() as usize;
        change.truncated
            || !change.replaced.is_empty()
            || (rows > ROWS_LOCKED_MAX && (rows > change.inserted.len() || has_uniques()))
            || (!change.appended.is_empty() && has_uniques())
    }

    async fn lock_change(&mut self, table: TableId, rows: &[RowId], is_whole: bool) -> Result<()> {
        if is_whole {
            return self.lock(LockTarget::Table(table), LockMode::Exclusive).await;
        }
        self.lock(LockTarget::Table(table), LockMode::Shared).await?;
        for row in rows {
            self.lock(LockTarget::Row(table, *row), LockMode::Exclusive).await?;
        }
        Ok(())
    }

    /// The table before and after the change, on the newest version.
    pub(super) fn make(&mut self, table: TableId, change: &mut TableChange) -> Result<MadeChange> {
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let Some(before) = own.table(table).cloned() else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        before.ready_keys(change, &OneThread)?;
        let after = Arc::new(before.apply(change)?);
        Ok(MadeChange { newest, own, before, after })
    }

    /// The rows that an inserting statement conflicts with: for each key the row that has it. The keys
    /// are locked, so that none is added or removed until the transaction ends. The rows are those that
    /// [`statement`](Self::statement) returns now; their other columns may change until they are locked.
    pub async fn find_conflicts(
        &mut self,
        table: TableId,
        unique: usize,
        keys: &[Option<Key>],
    ) -> Result<Vec<Option<RowId>>> {
        self.check_writable("INSERT")?;
        self.lock_keys(table, unique, keys).await?;
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let Some(version) = own.table(table) else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        let found = rows_with(version, unique, keys);
        // A repeatable read must not act on rows that it does not see; a read committed statement
        // sees them as they are now.
        self.compare(&newest, table, found.iter().flatten().copied()).map(|_| found)
    }

    /// Locks keys, existing or not: each key, or the table.
    async fn lock_keys(
        &mut self,
        table: TableId,
        unique: usize,
        keys: &[Option<Key>],
    ) -> Result<()> {
        if keys.len() > ROWS_LOCKED_MAX {
            return self.lock(LockTarget::Table(table), LockMode::Exclusive).await;
        }
        self.lock(LockTarget::Table(table), LockMode::Shared).await?;
        let keys = keys.iter().flatten();
        let mut targets: Vec<_> = keys.map(|key| key_target(table, unique, key)).collect();
        targets.sort_unstable();
        for target in targets {
            self.lock(target, LockMode::Exclusive).await?;
        }
        Ok(())
    }
}

/// The rows that a change updates or deletes, one by one, in order.
pub(super) fn changed_rows(change: &TableChange) -> Vec<RowId> {
    let deleted = change.deleted.iter().map(RowId::new);
    let mut rows: Vec<RowId> = deleted.chain(change.updated.keys().copied()).collect();
    rows.sort_unstable();
    rows
}

/// For each key the row that has it. They are looked up in hash order, which is the order of the index.
fn rows_with(table: &TableVersion, unique: usize, keys: &[Option<Key>]) -> Vec<Option<RowId>> {
    let keys_there = keys.iter().enumerate().filter_map(|(at, key)| Some((at, key.as_ref()?)));
    let mut by_hash: Vec<(u64, usize, &Key)> =
        keys_there.map(|(at, key)| (key.hash64(), at, key)).collect();
    by_hash.sort_unstable_by_key(|(hash, at, _)| (*hash, *at));
    let mut found = vec![None; keys.len()];
    for (_, at, key) in by_hash {
        found[at] = table.find(unique, key);
    }
    found
}

/// The lock of a key.
pub(super) fn key_target(table: TableId, unique: usize, key: &Key) -> LockTarget {
    LockTarget::Key { table, unique: unique as u32, hash: key.hash64() }
}
