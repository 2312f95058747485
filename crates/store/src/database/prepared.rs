//! Two-phase commit: PREPARE TRANSACTION leaves a transaction's changes and locks to COMMIT PREPARED or ROLLBACK PREPARED,
//! which any session may say later, also after a restart.
//!
//! The changes are part of the [version](DatabaseVersion) under the transaction's name, so the log and checkpoints keep
//! them; statements do not see them. Its locks are here. A restart takes them again: the locks of rows as they were, a
//! lock of a key as one of its whole table.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::Database;
use super::error::TransactionError;
use super::options::Committed;
use super::transaction::{OwnVersion, locks_of, rebase};
use super::version::DatabaseVersion;
use crate::change::{ChangeStep, DatabaseChange, KeptLock, PreparedTransaction};
use crate::ids::TableId;
use crate::lock::{HeldLocks, LockManager, LockMode, LockTarget, TransactionId};

/// How many transactions may be prepared at a time.
pub const PREPARED_MAX: usize = 1000;

/// Why a statement of two-phase commit is refused, in PostgreSQL's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreparedError {
    /// Another prepared transaction has the name.
    #[error("transaction identifier \"{0}\" is already in use")]
    Duplicate(Arc<str>),
    /// No prepared transaction has the name.
    #[error("prepared transaction with identifier \"{0}\" does not exist")]
    Undefined(Arc<str>),
    /// Another session prepares or ends it.
    #[error("prepared transaction with identifier \"{0}\" is busy")]
    Busy(Arc<str>),
    /// There are [`PREPARED_MAX`].
    #[error("maximum number of prepared transactions reached")]
    TooMany,
    /// The transaction used tables of its session.
    #[error("cannot PREPARE a transaction that has operated on temporary objects")]
    Temporary,
    /// The transaction is serializable: what it has read would have to stay until it ends.
    #[error("cannot PREPARE a SERIALIZABLE transaction")]
    Serializable,
}

impl PreparedError {
    /// The SQLSTATE.
    pub(super) fn sqlstate(&self) -> &'static str {
        match self {
            Self::Duplicate(_) => "42710",
            Self::Undefined(_) => "42704",
            Self::Busy(_) => "55000",
            Self::TooMany => "53200",
            Self::Temporary | Self::Serializable => "0A000",
        }
    }

    /// The hint, if any.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooMany => Some("End some of those that pg_prepared_xacts lists."),
            Self::Serializable => Some("Use REPEATABLE READ."),
            _ => None,
        }
    }
}

/// The locks of prepared transactions, by name; `None` while one is being prepared or ended.
#[derive(Debug, Default)]
pub(super) struct PreparedLocks(Mutex<HashMap<Arc<str>, Option<TransactionLocks>>>);

/// The locks of one transaction. Those of tables that others had locked too when the database was opened are shared.
#[derive(Debug)]
pub(super) struct TransactionLocks {
    own: HeldLocks,
    tables: Vec<Arc<HeldLocks>>,
}

/// The name of a transaction that is being prepared or ended. Dropping it leaves what was there before.
#[derive(Debug)]
pub(super) struct ClaimedName {
    database: Arc<Database>,
    name: Arc<str>,
    locks: Option<TransactionLocks>,
}

impl ClaimedName {
    /// Claims a new name.
    pub(super) fn new(database: &Arc<Database>, name: &Arc<str>) -> Result<Self, PreparedError> {
        let mut all = database.prepared.0.lock();
        if all.contains_key(name) {
            return Err(PreparedError::Duplicate(Arc::clone(name)));
        }
        if all.len() >= PREPARED_MAX {
            return Err(PreparedError::TooMany);
        }
        all.insert(Arc::clone(name), None);
        drop(all);
        Ok(Self { database: Arc::clone(database), name: Arc::clone(name), locks: None })
    }

    /// Keeps the locks of the transaction, which is prepared.
    pub(super) fn keep(mut self, own: HeldLocks) {
        self.locks = Some(TransactionLocks { own, tables: Vec::new() });
    }
}

impl Drop for ClaimedName {
    fn drop(&mut self) {
        let mut all = self.database.prepared.0.lock();
        match self.locks.take() {
            Some(locks) => drop(all.insert(Arc::clone(&self.name), Some(locks))),
            None => drop(all.remove(&self.name)),
        }
    }
}

/// A prepared transaction that a session is about to end. Dropping it leaves it prepared.
#[derive(Debug)]
pub struct EndingTransaction {
    claim: ClaimedName,
    prepared: Arc<PreparedTransaction>,
}

impl Database {
    /// Claims a prepared transaction, to end it.
    ///
    /// # Errors
    /// If no prepared transaction has the name, or another session is ending it.
    pub fn ending(self: &Arc<Self>, name: &str) -> Result<EndingTransaction, TransactionError> {
        if self.is_read_only {
            let statement = "COMMIT PREPARED or ROLLBACK PREPARED".to_owned();
            return Err(TransactionError::ReadOnly { statement });
        }
        let name: Arc<str> = name.into();
        let locks = match self.prepared.0.lock().get_mut(&name) {
            None => return Err(PreparedError::Undefined(name).into()),
            Some(locks) => locks.take().ok_or_else(|| PreparedError::Busy(Arc::clone(&name)))?,
        };
        let claim =
            ClaimedName { database: Arc::clone(self), name: Arc::clone(&name), locks: Some(locks) };
        let newest = self.newest();
        let prepared = newest.prepared().find(|(other, _)| **other == name);
        let Some((_, prepared)) = prepared else {
            return Err(PreparedError::Undefined(name).into());
        };
        Ok(EndingTransaction { claim, prepared: Arc::clone(prepared) })
    }
}

impl EndingTransaction {
    /// The transaction.
    pub fn prepared(&self) -> &PreparedTransaction {
        &self.prepared
    }

    /// COMMIT PREPARED, or ROLLBACK PREPARED. When this returns, it survives as the durability promises; after an
    /// error of the log once it is ordered, that is unknown. Dropping the future before that leaves the transaction
    /// prepared.
    pub async fn end(self, commits: bool) -> Result<Committed, TransactionError> {
        let Self { mut claim, prepared } = self;
        let database = Arc::clone(&claim.database);
        let step = ChangeStep::EndPrepared { name: Arc::clone(&claim.name), commits };
        let steps = if commits { prepared.change.steps.as_slice() } else { &[] };
        // The tables are made before the commit is ordered: others wait for that.
        let base = database.newest();
        let version = rebase(&base, None, steps.iter(), &database.environment)?;
        let made = OwnVersion::new(base, Arc::new(version));
        let make = |newest: &Arc<DatabaseVersion>| -> Result<DatabaseVersion, TransactionError> {
            let mut next = rebase(newest, Some(&made), steps.iter(), &database.environment)?;
            next.forget_prepared(&claim.name)?;
            Ok(next)
        };
        let record = DatabaseChange { steps: vec![step] };
        let ordered = database.order(&record, make, &mut |_| ()).await?;
        drop(made);
        // Its locks fall.
        drop(claim.locks.take());
        drop(claim);
        database.settle_and_sync(ordered).await
    }
}

/// The locks of the transactions that a version holds, taken anew.
pub(super) fn recovered_locks(
    version: &DatabaseVersion,
    manager: &Arc<LockManager>,
    mut new_id: impl FnMut() -> TransactionId,
) -> PreparedLocks {
    let mut modes: BTreeMap<TableId, LockMode> = BTreeMap::new();
    for (_, prepared) in version.prepared() {
        for lock in &prepared.locks {
            if let KeptLock::Table(table, mode) = lock {
                let known = modes.entry(*table).or_insert(*mode);
                *known = (*mode).max(*known);
            }
        }
    }
    let mut held = || HeldLocks::new(Arc::clone(manager), new_id());
    let mut tables = BTreeMap::new();
    for (table, mode) in modes {
        let mut locks = held();
        take(&mut locks, LockTarget::Table(table), mode);
        tables.insert(table, Arc::new(locks));
    }
    let mut all = HashMap::new();
    for (name, prepared) in version.prepared() {
        let mut locks = TransactionLocks { own: held(), tables: Vec::new() };
        for lock in &prepared.locks {
            match lock {
                KeptLock::Table(table, _) => locks.tables.extend(tables.get(table).cloned()),
                KeptLock::Row(table, row, mode) => {
                    take(&mut locks.own, LockTarget::Row(*table, *row), *mode);
                }
                KeptLock::Sequence(sequence) => {
                    take(&mut locks.own, LockTarget::Sequence(*sequence), LockMode::Exclusive);
                }
            }
        }
        for step in &prepared.change.steps {
            let ChangeStep::Catalog(change) = step else { continue };
            for (target, mode) in locks_of(change) {
                take(&mut locks.own, target, mode);
            }
        }
        all.insert(Arc::clone(name), Some(locks));
    }
    PreparedLocks(Mutex::new(all))
}

/// Takes a lock that the transaction held before: no other transaction can hold it.
fn take(locks: &mut HeldLocks, target: LockTarget, mode: LockMode) {
    let is_held = locks.try_lock(target, mode);
    debug_assert!(is_held, "{target:?} is locked while the database is opened");
}

/// The locks as they are kept over a restart.
pub(super) fn kept_locks(held: &HeldLocks) -> Vec<KeptLock> {
    let keep = |(target, mode): (&LockTarget, LockMode)| match *target {
        LockTarget::Table(table) => Some(KeptLock::Table(table, mode)),
        LockTarget::Key { table, .. } => Some(KeptLock::Table(table, LockMode::Exclusive)),
        LockTarget::Row(table, row) => Some(KeptLock::Row(table, row, mode)),
        LockTarget::Sequence(sequence) => Some(KeptLock::Sequence(sequence)),
        LockTarget::Commits | LockTarget::Name(_) | LockTarget::SequenceAhead(_) => None,
    };
    let mut kept: Vec<KeptLock> = held.targets().filter_map(keep).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}
