//! The data directory of a database: opened with the database, written by threads of its own.
//!
//! | thread | does |
//! |---|---|
//! | `atoll-log` | writes and syncs records, once for all that wait |
//! | `atoll-checkpoint` | makes checkpoints, asked for or because the log is long, and copies them for backups |
//!
//! Workers never wait for a disk: separate threads write the chunks of bulk loads.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use atoll_runtime::{Runtime, WorkerId};
use atoll_store::ChunkFileId;
use atoll_store::backup::{BackupError, BackupReport, BackupTarget};
use atoll_store::checkpoint::CheckpointReport;
use atoll_store::database::{Database as StoreDatabase, Durability, StoreEnvironment};
use atoll_store::durable::DurableDatabase;
use atoll_store::files::LiveFiles;
use atoll_store::log::GroupCommitOptions;
use atoll_store::open::{OpenError, OpenOptions, OpenReport, Opening, RecoveryTask};
use atoll_store::table::{Chunk, TableChange};
use atoll_store::workers::{Workers, map};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use tokio::sync::oneshot;

use super::DatabaseOptions;
use super::recovery::RecoveryTeller;
use super::writers::{FileJob, FileWriters};
use atoll_sql_common::error::SqlState;

/// Log bytes after the last checkpoint that trigger the next one.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// Bytes of unreferenced files that trigger the next checkpoint, which removes them.
const UNUSED_BYTES_MAX: u64 = 256 << 20;

/// Log bytes above which closing makes a checkpoint: above this, replaying records at the next start takes longer.
const CLOSED_LOG_BYTES_MAX: u64 = 4 << 20;

/// How often the length of the log is checked.
const LOOK: Duration = Duration::from_secs(1);

/// How long to wait for a directory that a database of this process holds: its last tasks, which end where they next
/// yield, release it a moment after its last session.
const RELEASE_MAX: Duration = Duration::from_secs(1);

/// What the writer threads do, for errors.
const WRITING: &str = "writing a chunk to its file";

/// Why nothing is written to a directory that was salvaged.
const SALVAGED: &str = "the database was opened with --salvage and can only be read";

/// An open data directory.
pub(crate) struct DataDirectory {
    path: PathBuf,
    /// None if the database is read-only. It ends, with a last checkpoint, before the database is released.
    thread: Option<CheckpointThread>,
    durable: Arc<DurableDatabase>,
    /// Writes files of chunks.
    writers: FileWriters,
}

/// The thread that makes checkpoints, until this is dropped.
struct CheckpointThread {
    requests: Option<mpsc::Sender<DirectoryRequest>>,
    thread: Option<JoinHandle<()>>,
}

/// A request that a statement waits for.
enum DirectoryRequest {
    Checkpoint(oneshot::Sender<Result<CheckpointReport>>),
    /// A copy in a new directory; cancelled when the requester is gone.
    Backup(PathBuf, oneshot::Sender<Result<BackupReport>>),
}

impl fmt::Debug for DataDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataDirectory").field("path", &self.path).finish_non_exhaustive()
    }
}

impl DataDirectory {
    /// Opens the database in a directory, which is created if it is missing or empty; with `salvage`, opens what can be
    /// read of it, read-only.
    pub(super) fn open(
        path: &Path,
        environment: StoreEnvironment,
        runtime: &Runtime,
        DatabaseOptions { salvage, on_recovery, .. }: &DatabaseOptions,
    ) -> Result<(Arc<StoreDatabase>, Self)> {
        let salvage = *salvage;
        let failed = |error: &dyn fmt::Display| not_opened(path, error);
        let not_read = |error: OpenError| match error.is_damage() && !salvage {
            true => failed(&format!("{error}; --salvage opens what of it can be read")),
            false => failed(&error),
        };
        let files = match salvage {
            true => LiveFiles::open(path),
            false => LiveFiles::create(path),
        };
        let files = Arc::new(files.map_err(|error| failed(&error))?);
        let options = OpenOptions { salvage, ..OpenOptions::default() };
        let _told = on_recovery.map(|tell| RecoveryTeller::start(&options.progress, tell));
        let workers = Threads(runtime.worker_count());
        let opening = begin(&files, &environment, &options).map_err(not_read)?;
        let chunks = map(&workers, opening.tasks(), RecoveryTask::run);
        let opened = opening.finish(chunks, &workers).map_err(not_read)?;
        let durable = DurableDatabase::start(opened, environment, GroupCommitOptions::default());
        let durable = Arc::new(durable.map_err(not_read)?);
        let store = Arc::clone(durable.database());
        let thread = match store.is_read_only() {
            true => None,
            false => Some(CheckpointThread::start(&durable).map_err(|error| failed(&error))?),
        };
        let writers = FileWriters::new(runtime.handle_of(WorkerId(0)).clone());
        Ok((store, Self { path: path.to_owned(), durable, thread, writers }))
    }

    /// The report of opening it.
    pub(crate) fn report(&self) -> &OpenReport {
        self.durable.report()
    }

    /// Log position up to which the last checkpoint covers all changes.
    pub(crate) fn checkpoint_position(&self) -> u64 {
        self.durable.checkpoint_position().0
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a checkpoint now.
    pub(crate) async fn checkpoint(&self) -> Result<CheckpointReport> {
        match &self.thread {
            Some(thread) => thread.ask(DirectoryRequest::Checkpoint).await,
            None => exec_err!("{SALVAGED}"),
        }
    }

    /// Copies all committed data into a new directory.
    pub(crate) async fn backup(&self, to: PathBuf) -> Result<BackupReport> {
        match &self.thread {
            Some(thread) => thread.ask(|sender| DirectoryRequest::Backup(to, sender)).await,
            None => exec_err!("{SALVAGED}"),
        }
    }

    /// Writes the chunks of a change that have no files yet to their own files, which the record of its commit names,
    /// and waits until all of its chunks are on disk.
    pub(crate) async fn write_chunks(
        &self,
        columns: &SchemaRef,
        change: &mut TableChange,
    ) -> Result<()> {
        let appended = change.appended.iter_mut().map(|chunk| (&chunk.chunk, &mut chunk.file));
        let replaced = change.replaced.iter_mut().map(|chunk| (&chunk.chunk, &mut chunk.file));
        let (mut files, mut writing) = (Vec::new(), Vec::new());
        for (chunk, file) in appended.chain(replaced) {
            match file {
                Some(file) => files.push(*file),
                None => writing.push((self.write_chunk(chunk, columns), file)),
            }
        }
        for (job, file) in writing {
            files.push(*file.insert(job.join(WRITING).await?));
        }
        self.sync_files(files).await
    }

    /// Writes a chunk to its file, which [`write_chunks`](Self::write_chunks) syncs.
    pub(crate) fn write_chunk(
        &self,
        chunk: &Arc<Chunk>,
        columns: &SchemaRef,
    ) -> FileJob<ChunkFileId> {
        let (chunk, columns) = (Arc::clone(chunk), Arc::clone(columns));
        let chunks = Arc::clone(self.durable.chunks());
        self.writers.submit(move || {
            let written = chunks.write(&chunk, &columns);
            written.map(|written| written.id).map_err(|error| exec_datafusion_err!("{error}"))
        })
    }

    /// Waits until files and their names are on disk: together, so that the file system writes its own metadata once.
    async fn sync_files(&self, files: Vec<ChunkFileId>) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let sync = |of: Option<ChunkFileId>| {
            let chunks = Arc::clone(self.durable.chunks());
            self.writers.submit(move || {
                let synced = of.map_or_else(|| chunks.sync_names(), |file| chunks.sync(file));
                synced.map_err(|error| exec_datafusion_err!("{error}"))
            })
        };
        let contents: Vec<_> = files.into_iter().map(|file| sync(Some(file))).collect();
        for job in contents {
            job.join(WRITING).await?;
        }
        sync(None).join(WRITING).await
    }

    /// Sets what committed transactions survive.
    pub(crate) async fn set_durability(
        &self,
        store: &Arc<StoreDatabase>,
        durability: Durability,
    ) -> Result<()> {
        if store.is_read_only() {
            return exec_err!("{SALVAGED}");
        }
        if store.durability() == Durability::Off && durability != Durability::Off {
            // The second checkpoint, for which commits wait, has little to write.
            self.checkpoint().await?;
            let paused = store.pause_commits().await;
            self.checkpoint().await?;
            paused.resume(durability);
        }
        store.set_durability(durability).await.map_err(atoll_sql_common::error::transaction_error)
    }
}

impl CheckpointThread {
    fn start(durable: &Arc<DurableDatabase>) -> std::io::Result<Self> {
        let (requests, received) = mpsc::channel();
        let watched = Arc::downgrade(durable);
        let thread = thread::Builder::new()
            .name("atoll-checkpoint".to_owned())
            .spawn(move || make_checkpoints(&received, &watched))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T>>) -> DirectoryRequest,
    ) -> Result<T> {
        let (sender, done) = oneshot::channel();
        let sent = self.requests.as_ref().map(|requests| requests.send(request(sender)));
        match (sent, done.await) {
            (Some(Ok(())), Ok(report)) => report,
            _ => exec_err!("the thread that makes checkpoints has ended"),
        }
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        // The thread makes a last checkpoint if no log holds what was committed.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Begins to open a directory.
fn begin(
    files: &Arc<LiveFiles>,
    environment: &StoreEnvironment,
    options: &OpenOptions,
) -> Result<Opening, OpenError> {
    let begun = Instant::now();
    loop {
        let files = Arc::clone(files);
        match Opening::begin(files, environment.clone(), options.clone()) {
            Err(error) if error.is_open_here() && begun.elapsed() < RELEASE_MAX => {
                thread::sleep(Duration::from_millis(1));
            }
            opening => return opening,
        }
    }
}

fn not_opened(path: &Path, error: &dyn fmt::Display) -> DataFusionError {
    exec_datafusion_err!("data directory '{}' cannot be opened: {error}", path.display())
}

/// Whether the log is long, many files are unused, or the disk is so full that the next checkpoint might have no space.
fn wants_checkpoint(durable: &DurableDatabase) -> bool {
    let log_bytes = durable.log_bytes();
    log_bytes > LOG_BYTES_MAX
        || durable.unused_bytes() > UNUSED_BYTES_MAX
        || (durable.reserve_space().is_err() && log_bytes > 0)
}

/// Copies the database into a new directory, unless the receiver of `done` is gone.
fn make_backup<T>(
    durable: &DurableDatabase,
    to: &Path,
    done: &oneshot::Sender<T>,
) -> Result<BackupReport> {
    let target = BackupTarget::create(to).map_err(not_backed_up)?;
    let report = durable.backup(target.files(), &|| done.is_closed()).map_err(not_backed_up)?;
    target.finish().map_err(not_backed_up)?;
    Ok(report)
}

fn not_backed_up(error: BackupError) -> DataFusionError {
    let state = match &error {
        BackupError::Exists(_) | BackupError::Unfinished(_) => SqlState::DUPLICATE_FILE,
        error if error.is_no_space() => SqlState::DISK_FULL,
        BackupError::Damaged(_) => SqlState::DATA_CORRUPTED,
        _ => SqlState::IO_ERROR,
    };
    state.error(error.to_string())
}

/// Makes checkpoints and backups until the database is closed.
fn make_checkpoints(requests: &mpsc::Receiver<DirectoryRequest>, durable: &Weak<DurableDatabase>) {
    loop {
        let request = requests.recv_timeout(LOOK);
        let Some(durable) = durable.upgrade() else { return };
        match request {
            Ok(DirectoryRequest::Checkpoint(done)) => {
                let made = durable.checkpoint().map_err(|error| exec_datafusion_err!("{error}"));
                // The session that asked may be gone.
                let _ = done.send(made);
            }
            Ok(DirectoryRequest::Backup(to, done)) => {
                let made = make_backup(&durable, &to, &done);
                let _ = done.send(made);
            }
            Err(RecvTimeoutError::Timeout) if wants_checkpoint(&durable) => {
                // The next check tries again; writes are refused when the disk is full.
                let _ = durable.checkpoint();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let is_unlogged = durable.database().durability() == Durability::Off;
                if is_unlogged || durable.log_bytes() > CLOSED_LOG_BYTES_MAX {
                    let _ = durable.checkpoint();
                }
                return;
            }
        }
    }
}

/// This many threads, for the time before sessions use the workers.
struct Threads(usize);

impl Workers for Threads {
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..self.0.clamp(1, count.max(1)) {
                scope.spawn(|| {
                    loop {
                        let piece = next.fetch_add(1, Ordering::Relaxed);
                        if piece >= count {
                            return;
                        }
                        work(piece);
                    }
                });
            }
        });
    }
}
