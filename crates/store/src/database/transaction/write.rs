//! Changes of rows. First the locks: the table shared and each row and key, or the table alone; then, with
//! them held, a look at the newest version: are the rows as the statement read them, are the keys free.
//! What is kept then cannot be refused any more when it commits.

use std::sync::Arc;

use super::own::OwnBase;
use super::unique::{check_keys, check_new_rows};
use super::{Result, Transaction};
use crate::database::change::ChangeStep;
use crate::database::error::TransactionError;
use crate::database::options::{LockScope, Written};
use crate::database::version::DatabaseVersion;
use crate::ids::{RowId, TableId};
use crate::lock::{LockMode, LockTarget};
use crate::table::{Key, TableChange, TableVersion};
use crate::workers::OneThread;

/// A change of more rows than this locks the table: a lock for each would take longer than the change.
const ROWS_LOCKED_MAX: usize = 10_000;

/// What a change makes of the newest version.
pub(super) struct MadeChange {
    newest: Arc<DatabaseVersion>,
    own: Arc<DatabaseVersion>,
    pub(super) before: Arc<TableVersion>,
    pub(super) after: Arc<TableVersion>,
}

impl Transaction {
    /// Changes rows of a table as the statement that [`statement`](Self::statement) began found them.
    pub async fn write(
        &mut self,
        table: TableId,
        mut change: TableChange,
        scope: LockScope,
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
        let has_keys = !change.is_apart_from_keys();
        if !is_whole && has_keys {
            self.lock_changed_keys(table, &change, &newest).await?;
        }
        if self.own.is_empty() && change.is_row_by_row() && change.rows() == 1 {
            if has_keys {
                self.check_row(table, &change)?;
            }
            self.own.push(ChangeStep::Table(table, change));
            return Ok(Written::Done);
        }
        let made = self.make(table, &mut change)?;
        check_keys(&change, &made)?;
        let mut after = (*made.own).clone();
        after.set_table(table, made.after, made.newest.next_epoch());
        self.keep(ChangeStep::Table(table, change), &made.newest, after)?;
        Ok(Written::Done)
    }

    /// Checks a change of one row, the first of the transaction, on what is there: the version after it is made
    /// when something asks for it, which a commit alone does once.
    fn check_row(&mut self, table: TableId, change: &TableChange) -> Result<()> {
        let newest = self.read_newest();
        let Some(before) = newest.table(table) else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        check_new_rows(change, before)
    }

    /// Whether a change locks its table as a whole.
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
    fn make(&mut self, table: TableId, change: &mut TableChange) -> Result<MadeChange> {
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let Some(before) = own.table(table).cloned() else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        before.ready_keys(change, &OneThread)?;
        let after = Arc::new(before.apply(change)?);
        Ok(MadeChange { newest, own, before, after })
    }

    /// The rows that a statement which inserts is in conflict with: of each key the row that has it. The keys
    /// are locked, so that none of them comes or goes until the transaction ends. The rows are those that
    /// [`statement`](Self::statement) gives now; their other columns may change until they are locked.
    pub async fn find_conflicts(
        &mut self,
        table: TableId,
        unique: usize,
        keys: &[Option<Key>],
    ) -> Result<Vec<Option<RowId>>> {
        self.check_writable("INSERT")?;
        self.lock(LockTarget::Table(table), LockMode::Shared).await?;
        let keys_there = keys.iter().flatten();
        let mut targets: Vec<_> = keys_there.map(|key| key_target(table, unique, key)).collect();
        targets.sort_unstable();
        for target in targets {
            self.lock(target, LockMode::Exclusive).await?;
        }
        let newest = self.read_newest();
        let own = self.own.on(OwnBase::Newest, &newest, &self.database.environment)?;
        let Some(version) = own.table(table) else {
            return Err(TransactionError::UndefinedRelation { name: self.name_of(table) });
        };
        let find = |key: &Option<Key>| version.find(unique, key.as_ref()?);
        let found: Vec<Option<RowId>> = keys.iter().map(find).collect();
        // A repeatable read must not act on rows that it does not see; a statement that reads what is
        // committed looks at them as they are now.
        self.compare(&newest, table, found.iter().flatten().copied()).map(|_| found)
    }
}

/// The rows that a change gives other values or none, one by one, in order.
fn changed_rows(change: &TableChange) -> Vec<RowId> {
    let deleted = change.deleted.iter().map(RowId::new);
    let mut rows: Vec<RowId> = deleted.chain(change.updated.keys().copied()).collect();
    rows.sort_unstable();
    rows
}

/// The lock of a key.
pub(super) fn key_target(table: TableId, unique: usize, key: &Key) -> LockTarget {
    LockTarget::Key { table, unique: unique as u32, hash: key.hash64() }
}
