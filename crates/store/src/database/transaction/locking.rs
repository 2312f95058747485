//! Locks that a session asks for, and what of a table changed since its statement began.

use crate::database::error::{ConcurrentChange, TransactionError, describe_circle, describe_lock};
use crate::database::options::{Isolation, LockWait, Written};
use crate::database::version::StoredTable;
use crate::ids::{RowId, TableId};
use crate::lock::{Deadlock, LockMode, LockTarget};

use super::{Result, Transaction};

/// What `SELECT … FOR UPDATE` came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockedRows {
    /// These rows are locked and are as the statement read them; `SKIP LOCKED` left out others.
    Locked(Vec<RowId>),
    /// Rows that were locked were changed since the statement began: see [`Written::Stale`].
    Stale,
}

impl Transaction {
    /// Locks rows: exclusive for `FOR UPDATE`, shared for `FOR SHARE`.
    pub async fn lock_rows(
        &mut self,
        table: TableId,
        mut rows: Vec<RowId>,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<LockedRows> {
        self.check_writable("SELECT FOR UPDATE")?;
        self.lock(LockTarget::Table(table), LockMode::Shared).await?;
        rows.sort_unstable();
        rows.dedup();
        let mut locked = Vec::with_capacity(rows.len());
        for row in rows {
            let target = LockTarget::Row(table, row);
            match wait {
                LockWait::Wait => self.lock(target, mode).await?,
                LockWait::NoWait => self.lock_now(target, mode)?,
                LockWait::SkipLocked if !self.locks.try_lock(target, mode) => continue,
                LockWait::SkipLocked => {}
            }
            locked.push(row);
        }
        Ok(match self.compare(table, locked.iter().copied())? {
            Written::Done => LockedRows::Locked(locked),
            Written::Stale => LockedRows::Stale,
        })
    }

    /// Locks a table: shared with those that change rows of it, or alone.
    pub async fn lock_table(
        &mut self,
        table: TableId,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<()> {
        let target = LockTarget::Table(table);
        match wait {
            LockWait::Wait => self.lock(target, mode).await,
            LockWait::NoWait | LockWait::SkipLocked => self.lock_now(target, mode),
        }
    }

    pub(super) async fn lock(&mut self, target: LockTarget, mode: LockMode) -> Result<()> {
        match self.locks.lock(target, mode).await {
            Ok(()) => Ok(()),
            Err(circle) => Err(self.deadlock(circle)),
        }
    }

    fn lock_now(&mut self, target: LockTarget, mode: LockMode) -> Result<()> {
        if self.locks.try_lock(target, mode) {
            return Ok(());
        }
        let what = describe_lock(&target, |table| self.name_of(table));
        Err(TransactionError::LockNotAvailable { what })
    }

    fn deadlock(&self, circle: Deadlock) -> TransactionError {
        let detail = describe_circle(&circle, |table| self.name_of(table));
        TransactionError::Deadlock { circle, detail }
    }

    /// The name of a table in messages.
    pub(super) fn name_of(&self, table: TableId) -> String {
        let newest = self.database.newest();
        let base = self.base.as_ref().and_then(|base| base.table_name(table));
        let name = newest.table_name(table).or(base).map(|name| name.name.to_string());
        name.unwrap_or_else(|| format!("table {table}"))
    }

    /// Whether rows are as the statement read them, now that they are locked.
    pub(super) fn compare(
        &mut self,
        table: TableId,
        mut rows: impl Iterator<Item = RowId>,
    ) -> Result<Written> {
        let newest = self.read_newest();
        let Some(base) = self.base.clone() else { return Ok(Written::Done) };
        let (before, now) = match (base.tables.get(&table), newest.tables.get(&table)) {
            (Some(before), Some(now)) => (before, now),
            // The transaction created it.
            (None, None) => return Ok(Written::Done),
            (None, Some(_)) => return self.stale(ConcurrentChange::Update),
            (Some(before), None) => return Err(dropped(before)),
        };
        if before.changed == now.changed {
            return Ok(Written::Done);
        }
        let (before, now) = (&before.version, &now.version);
        if before.definition() != now.definition() {
            return self.stale(ConcurrentChange::Update);
        }
        match rows.find(|row| !before.same_row(now, *row)) {
            None => Ok(Written::Done),
            Some(row) if now.has(row) => self.stale(ConcurrentChange::Update),
            Some(_) => self.stale(ConcurrentChange::Delete),
        }
    }

    /// What becomes of a statement whose rows were changed meanwhile.
    pub(super) fn stale(&self, change: ConcurrentChange) -> Result<Written> {
        match self.options.isolation {
            Isolation::ReadCommitted => Ok(Written::Stale),
            Isolation::RepeatableRead => Err(TransactionError::Serialization(change)),
        }
    }
}

fn dropped(table: &StoredTable) -> TransactionError {
    TransactionError::UndefinedRelation { name: table.name.name.to_string() }
}
