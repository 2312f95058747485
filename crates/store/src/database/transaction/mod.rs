//! A transaction, from BEGIN to COMMIT.
//!
//! | file | what |
//! |---|---|
//! | `mod.rs` | what a statement reads; commit |
//! | `own.rs` | the transaction's own changes, and versions with them |
//! | `locking.rs` | locks that a session requests |
//! | `write.rs` | changes of rows: locks, conflicts |
//! | `prepare.rs` | PREPARE TRANSACTION |
//! | `parts.rs` | statements of several parts that change rows |
//! | `reads.rs` | what a serializable transaction has read |
//! | `unique.rs` | keys that unique constraints allow once |
//! | `references/` | foreign keys |
//! | `define.rs` | changes of the catalog |
//! | `savepoint.rs` | savepoints |
//! | `sequences.rs` | values of sequences |
//! | `temporary.rs` | `ON COMMIT` of temporary tables |

mod define;
mod locking;
mod own;
mod parts;
mod prepare;
mod reads;
mod references;
mod savepoint;
mod sequences;
mod temporary;
mod unique;
mod write;

use std::sync::Arc;

use super::error::TransactionError;
use super::options::{Committed, Durability, Isolation, TransactionOptions};
use super::version::DatabaseVersion;
use super::{ChangeStep, Database};
use crate::ids::{RowId, TableId};
use crate::lock::{HeldLocks, TransactionId};
use crate::log::{GroupCommit, OpenWriter, Position};
pub(super) use define::locks_of;
use own::{OwnBase, OwnChanges};
pub(super) use own::{OwnVersion, rebase};
use parts::StatementParts;
use references::DeferredChecks;

pub use locking::{LockDeadline, LockPatience, LockedRows};
pub use reads::TransactionReads;
pub use references::{ActionRows, NoActions, ReferentialActions};
use savepoint::NamedSavepoint;
pub use savepoint::SavepointMark;

type Result<T> = std::result::Result<T, TransactionError>;

/// A transaction. Dropping it rolls it back and releases its locks.
#[derive(Debug)]
pub struct Transaction {
    database: Arc<Database>,
    id: TransactionId,
    options: TransactionOptions,
    locks: HeldLocks,
    /// When waits for locks are given up.
    patience: Option<LockPatience>,
    /// What the statement reads, without own changes.
    base: Option<Arc<DatabaseVersion>>,
    own: OwnChanges,
    /// What it has read, if it is serializable.
    reads: Option<TransactionReads>,
    /// Log position up to which it may have read changes that are not on disk.
    read_to: Position,
    savepoints: Vec<NamedSavepoint>,
    /// Foreign key checks deferred to its end.
    deferred: DeferredChecks,
    /// Tables that a statement empties together.
    truncated: Vec<TableId>,
    /// The statement that runs, if it has several parts.
    parts: Option<StatementParts>,
    /// Announces to the log that there will be a record.
    writer: Option<OpenWriter>,
}

impl Transaction {
    pub(super) fn new(
        database: Arc<Database>,
        id: TransactionId,
        options: TransactionOptions,
    ) -> Self {
        database.open.begin(id, options);
        let locks = HeldLocks::new(Arc::clone(&database.locks), id);
        Self {
            database,
            id,
            options,
            locks,
            patience: None,
            base: None,
            own: OwnChanges::new(),
            reads: (options.isolation == Isolation::Serializable).then(TransactionReads::default),
            read_to: Position::START,
            savepoints: Vec::new(),
            deferred: DeferredChecks::default(),
            truncated: Vec::new(),
            parts: None,
            writer: None,
        }
    }

    /// Its number.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// How it runs.
    pub fn options(&self) -> TransactionOptions {
        self.options
    }

    /// How many changes it has made.
    pub fn own_changes(&self) -> usize {
        self.own.steps().count()
    }

    /// How many locks it holds.
    pub fn lock_count(&self) -> usize {
        self.locks.count()
    }

    /// The version that the next statement reads; `writes` for one that changes or locks rows. Under READ COMMITTED it
    /// contains what is committed now, otherwise what was when the first statement began; both with the
    /// transaction's own changes.
    pub fn statement(&mut self, writes: bool) -> Result<Arc<DatabaseVersion>> {
        let base = match &self.base {
            Some(base) if self.options.isolation.is_repeatable() => Arc::clone(base),
            _ => self.committed(writes),
        };
        // All parts of a statement find their rows in the same version.
        let is_new = || self.base.as_ref().is_none_or(|before| !Arc::ptr_eq(before, &base));
        if self.parts.is_none() && is_new() {
            self.database.open.reads(self.id, &base);
            self.base = Some(Arc::clone(&base));
        }
        self.with_own(&base)
    }

    /// A version that the transaction reads, with its own changes.
    fn with_own(&mut self, base: &Arc<DatabaseVersion>) -> Result<Arc<DatabaseVersion>> {
        let which = match self.options.isolation.is_repeatable() {
            false => OwnBase::Newest,
            true => OwnBase::Snapshot,
        };
        Ok(self.own.on(which, base, &self.database.environment)?)
    }

    /// Makes a statement read a version in which its rows were already found, by a scan shared with other statements.
    /// [`write`](Self::write) reports if they changed since. Returns false if the transaction has
    /// changes of its own or repeats its reads: then it reads another version.
    pub fn statement_over(&mut self, found_in: Arc<DatabaseVersion>) -> bool {
        if !self.own.is_empty() || self.options.isolation.is_repeatable() {
            return false;
        }
        self.read_to = self.read_to.max(found_in.position());
        self.database.open.reads(self.id, &found_in);
        self.base = Some(found_in);
        true
    }

    /// What a new statement sees of others. What it was shown before, it goes on seeing.
    fn committed(&mut self, writes: bool) -> Arc<DatabaseVersion> {
        if !writes && self.own.is_empty() {
            let published = self.database.published();
            if published.position() >= self.read_to {
                return published;
            }
        }
        self.read_newest()
    }

    /// The newest version; the transaction's answers wait for its sync.
    fn read_newest(&mut self) -> Arc<DatabaseVersion> {
        let newest = self.database.newest();
        self.read_to = self.read_to.max(newest.position());
        newest
    }

    /// Waits until everything that the transaction has read is on disk, if commits are durable. No result of a
    /// statement may be returned before, not even an error such as a duplicate key.
    pub async fn settled(&self) -> Result<()> {
        match self.database.durability() {
            Durability::Fsync => self.database.sync_to(self.read_to).await,
            Durability::Async | Durability::Off => Ok(()),
        }
    }

    /// Whether a row is on disk as the statement read it, own changes aside: an answer that depends on no other row
    /// needs not be [`settled`](Self::settled).
    pub fn is_settled_row(&self, table: TableId, row: RowId) -> bool {
        if self.database.durability() != Durability::Fsync {
            return true;
        }
        let Some(base) = &self.base else { return false };
        let published = self.database.published();
        match (published.tables.get(&table), base.tables.get(&table)) {
            (Some(on_disk), Some(read)) => {
                let (on_disk, read) = (&on_disk.version, &read.version);
                on_disk.definition() == read.definition() && on_disk.same_row(read, row)
            }
            _ => false,
        }
    }

    fn check_writable(&self, statement: &str) -> Result<()> {
        match self.options.read_only {
            true => Err(TransactionError::ReadOnly { statement: statement.to_owned() }),
            false => Ok(()),
        }
    }

    /// Keeps a step that leads from a version on the newest one to the next.
    fn keep(
        &mut self,
        step: ChangeStep,
        newest: &Arc<DatabaseVersion>,
        after: DatabaseVersion,
    ) -> Result<()> {
        let snapshot = self
            .base
            .clone()
            .filter(|base| self.options.isolation.is_repeatable() && !Arc::ptr_eq(base, newest));
        let after = Arc::new(after);
        let environment = &self.database.environment;
        let read = match &snapshot {
            Some(base) => {
                let mut read = (*self.own.on(OwnBase::Snapshot, base, environment)?).clone();
                read.apply_step(&step, environment)?;
                Arc::new(read)
            }
            None => Arc::clone(&after),
        };
        let has_record = !step.is_temporary() && self.database.durability() == Durability::Fsync;
        if self.writer.is_none() && has_record {
            self.writer = self.database.log.as_ref().map(GroupCommit::open_writer);
        }
        self.own.push(step);
        self.own.set(OwnBase::Newest, newest, &after);
        self.own.set(OwnBase::Snapshot, snapshot.as_ref().unwrap_or(newest), &read);
        Ok(())
    }

    /// Makes the changes part of the database. When this returns, they survive as the durability
    /// promises. After an error of the log once the commit is ordered, it is unknown whether they do.
    ///
    /// Dropping the future before the changes have their position in the log rolls them back; after that they
    /// are committed.
    pub async fn commit(self) -> Result<Committed> {
        self.commit_with(&mut |_| ()).await
    }

    /// Commits, and calls `on_order` with the commit's position in the log once it is certain unless the log fails.
    /// Calls of several transactions are in the order of their commits. A transaction without changes has no place in
    /// that order, and no call.
    pub async fn commit_with(
        mut self,
        on_order: &mut (dyn FnMut(Position) + Send),
    ) -> Result<Committed> {
        if self.own.is_empty() {
            self.locks.release_all();
            self.settled().await?;
            let epoch = self.database.published().epoch();
            return Ok(Committed { epoch, position: self.read_to });
        }
        self.check_deferred().await?;
        self.end_temporary()?;
        let finished = std::mem::replace(&mut self.own, OwnChanges::new()).finish();
        let database = Arc::clone(&self.database);
        let read = self.reads.take().zip(self.base.clone());
        let make = |newest: &Arc<DatabaseVersion>| -> Result<DatabaseVersion> {
            if let Some((reads, base)) = &read {
                reads.check(base, newest)?;
            }
            Ok(finished.on(newest, &database.environment)?)
        };
        let ordered = database.order(&finished.change, make, on_order).await?;
        self.locks.release_all();
        drop((self, finished));
        database.settle(ordered).await
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.database.open.end(self.id);
    }
}
