//! A database: the memory, the workers and the tables that its sessions share.

mod directory;
mod elastic;
mod folding;
mod pools;
mod recovery;
mod writers;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_placement::{Arena, ArenaOptions, Strategy};
use atoll_runtime::{Runtime, WorkerId};
use atoll_store::backup::BackupReport;
use atoll_store::checkpoint::CheckpointReport;
use atoll_store::database::{
    Database as StoreDatabase, Durability, EndingTransaction, StoreEnvironment,
};
use atoll_store::open::{OpenProgress, OpenReport};
use atoll_store::table::{Chunk, TableChange};
use atoll_store::{ChunkFileId, TableId};
use atoll_topology::{Bytes, Fact, Knowledge, Machine};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, exec_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, TrackConsumersPool};

use crate::activity::Activity;
use crate::advisory::AdvisoryLocks;
use crate::notifications::{AnnouncedCommit, Notifications};
use crate::shared_transaction::SharedTransaction;
use atoll_sql_common::error::{SqlState, transaction_error};
use atoll_sql_common::extensions::Extensions;
use atoll_sql_common::offload::PlanningPlaces;
use atoll_sql_exec::admission::Admission;
use atoll_sql_exec::memory::{self, Gauge, PoolBudget, SharedPool};
use atoll_sql_parse::parse::expect_bodies;
use directory::DataDirectory;
use folding::FoldSignal;
pub(crate) use pools::{PoolReport, Pools, Workers};
pub(crate) use writers::FileJob;

/// The options of a database.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Limit for tables and queries together.
    pub memory_limit: Bytes,
    /// Memory limit for all statements of a client's session together, until `SET atoll.session_memory` says otherwise;
    /// `None` for no limit.
    pub session_memory: Option<Bytes>,
    /// Directory for spilled data, created if it is missing; the files in it have no names.
    pub spill_directory: Option<PathBuf>,
    /// Whether SQL may name files (`SELECT … FROM 'file'`, `COPY`): for a local shell only.
    pub files: bool,
    /// Where new tables put their chunks, until `SET atoll.placement` says otherwise.
    pub placement: Strategy,
    /// Whether a placement that the kernel refuses is an error instead of a recorded fallback.
    pub strict: bool,
    /// Directory that keeps the data; `None` for a database in memory.
    pub directory: Option<PathBuf>,
    /// Whether damaged parts of the directory are skipped instead of refused; the rest is read-only.
    pub salvage: bool,
    /// Called now and then with the progress of opening the directory, if that takes longer than a second.
    pub on_recovery: Option<fn(&OpenProgress)>,
    /// Known facts about the machine beyond its structure, for `atoll.facts` and similar tables.
    pub facts: Vec<Fact>,
    /// Returns the bytes that this process allocated without a home, such as
    /// [`heap_allocated`](atoll_placement::heap_allocated). With it the limit covers what queries
    /// allocate, without it only what they reserve.
    pub heap: Option<fn() -> Bytes>,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            memory_limit: Bytes(u64::MAX >> 1),
            session_memory: None,
            spill_directory: None,
            files: true,
            placement: Strategy::Aligned,
            strict: false,
            directory: None,
            salvage: false,
            on_recovery: None,
            facts: Vec::new(),
            heap: None,
        }
    }
}

/// A database. Clones share it.
#[derive(Clone)]
pub struct Database(Arc<DatabaseParts>);

struct DatabaseParts {
    options: DatabaseOptions,
    pools: Pools,
    arena: Arena,
    knowledge: Arc<Knowledge>,
    /// Memory limit for tables and queries of all sessions together, and its users.
    limit: usize,
    gauge: Arc<Gauge>,
    pool: Arc<dyn MemoryPool>,
    /// Before the store: makes a last checkpoint of it when both are dropped.
    directory: Option<DataDirectory>,
    store: Arc<StoreDatabase>,
    started: Instant,
    folding: FoldSignal,
    activity: Activity,
    advisory: Arc<AdvisoryLocks>,
    notifications: Arc<Notifications>,
    planning: PlanningPlaces,
    admission: Admission,
    /// Of the modules above.
    extensions: Extensions,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the directory of the options, or makes a database in memory, without what its sessions need:
    /// [`start`](Self::start) adds that.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn open(runtime: Runtime, options: DatabaseOptions) -> Result<Self> {
        let limit = usize::try_from(options.memory_limit.0).unwrap_or(usize::MAX);
        let top = NonZeroUsize::new(5).unwrap_or(NonZeroUsize::MIN);
        let gauge = Arc::new(Gauge::new(limit, options.heap));
        let shares = SharedPool::new(limit, Arc::clone(&gauge));
        let pool: Arc<dyn MemoryPool> = Arc::new(TrackConsumersPool::new(shares, top));
        let budget = Arc::new(PoolBudget::new(&pool, &gauge));
        let kept_max = memory::kept_max(runtime.machine(), options.memory_limit);
        let arena = Arena::with_options(
            Arc::clone(runtime.machine()),
            Arc::clone(runtime.kernel()),
            Some(budget as _),
            ArenaOptions { strict: options.strict, kept_max },
        );
        let machine = Machine::clone(runtime.machine());
        let knowledge = Arc::new(Knowledge { machine, facts: options.facts.clone() });
        let pools = Pools::new(runtime.clone(), arena.clone(), Arc::clone(&knowledge));
        let environment =
            StoreEnvironment { machine: Arc::clone(runtime.machine()), arena: arena.clone() };
        let (store, directory) = match &options.directory {
            Some(path) => {
                let (store, directory) =
                    DataDirectory::open(path, environment, &runtime, &options)?;
                (store, Some(directory))
            }
            None => (StoreDatabase::in_memory(environment), None),
        };
        if store.newest().relations().any(|(name, _)| name.name.ends_with("()")) {
            expect_bodies();
        }
        let (planning, admission) = (
            PlanningPlaces::for_workers(runtime.worker_count()),
            Admission::for_cores(runtime.machine().cores.len()),
        );
        let parts = DatabaseParts {
            options,
            pools,
            arena,
            knowledge,
            limit,
            gauge,
            pool,
            store,
            directory,
            started: Instant::now(),
            folding: FoldSignal::default(),
            activity: Activity::default(),
            advisory: Arc::default(),
            notifications: Arc::default(),
            planning,
            admission,
            extensions: Extensions::default(),
        };
        let rows = MemoryConsumer::new("rows outside of chunks and indexes of tables");
        parts.folding.start(&runtime, &parts.store, rows.register(&parts.pool));
        Ok(Self(Arc::new(parts)))
    }

    /// The report of opening its directory; `None` for a database in memory.
    pub fn open_report(&self) -> Option<&OpenReport> {
        self.0.directory.as_ref().map(DataDirectory::report)
    }

    /// Makes a checkpoint now and returns its report. `None` for a database in memory.
    ///
    /// # Errors
    /// If it cannot be written; the last one remains.
    pub async fn checkpoint(&self) -> Result<Option<CheckpointReport>> {
        match &self.0.directory {
            Some(directory) => directory.checkpoint().await.map(Some),
            None => Ok(None),
        }
    }

    /// Copies all committed data into a new directory, which opens as a database.
    ///
    /// # Errors
    /// If the directory exists already or cannot be written, and for a database in memory.
    pub async fn backup(&self, to: PathBuf) -> Result<BackupReport> {
        match &self.0.directory {
            Some(directory) => directory.backup(to).await,
            None => Err(SqlState::FEATURE_NOT_SUPPORTED.error(
                "the database is in memory, so there are no files to copy; EXPORT DATABASE TO 'directory' writes its \
                 tables",
            )),
        }
    }

    /// Its directory; `None` for a database in memory.
    pub fn directory(&self) -> Option<&Path> {
        self.0.directory.as_ref().map(DataDirectory::path)
    }

    /// Log position up to which its last checkpoint covers all changes.
    pub(crate) fn checkpoint_position(&self) -> Option<u64> {
        self.0.directory.as_ref().map(DataDirectory::checkpoint_position)
    }

    /// Log position up to which all is on disk, in the log or in a checkpoint; `None` for a database in memory.
    pub(crate) fn durable_position(&self) -> Option<u64> {
        let synced = self.store().synced().0;
        Some(self.checkpoint_position()?.max(synced))
    }

    /// Sets what committed transactions survive.
    pub(crate) async fn set_durability(&self, durability: Durability) -> Result<()> {
        match &self.0.directory {
            Some(directory) => directory.set_durability(self.store(), durability).await,
            None => exec_err!(
                "the database is in memory, so commits cannot be durable; open one with \
                 --data DIR"
            ),
        }
    }

    /// Begins to write a chunk of a change to its file, if there is a directory.
    pub(crate) fn write_chunk(
        &self,
        table: TableId,
        columns: &SchemaRef,
        chunk: &Arc<Chunk>,
    ) -> Option<FileJob<ChunkFileId>> {
        let is_kept = !table.is_temporary() && !self.store().is_read_only();
        let directory = self.0.directory.as_ref().filter(|_| is_kept);
        directory.map(|directory| directory.write_chunk(chunk, columns))
    }

    /// Writes the chunks of a change to their files, if there is a directory.
    pub(crate) async fn write_chunks(
        &self,
        table: TableId,
        columns: &SchemaRef,
        change: &mut TableChange,
    ) -> Result<()> {
        match self.0.directory.as_ref().filter(|_| !table.is_temporary()) {
            Some(directory) => directory.write_chunks(columns, change).await,
            None => Ok(()),
        }
    }

    /// Time since it was opened.
    pub(crate) fn age(&self) -> Duration {
        self.0.started.elapsed()
    }

    /// The store: names, tables and transactions.
    pub(crate) fn store(&self) -> &Arc<StoreDatabase> {
        &self.0.store
    }

    /// Commits; what was read and written is then as durable as the setting requires.
    pub(crate) async fn commit(&self, transaction: &SharedTransaction) -> Result<()> {
        let announced = transaction.take_announcements().map(|announcements| {
            let threads = self.runtime().handle_of(WorkerId(0));
            AnnouncedCommit::new(announcements, &self.0.notifications, &self.0.store, threads)
        });
        transaction.commit(announced).await?;
        self.0.folding.raise();
        Ok(())
    }

    /// COMMIT PREPARED or ROLLBACK PREPARED.
    pub(crate) async fn end_prepared(
        &self,
        ending: EndingTransaction,
        commits: bool,
    ) -> Result<()> {
        ending.end(commits).await.map_err(transaction_error)?;
        self.0.folding.raise();
        Ok(())
    }

    /// The workers on all cores; statements run on those of their session's pool.
    pub fn runtime(&self) -> &Runtime {
        self.0.pools.all().runtime()
    }

    pub(crate) fn pools(&self) -> &Pools {
        &self.0.pools
    }

    /// The memory of tables.
    pub fn arena(&self) -> &Arena {
        &self.0.arena
    }

    /// The sessions of its clients.
    pub fn activity(&self) -> &Activity {
        &self.0.activity
    }

    /// The advisory locks of its sessions.
    pub(crate) fn advisory(&self) -> &Arc<AdvisoryLocks> {
        &self.0.advisory
    }

    /// The listeners among its sessions.
    pub(crate) fn notifications(&self) -> &Arc<Notifications> {
        &self.0.notifications
    }

    /// Limits how many statements are planned at a time.
    pub(crate) fn planning(&self) -> &PlanningPlaces {
        &self.0.planning
    }

    /// Limits which statements run at the same time.
    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// A value that a module above keeps here, one of each type; `make` makes it on first use.
    ///
    /// # Errors
    /// The errors of `make`.
    pub(crate) fn extension<T: Send + Sync + 'static, E>(
        &self,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        self.0.extensions.get_or_try_init(make)
    }

    pub(crate) fn options(&self) -> &DatabaseOptions {
        &self.0.options
    }

    /// The machine and the facts known about it.
    pub fn knowledge(&self) -> &Arc<Knowledge> {
        &self.0.knowledge
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    pub(crate) fn gauge(&self) -> &Arc<Gauge> {
        &self.0.gauge
    }

    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.0.pool
    }
}
