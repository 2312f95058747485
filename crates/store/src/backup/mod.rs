//! Backups: copies of a data directory that open as the same database.
//!
//! | of | copied | holds |
//! |---|---|---|
//! | a database that is open ([`DurableDatabase::backup`](crate::durable::DurableDatabase::backup)) | the files of a checkpoint made for it, with a new, empty log | everything committed when the checkpoint began |
//! | a directory that no process has open ([`backup_directory`]) | all files of chunks and tables, and the log | everything it holds |
//!
//! Files that a checkpoint names never change, so they are copied while clients write. The manifest comes last, after
//! all else is on disk: without it the copy cannot be opened. Every file is read back and its checksums are compared
//! before [`BackupTarget`] gives the directory its name.

mod target;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::checkpoint::{CheckpointError, Manifest, StoredTable, TABLE_DIRECTORY, table_file_name};
use crate::chunk_file::{CHUNK_DIRECTORY, ChunkFiles, chunk_file_name};
use crate::data_file::DataFileError;
use crate::files::{FileError, Files};
use crate::ids::Epoch;
use crate::log::{LOG_DIRECTORY, Log, LogError, LogOptions};
use crate::open::{DirectoryInfo, OpenError, check_directory, directory_info};

pub use target::BackupTarget;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of the first segment of a copy's log: few, because the log is empty.
const SEGMENT_BYTES: u64 = 1 << 20;

/// The files that were copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Commits that the copy holds, without those in its log.
    pub epoch: Epoch,
    /// Number of files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Why no backup was made. The files copied so far are removed if possible; those that remain cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The name is in use.
    #[error("'{}' already exists; a backup creates its directory; choose an unused name", .0.display())]
    Exists(PathBuf),
    /// Another backup with this name is running or was interrupted.
    #[error(
        "'{}' already exists: another backup runs or was interrupted; remove it if none runs, or choose another name",
        .0.display()
    )]
    Unfinished(PathBuf),
    /// The client that requested it is gone.
    #[error("the backup was cancelled")]
    Cancelled,
    /// The checkpoint to be copied could not be made.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A file could not be read or written.
    #[error("no backup was made: {0}")]
    File(#[from] DataFileError),
    /// The log of the copy could not be created.
    #[error("no backup was made: {0}")]
    Log(#[from] LogError),
    /// The directory holds no database, or the copy cannot be opened.
    #[error("no backup was made: {0}")]
    Open(#[from] OpenError),
    /// A part of the database is damaged.
    #[error("no backup was made because part of the database is damaged: {0}")]
    Damaged(String),
}

type Result<T> = std::result::Result<T, BackupError>;

impl BackupError {
    /// Whether the disk is full.
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::Checkpoint(error) => error.is_no_space(),
            Self::File(error) => error.is_no_space(),
            Self::Log(error) => matches!(error, LogError::NoSpace(_)),
            _ => false,
        }
    }
}

impl From<FileError> for BackupError {
    fn from(error: FileError) -> Self {
        Self::File(error.into())
    }
}

/// Copies a directory that no process has open, and locks it meanwhile.
pub fn backup_directory(from: &Arc<dyn Files>, to: &Arc<dyn Files>) -> Result<BackupReport> {
    // Check this before creating a lock file in a directory that is not a database.
    if Manifest::read(&**from)?.is_none() {
        return Err(OpenError::Empty.into());
    }
    let _lock = from.lock()?;
    let Some(manifest) = Manifest::read(&**from)? else { return Err(OpenError::Empty.into()) };
    let mut copy = FileCopy::new(&**from, &**to, &|| false);
    for directory in [CHUNK_DIRECTORY, TABLE_DIRECTORY, LOG_DIRECTORY] {
        to.create_directory(directory)?;
        for name in from.list(directory)? {
            copy.file(&format!("{directory}/{name}"))?;
        }
        to.sync_names(directory)?;
    }
    let report = copy.finish(&manifest)?;
    undamaged(&check_directory(to)?)?;
    Ok(report)
}

/// Copies the files of the checkpoint on disk. No other checkpoint may be made meanwhile.
pub(crate) fn copy_checkpoint(
    from: &dyn Files,
    to: &Arc<dyn Files>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<BackupReport> {
    let Some(mut manifest) = Manifest::read(from)? else { return Err(OpenError::Empty.into()) };
    let (database, start) = (manifest.database, manifest.start.from);
    let chunks = ChunkFiles::reading(Arc::clone(to), database);
    let mut copy = FileCopy::new(from, &**to, is_cancelled);
    let mut copied = BTreeSet::new();
    to.create_directory(CHUNK_DIRECTORY)?;
    to.create_directory(TABLE_DIRECTORY)?;
    for file in manifest.tables.values() {
        copy.file(&table_file_name(file.number))?;
        let table = StoredTable::read(&**to, database, file.number)?;
        for entry in table.entries.iter().filter(|entry| copied.insert(entry.file)) {
            copy.file(&chunk_file_name(entry.file))?;
            chunks.check(entry.file)?;
        }
    }
    let prepared = manifest.prepared_files().map_err(OpenError::prepared)?;
    for file in prepared.into_iter().filter(|file| copied.insert(*file)) {
        copy.file(&chunk_file_name(file))?;
        chunks.check(file)?;
    }
    to.sync_names(CHUNK_DIRECTORY)?;
    to.sync_names(TABLE_DIRECTORY)?;
    Log::create_at(Arc::clone(to), LogOptions { database, segment_bytes: SEGMENT_BYTES }, start)?;
    // The log of the copy holds nothing after the checkpoint.
    manifest.start.synced = start;
    let report = copy.finish(&manifest)?;
    undamaged(&directory_info(to)?)?;
    Ok(report)
}

fn undamaged(copy: &DirectoryInfo) -> Result<()> {
    match copy.damage.first() {
        Some(part) => Err(BackupError::Damaged(part.to_string())),
        None => Ok(()),
    }
}

/// Copies files from one directory to another.
struct FileCopy<'a> {
    from: &'a dyn Files,
    to: &'a dyn Files,
    is_cancelled: &'a dyn Fn() -> bool,
    piece: Vec<u8>,
    report: BackupReport,
}

impl<'a> FileCopy<'a> {
    fn new(from: &'a dyn Files, to: &'a dyn Files, is_cancelled: &'a dyn Fn() -> bool) -> Self {
        let report = BackupReport::default();
        Self { from, to, is_cancelled, piece: vec![0; PIECE_BYTES], report }
    }

    /// Copies a file and syncs its contents, but not its name.
    fn file(&mut self, name: &str) -> Result<()> {
        let from = self.from.open(name)?;
        let to = self.to.create_unsynced(name)?;
        let (mut at, end) = (0, from.bytes()?);
        while at < end {
            if (self.is_cancelled)() {
                return Err(BackupError::Cancelled);
            }
            let piece = &mut self.piece[..(end - at).min(PIECE_BYTES as u64) as usize];
            from.read_at(at, piece)?;
            to.write_at(at, piece)?;
            at += piece.len() as u64;
        }
        to.sync_data()?;
        self.report.files += 1;
        self.report.bytes += end;
        Ok(())
    }

    /// Makes the copy a database.
    fn finish(mut self, manifest: &Manifest) -> Result<BackupReport> {
        self.report.epoch = manifest.epoch;
        self.report.files += 1;
        self.report.bytes += manifest.write_beside(self.to)?;
        Manifest::switch(self.to)?;
        Ok(self.report)
    }
}
