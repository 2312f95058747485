//! The database as one value: all names, tables and sequences in a [`DatabaseVersion`] that never changes,
//! and transactions whose [`DatabaseChange`]s make the next one.
//!
//! ```text
//! Transaction ── statement: a version to read ── write: locks, looks at the newest version, keeps the change
//!      │
//!      └─ commit ─▶ room in the log ─▶ sequencer: next version, record ─▶ locks fall ─▶ record synced ─▶ reply
//!                                          │                                              │
//!                                          └── newest()                                   └── published()
//! ```
//!
//! Readers keep the version that they read and never wait. Writers read the newest version, which may be
//! ahead of the disk: their answers wait until the log is synced up to it
//! ([`Transaction::settled`]), so no answer shows what a power cut could undo. Without a data directory
//! there is no log; everything else is the same.
//!
//! | file | what |
//! |---|---|
//! | `values.rs` | the values that sequences give |
//! | `version.rs` | the contents of a database at one moment |
//! | `apply.rs` | the version after a change |
//! | `versions.rs` | the newest version, and the newest that is on disk |
//! | `sequencer.rs`, `log.rs` | the order of commits, and their records |
//! | `transaction/` | what sessions do |
//! | `prepared.rs` | two-phase commit |
//! | `sessions.rs` | which transactions are open |

mod apply;
mod error;
mod log;
mod options;
mod prepared;
mod sequencer;
mod sessions;
mod transaction;
mod values;
mod version;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::ids::{SequenceId, TableId};
use crate::lock::{LockEntry, LockManager, TransactionId};
use crate::log::{GroupCommit, LogError, LogStatistics, Position};
use crate::table::{TableError, TableVersion};
use prepared::{PreparedLocks, recovered_locks};
use sequencer::{CurrentDurability, Sequencer};
use sessions::OpenTransactions;
use values::SequenceValues;
use versions::Versions;

use crate::change::temporary_schema;
pub use crate::change::{
    CatalogChange, ChangeStep, DatabaseChange, KeptLock, PreparedTransaction, Relation,
    RelationName, SequenceDefinition, SequenceState, StoredStatement, is_temporary_schema,
};
pub use apply::ApplyError;
pub use error::{ConcurrentChange, ForeignKeyViolation, ReferenceFault, TransactionError};
pub use log::PausedCommits;
pub use options::{
    Committed, Durability, Isolation, LockScope, LockWait, TransactionOptions, Written,
};
pub use prepared::{EndingTransaction, PREPARED_MAX, PreparedError};
pub use sessions::{LockInfo, SnapshotInfo};
pub use transaction::{
    ActionRows, LockDeadline, LockPatience, LockedRows, NoActions, ReferentialActions,
    SavepointMark, Transaction, TransactionReads,
};
pub use version::{DatabaseContents, DatabaseNames, DatabaseVersion, StoreEnvironment};

/// A database that sessions share.
#[derive(Debug)]
pub struct Database {
    environment: StoreEnvironment,
    versions: Versions,
    sequencer: Mutex<Sequencer>,
    durability: CurrentDurability,
    log: Option<GroupCommit>,
    locks: Arc<LockManager>,
    open: OpenTransactions,
    prepared: PreparedLocks,
    values: SequenceValues,
    next_transaction: AtomicU64,
    next_table: AtomicU64,
    next_sequence: AtomicU64,
    /// Of temporary tables, sequences and their schemas.
    next_temporary: AtomicU64,
    /// Whether every transaction is read-only.
    is_read_only: bool,
}

impl Database {
    /// A database that continues from a version; without a log its contents are lost when the process ends.
    pub fn start(
        version: DatabaseVersion,
        environment: StoreEnvironment,
        log: Option<GroupCommit>,
    ) -> Arc<Self> {
        Arc::new(Self::new(version, environment, log))
    }

    /// A database whose transactions only read.
    pub fn reading(version: DatabaseVersion, environment: StoreEnvironment) -> Arc<Self> {
        Arc::new(Self { is_read_only: true, ..Self::new(version, environment, None) })
    }

    fn new(
        version: DatabaseVersion,
        environment: StoreEnvironment,
        log: Option<GroupCommit>,
    ) -> Self {
        let next_table = AtomicU64::new(version.next_table.get());
        let next_sequence = AtomicU64::new(version.next_sequence.get());
        let locks = Arc::default();
        let mut next_transaction = 1;
        let prepared = recovered_locks(&version, &locks, || {
            next_transaction += 1;
            TransactionId(next_transaction - 1)
        });
        Self {
            environment,
            versions: Versions::new(version),
            sequencer: Mutex::default(),
            durability: CurrentDurability::default(),
            log,
            locks,
            prepared,
            open: OpenTransactions::default(),
            values: SequenceValues::default(),
            next_transaction: AtomicU64::new(next_transaction),
            next_table,
            next_sequence,
            next_temporary: AtomicU64::new(1),
            is_read_only: false,
        }
    }

    /// An empty database without a data directory, with the schema `public`.
    pub fn in_memory(environment: StoreEnvironment) -> Arc<Self> {
        Self::start(DatabaseVersion::with_schemas(["public".into()]), environment, None)
    }

    /// Where tables put their rows.
    pub fn environment(&self) -> &StoreEnvironment {
        &self.environment
    }

    /// Whether every transaction is read-only.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Begins a transaction. Dropping it rolls it back.
    pub fn begin(self: &Arc<Self>, mut options: TransactionOptions) -> Transaction {
        options.read_only |= self.is_read_only;
        let id = TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed));
        Transaction::new(Arc::clone(self), id, options)
    }

    /// The newest version whose commits are as durable as requested.
    pub fn published(&self) -> Arc<DatabaseVersion> {
        self.versions.published(|| self.synced())
    }

    /// Publishes the versions that are on disk. Otherwise older versions would keep their memory until a session
    /// reads.
    fn show_synced(&self) {
        drop(self.published());
    }

    /// The newest version: its commits are ordered, on disk or not.
    pub fn newest(&self) -> Arc<DatabaseVersion> {
        self.versions.newest()
    }

    /// Position up to which the log is on disk.
    pub fn synced(&self) -> Position {
        self.log.as_ref().map_or(Position::START, |log| log.synced())
    }

    /// Waits until the log is on disk up to a position of a version.
    pub async fn sync_to(&self, position: Position) -> Result<(), TransactionError> {
        let Some(log) = &self.log else { return Ok(()) };
        if position > log.synced() {
            log.sync_to(position)?.await?;
        }
        Ok(())
    }

    /// Blocks the thread, which is not a worker, until the log is on disk up to a position of a version.
    pub(crate) fn wait_for_log(&self, position: Position) -> Result<(), LogError> {
        match &self.log {
            Some(log) if position > log.synced() => log.sync_to(position)?.wait().map(drop),
            _ => Ok(()),
        }
    }

    /// Statistics of the log since the start. Returns None without a log.
    pub fn log_statistics(&self) -> Option<LogStatistics> {
        self.log.as_ref().map(|log| log.statistics())
    }

    /// The open transactions and the versions that they keep alive, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.open.list(&self.newest())
    }

    /// How many tables, rows, keys and names are locked.
    pub fn locked(&self) -> usize {
        self.locks.count()
    }

    /// Holders of and waiters for locks, by target.
    pub fn locks(&self) -> Vec<LockInfo> {
        let of_session =
            |entry: LockEntry| LockInfo { entry, session: self.open.session_of(entry.transaction) };
        self.locks.list().into_iter().map(of_session).collect()
    }

    /// An id for a new table of a schema.
    pub fn new_table_id(&self, schema: &str) -> TableId {
        match is_temporary_schema(schema) {
            true => TableId::temporary(self.next_temporary.fetch_add(1, Ordering::Relaxed)),
            false => TableId::new(self.next_table.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// An id for a new sequence of a schema.
    pub fn new_sequence_id(&self, schema: &str) -> SequenceId {
        match is_temporary_schema(schema) {
            true => SequenceId::temporary(self.next_temporary.fetch_add(1, Ordering::Relaxed)),
            false => SequenceId::new(self.next_sequence.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Replaces the newest version of a table with one that holds the same rows: `fold` makes it
    /// from the newest one. Has no effect if the table no longer exists.
    pub fn publish_fold(
        &self,
        table: TableId,
        fold: impl FnOnce(&TableVersion) -> Result<TableVersion, TableError>,
    ) -> Result<(), TransactionError> {
        let sequencer = self.sequencer.lock();
        let newest = self.newest();
        let Some(stored) = newest.tables.get(&table) else { return Ok(()) };
        let mut next = (*newest).clone();
        next.set_table(table, Arc::new(fold(&stored.version)?), stored.changed);
        let old = self.versions.push(Arc::new(next), self.is_shown_at_once());
        drop(sequencer);
        drop((old, newest));
        self.show_synced();
        Ok(())
    }

    /// A new name for the schema of one session's temporary objects. The schema is created like others, and
    /// [`forget_schema`](Self::forget_schema) removes it.
    pub fn new_temporary_schema(&self) -> Arc<str> {
        temporary_schema(self.next_temporary.fetch_add(1, Ordering::Relaxed))
    }

    /// Removes the schema of a session that has ended, with all its objects, at once: no other session reads it.
    pub fn forget_schema(&self, schema: &Arc<str>) {
        if !self.newest().has_schema(schema) {
            return;
        }
        let sequencer = self.sequencer.lock();
        let newest = self.newest();
        let mut next = (*newest).clone();
        next.forget_schema(schema);
        let old = self.versions.push(Arc::new(next), self.is_shown_at_once());
        drop(sequencer);
        drop((old, newest));
        self.show_synced();
    }

    fn is_shown_at_once(&self) -> bool {
        self.durability() != Durability::Fsync
    }

    /// What acknowledged commits survive.
    pub fn durability(&self) -> Durability {
        match self.log {
            Some(_) => self.durability.get(),
            None => Durability::Off,
        }
    }

    /// Sets what acknowledged commits survive from now on. What was acknowledged before survives it too when
    /// this returns. The way back from [`Durability::Off`] is [`pause_commits`](Self::pause_commits).
    pub async fn set_durability(&self, durability: Durability) -> Result<(), TransactionError> {
        if self.log.is_some() {
            self.change_durability(durability)?;
            self.sync_to(self.newest().position()).await?;
        }
        Ok(())
    }

    fn change_durability(&self, durability: Durability) -> Result<(), TransactionError> {
        let sequencer = self.sequencer.lock();
        if self.durability.get() == Durability::Off && durability != Durability::Off {
            return Err(TransactionError::CheckpointFirst);
        }
        self.durability.set(durability, &sequencer);
        if durability != Durability::Fsync {
            self.versions.publish_all();
        }
        Ok(())
    }

    /// An id for a call that locks outside of transactions.
    fn new_call(&self) -> TransactionId {
        TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }
}
