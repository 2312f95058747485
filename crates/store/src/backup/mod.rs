//! Backups: a copy of a data directory that opens as the database it was.
//!
//! | of | copied | holds |
//! |---|---|---|
//! | a database that is open ([`DurableDatabase::backup`](crate::durable::DurableDatabase::backup)) | what a checkpoint made for it names; its log is new and without records | all that was committed when the checkpoint began |
//! | a directory that no process has open ([`backup_directory`]) | all files of chunks and tables, and the log | all that it holds |
//!
//! Files that a checkpoint names never change, so they are copied while clients write. The manifest comes last, when
//! all else is on disk: before it the copy cannot be opened. Every file is read back with its checksums compared, and
//! only then [`BackupTarget`] gives the directory its name.

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

/// How much is copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of the first segment of the log of a copy: little, for it is empty.
const SEGMENT_BYTES: u64 = 1 << 20;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// Commits that the copy holds; without those in its log.
    pub epoch: Epoch,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Why there is no backup. What was copied until then is removed where that is possible, and what stays cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The name is taken.
    #[error("'{}' already exists; a backup makes its directory: give a name that is free", .0.display())]
    Exists(PathBuf),
    /// Another backup to this name runs or was interrupted.
    #[error(
        "'{}' already exists: another backup makes it, or was interrupted; remove it if none runs, or give another name",
        .0.display()
    )]
    Unfinished(PathBuf),
    /// The one who asked for it has gone.
    #[error("the backup was cancelled")]
    Cancelled,
    /// The checkpoint that it would have been a copy of was not made.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A file was not read or not written.
    #[error("no backup was made: {0}")]
    File(#[from] DataFileError),
    /// The log of the copy was not made.
    #[error("no backup was made: {0}")]
    Log(#[from] LogError),
    /// The directory holds no database, or the copy cannot be opened.
    #[error("no backup was made: {0}")]
    Open(#[from] OpenError),
    /// A part of the database is damaged.
    #[error("no backup was made, for a part of the database is damaged: {0}")]
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

/// Copies a directory that no process has open, which is locked meanwhile.
pub fn backup_directory(from: &Arc<dyn Files>, to: &Arc<dyn Files>) -> Result<BackupReport> {
    // Before a lock file is left in a directory of something else.
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

/// Copies what the checkpoint on disk names. No other one may be made meanwhile.
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
    to.sync_names(CHUNK_DIRECTORY)?;
    to.sync_names(TABLE_DIRECTORY)?;
    Log::create_at(Arc::clone(to), LogOptions { database, segment_bytes: SEGMENT_BYTES }, start)?;
    // The log of the copy holds nothing behind the checkpoint.
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

/// Files on their way from one directory to another.
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

    /// Copies a file and syncs what is in it, but not its name.
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
