//! Locks that a session requests, and changes of a table since its statement began.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use crate::change::RelationName;
use crate::database::error::{ConcurrentChange, TransactionError, describe_circle, describe_lock};
use crate::database::options::{LockWait, Written};
use crate::database::version::{DatabaseVersion, StoredTable};
use crate::ids::{RowId, TableId};
use crate::lock::{Deadlock, LockMode, LockRequest, LockTarget};

use super::{Result, Transaction};

/// The result of `SELECT … FOR UPDATE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockedRows {
    /// These rows are locked and are as the statement read them; `SKIP LOCKED` left out others.
    Locked(Vec<RowId>),
    /// Locked rows were changed since the statement began: see [`Written::Stale`].
    Stale,
}

/// The lock timeout: makes a future that is ready when a wait that begins now times out.
#[derive(Clone)]
pub struct LockPatience(Arc<dyn Fn() -> LockDeadline + Send + Sync>);

/// Ready when a wait for a lock times out.
pub type LockDeadline = Pin<Box<dyn Future<Output = ()> + Send>>;

impl LockPatience {
    /// Waits until what this makes is ready.
    pub fn new(deadline: impl Fn() -> LockDeadline + Send + Sync + 'static) -> Self {
        Self(Arc::new(deadline))
    }
}

impl fmt::Debug for LockPatience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockPatience")
    }
}

impl Transaction {
    /// Makes waits for locks time out with [`TransactionError::LockTimeout`]. By default they do not.
    pub fn set_lock_patience(&mut self, patience: LockPatience) {
        self.patience = Some(patience);
    }

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
        // A transaction that holds a table's lock exclusively holds those of all its rows.
        let has_all = self.locks.holds(&LockTarget::Table(table), LockMode::Exclusive);
        let mut locked = Vec::with_capacity(rows.len());
        for row in rows {
            if has_all {
                locked.push(row);
                continue;
            }
            let target = LockTarget::Row(table, row);
            match wait {
                LockWait::Wait => self.lock(target, mode).await?,
                LockWait::NoWait => self.lock_now(target, mode)?,
                LockWait::SkipLocked if !self.locks.try_lock(target, mode) => continue,
                LockWait::SkipLocked => {}
            }
            locked.push(row);
        }
        let newest = self.read_newest();
        Ok(match self.compare(&newest, table, locked.iter().copied())? {
            Written::Done => LockedRows::Locked(locked),
            Written::Stale => LockedRows::Stale,
        })
    }

    /// Locks a table: shared with transactions that change its rows, or exclusively.
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
        match patient(self.locks.lock(target, mode), self.patience.as_ref()).await {
            Some(Ok(())) => Ok(()),
            Some(Err(circle)) => Err(self.deadlock(circle)),
            None => Err(TransactionError::LockTimeout { what: self.describe(&target) }),
        }
    }

    fn describe(&self, target: &LockTarget) -> String {
        describe_lock(target, |table| self.name_of(table))
    }

    fn lock_now(&mut self, target: LockTarget, mode: LockMode) -> Result<()> {
        if self.locks.try_lock(target, mode) {
            return Ok(());
        }
        Err(TransactionError::LockNotAvailable { what: self.describe(&target) })
    }

    fn deadlock(&self, circle: Deadlock) -> TransactionError {
        let detail = describe_circle(&circle, |table| self.name_of(table));
        TransactionError::Deadlock { circle, detail }
    }

    /// The name of a table in messages.
    pub(super) fn name_of(&self, table: TableId) -> String {
        let name = self.full_name_of(table).map(|name| name.name.to_string());
        name.unwrap_or_else(|| format!("table {table}"))
    }

    fn full_name_of(&self, table: TableId) -> Option<RelationName> {
        let own = self.own.known().and_then(|own| own.table_name(table));
        let base = || self.base.as_ref().and_then(|base| base.table_name(table));
        let newest = self.database.newest();
        own.or_else(|| newest.table_name(table)).or_else(base).cloned()
    }

    /// The schema of a table, in messages.
    pub(super) fn schema_of(&self, table: TableId) -> String {
        self.full_name_of(table).map_or_else(String::new, |name| name.schema.to_string())
    }

    /// An error about a constraint of a table with the schema of that.
    pub(super) fn with_schema(
        &self,
        table: TableId,
        mut error: TransactionError,
    ) -> TransactionError {
        if let TransactionError::UniqueViolation { schema, .. } = &mut error {
            *schema = self.schema_of(table);
        }
        error
    }

    /// Whether locked rows are, in the newest version, as the statement read them.
    pub(super) fn compare(
        &self,
        newest: &DatabaseVersion,
        table: TableId,
        mut rows: impl Iterator<Item = RowId>,
    ) -> Result<Written> {
        let Some(base) = &self.base else { return Ok(Written::Done) };
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

    /// The result of a statement whose rows were changed meanwhile.
    pub(super) fn stale(&self, change: ConcurrentChange) -> Result<Written> {
        match self.options.isolation.is_repeatable() {
            false => Ok(Written::Stale),
            true => Err(TransactionError::Serialization(change)),
        }
    }
}

/// Waits for a lock. Returns None if the wait times out first.
async fn patient(
    request: LockRequest<'_>,
    patience: Option<&LockPatience>,
) -> Option<std::result::Result<(), Deadlock>> {
    let mut request = pin!(request);
    let mut deadline = None;
    let wait = poll_fn(|context| {
        if let Poll::Ready(answer) = request.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        let Some(patience) = patience else { return Poll::Pending };
        let deadline = deadline.get_or_insert_with(|| (patience.0)());
        deadline.as_mut().poll(context).map(|()| None)
    });
    wait.await
}

fn dropped(table: &StoredTable) -> TransactionError {
    TransactionError::UndefinedRelation { name: table.name.name.to_string() }
}
