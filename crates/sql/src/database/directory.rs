//! The data directory of a database: opened with the database, written by threads of its own.
//!
//! | thread | does |
//! |---|---|
//! | `atoll-log` | writes and syncs records, once for all that wait |
//! | `atoll-checkpoint` | makes checkpoints, asked for or because the log is long |
//!
//! Workers never wait for a disk: chunks of bulk loads are written by threads beside them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use atoll_runtime::Runtime;
use atoll_store::checkpoint::CheckpointReport;
use atoll_store::database::{Database as StoreDatabase, Durability, StoreEnvironment};
use atoll_store::files::LiveFiles;
use atoll_store::log::GroupCommitOptions;
use atoll_store::open::{DurableDatabase, OpenOptions, OpenReport, Opening};
use atoll_store::table::{Chunk, TableChange};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::task::BoundTask;

/// Bytes of the log behind the last checkpoint from which on the next one is made.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// How often the length of the log is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Files of chunks that are written at the same time.
const WRITERS: usize = 4;

/// An open data directory.
pub(crate) struct DataDirectory {
    path: PathBuf,
    durable: Arc<DurableDatabase>,
    requests: Mutex<Option<mpsc::Sender<CheckpointRequest>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Where files of chunks are written: blocking threads beside the workers.
    runtime: Runtime,
}

/// Someone who waits for a checkpoint.
type CheckpointRequest = oneshot::Sender<Result<CheckpointReport>>;

impl fmt::Debug for DataDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataDirectory").field("path", &self.path).finish_non_exhaustive()
    }
}

impl DataDirectory {
    /// Opens the database in a directory, which becomes one where it is missing or empty.
    pub(super) fn open(
        path: &Path,
        environment: StoreEnvironment,
        runtime: &Runtime,
    ) -> Result<(Arc<StoreDatabase>, Self)> {
        let failed = |error: &dyn fmt::Display| not_opened(path, error);
        let files = LiveFiles::create(path).map_err(|error| failed(&error))?;
        let opening = Opening::begin(Arc::new(files), environment.clone(), OpenOptions::default());
        let opening = opening.map_err(|error| failed(&error))?;
        let chunks = in_parallel(opening.tasks(), runtime.worker_count(), |task| task.run());
        let opened = opening.finish(chunks).map_err(|error| failed(&error))?;
        let durable = DurableDatabase::start(opened, environment, GroupCommitOptions::default());
        let durable = Arc::new(durable.map_err(|error| failed(&error))?);
        let store = Arc::clone(durable.database());
        let (requests, received) = mpsc::channel();
        let watched = Arc::downgrade(&durable);
        let thread = thread::Builder::new()
            .name("atoll-checkpoint".to_owned())
            .spawn(move || make_checkpoints(&received, &watched))
            .map_err(|error| failed(&error))?;
        let (requests, thread) = (Mutex::new(Some(requests)), Mutex::new(Some(thread)));
        let (path, runtime) = (path.to_owned(), runtime.clone());
        Ok((store, Self { path, durable, requests, thread, runtime }))
    }

    /// What opening it found.
    pub(crate) fn report(&self) -> &OpenReport {
        self.durable.report()
    }

    /// Place in the log up to which the last checkpoint holds all.
    pub(crate) fn checkpoint_position(&self) -> u64 {
        self.durable.checkpoint_position().0
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a checkpoint now.
    pub(crate) async fn checkpoint(&self) -> Result<CheckpointReport> {
        let (sender, done) = oneshot::channel();
        let sent = self.requests.lock().as_ref().map(|requests| requests.send(sender));
        match (sent, done.await) {
            (Some(Ok(())), Ok(report)) => report,
            _ => exec_err!("the thread that makes checkpoints has ended"),
        }
    }

    /// Writes the chunks of a change to files of their own, which the record of its commit names.
    pub(crate) async fn write_chunks(
        &self,
        columns: &SchemaRef,
        change: &mut TableChange,
    ) -> Result<()> {
        let appended = change.appended.iter_mut().map(|chunk| (&chunk.chunk, &mut chunk.file));
        let replaced = change.replaced.iter_mut().map(|chunk| (&chunk.chunk, &mut chunk.file));
        let mut waiting = appended.chain(replaced).filter(|(_, file)| file.is_none());
        loop {
            let mut writing = Vec::with_capacity(WRITERS);
            for (chunk, file) in waiting.by_ref().take(WRITERS) {
                writing.push((file, self.write_chunk(chunk, columns)));
            }
            if writing.is_empty() {
                return Ok(());
            }
            for (file, task) in writing {
                *file = Some(task.join("writing a chunk to its file").await?);
            }
        }
    }

    fn write_chunk(
        &self,
        chunk: &Arc<Chunk>,
        columns: &SchemaRef,
    ) -> BoundTask<Result<atoll_store::ChunkFileId>> {
        let (chunk, columns) = (Arc::clone(chunk), Arc::clone(columns));
        let chunks = Arc::clone(self.durable.chunks());
        let handle = self.runtime.handle_of(atoll_runtime::WorkerId(0));
        BoundTask::new(handle.spawn_blocking(move || {
            let written = chunks.write(&chunk, &columns);
            written.map(|written| written.id).map_err(|error| exec_datafusion_err!("{error}"))
        }))
    }

    /// Sets what acknowledged commits survive.
    pub(crate) async fn set_durability(
        &self,
        store: &Arc<StoreDatabase>,
        durability: Durability,
    ) -> Result<()> {
        if store.durability() == Durability::Off && durability != Durability::Off {
            // The second checkpoint, for which commits wait, has little to write.
            self.checkpoint().await?;
            let paused = store.pause_commits().await;
            self.checkpoint().await?;
            paused.resume(durability);
        }
        store.set_durability(durability).await.map_err(crate::table::transaction_error)
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        // The thread makes a last checkpoint where no log holds what was committed.
        drop(self.requests.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn not_opened(path: &Path, error: &dyn fmt::Display) -> DataFusionError {
    exec_datafusion_err!("data directory '{}' cannot be opened: {error}", path.display())
}

/// Makes checkpoints until the database is closed.
fn make_checkpoints(requests: &mpsc::Receiver<CheckpointRequest>, durable: &Weak<DurableDatabase>) {
    loop {
        let request = requests.recv_timeout(LOOK);
        let Some(durable) = durable.upgrade() else { return };
        match request {
            Ok(request) => {
                let made = durable.checkpoint().map_err(|error| exec_datafusion_err!("{error}"));
                // The session that asked may be gone.
                let _ = request.send(made);
            }
            Err(RecvTimeoutError::Timeout) if durable.log_bytes() > LOG_BYTES_MAX => {
                // The next look tries again; writes are refused when the disk is full.
                let _ = durable.checkpoint();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                if durable.database().durability() == Durability::Off {
                    let _ = durable.checkpoint();
                }
                return;
            }
        }
    }
}

/// Does pieces of work on some threads; what they gave.
fn in_parallel<T: Send, R: Send>(
    work: Vec<T>,
    threads: usize,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let (work, done) = (Mutex::new(work), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let next = work.lock().pop();
                    let Some(next) = next else { return };
                    let result = run(next);
                    done.lock().push(result);
                }
            });
        }
    });
    done.into_inner()
}
