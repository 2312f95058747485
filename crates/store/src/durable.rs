//! An open database with a data directory.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::backup::{BackupError, BackupReport, copy_checkpoint};
use crate::checkpoint::{CheckpointError, CheckpointReport, CheckpointState, Checkpoints};
use crate::chunk_file::ChunkFiles;
use crate::database::{Database, StoreEnvironment};
use crate::files::{DirectoryLock, FileError, Files};
use crate::log::{GroupCommit, GroupCommitOptions, Position};
use crate::open::{OpenError, OpenOptions, OpenReport, Opened, Opening, RecoveryTask};
use crate::workers::OneThread;

type Result<T> = std::result::Result<T, OpenError>;

/// A database with a data directory, which is locked while this and the database live.
#[derive(Debug)]
pub struct DurableDatabase {
    database: Arc<Database>,
    checkpoints: Arc<Checkpoints>,
    report: OpenReport,
    /// One checkpoint at a time.
    checkpointing: Mutex<()>,
    /// The lock if there is no log; else the log holds it, whose thread may write until the last transaction is gone.
    _lock: Option<DirectoryLock>,
}

impl DurableDatabase {
    /// Opens a directory on this thread only. With workers: [`Opening::begin`], its tasks on their nodes,
    /// [`Opening::finish`], [`start`](Self::start).
    pub fn open(
        files: Arc<dyn Files>,
        environment: StoreEnvironment,
        options: OpenOptions,
    ) -> Result<Self> {
        let opening = Opening::begin(files, environment.clone(), options)?;
        let chunks = opening.tasks().into_iter().map(RecoveryTask::run).collect();
        Self::start(opening.finish(chunks, &OneThread)?, environment, GroupCommitOptions::default())
    }

    /// Starts the thread of the log, and sessions. A salvaged database has no log and is read-only.
    pub fn start(
        opened: Opened,
        environment: StoreEnvironment,
        options: GroupCommitOptions,
    ) -> Result<Self> {
        let Opened { version, log, checkpoints, lock, report } = opened;
        let (database, lock) = match log {
            Some(log) => {
                let log = GroupCommit::start(log, options).map_err(OpenError::Thread)?;
                (Database::start(version, environment, Some(log.holding(lock))), None)
            }
            None => (Database::reading(version, environment), Some(lock)),
        };
        let checkpointing = Mutex::new(());
        Ok(Self { database, checkpoints, report, checkpointing, _lock: lock })
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The files of chunks: a bulk load writes its chunks here before it commits.
    pub fn chunks(&self) -> &Arc<ChunkFiles> {
        self.checkpoints.chunks()
    }

    /// The report of opening.
    pub fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Log position up to which the last checkpoint contains all records.
    pub fn checkpoint_position(&self) -> Position {
        self.checkpoints.position()
    }

    /// Bytes of the log that recovery would read and a checkpoint would save it.
    pub fn log_bytes(&self) -> u64 {
        self.database.newest().position().0.saturating_sub(self.checkpoints.position().0)
    }

    /// Bytes of files that no version names any more and that a checkpoint removes.
    pub fn unused_bytes(&self) -> u64 {
        self.chunks().unused_bytes()
    }

    /// Makes a checkpoint of the newest version. Blocks the thread, which must not be a worker.
    pub fn checkpoint(&self) -> std::result::Result<CheckpointReport, CheckpointError> {
        let _one = self.checkpointing.lock();
        self.checkpoint_alone()
    }

    /// Makes a checkpoint and copies its files into a new directory while others read and write. Blocks the
    /// thread, which must not be a worker, until all is copied or `is_cancelled`; no checkpoint is made meanwhile.
    pub fn backup(
        &self,
        to: &Arc<dyn Files>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> std::result::Result<BackupReport, BackupError> {
        let _one = self.checkpointing.lock();
        self.checkpoint_alone()?;
        copy_checkpoint(self.checkpoints.files(), to, is_cancelled)
    }

    fn checkpoint_alone(&self) -> std::result::Result<CheckpointReport, CheckpointError> {
        let mut checkpoint = self.checkpoints.begin(|| self.database.newest())?;
        loop {
            match checkpoint.step(self.database.synced()) {
                Err(error) if error.is_no_space() && self.checkpoints.release_space() => {}
                Err(error) => return Err(error),
                Ok(CheckpointState::Working) => {}
                Ok(CheckpointState::NeedsLog(position)) => self.database.wait_for_log(position)?,
                Ok(CheckpointState::Done(report)) => return Ok(report),
            }
        }
    }

    /// Reserves space for the next checkpoint, as much as the changes since the last one need. An error means that the
    /// disk is full: a checkpoint made now can still use the space reserved before, and frees that of the log.
    pub fn reserve_space(&self) -> std::result::Result<(), FileError> {
        let _one = self.checkpointing.lock();
        self.checkpoints.reserve_space(&self.database.newest())
    }
}
