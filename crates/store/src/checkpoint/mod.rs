//! Checkpoints: a version of the database on disk, so that the log before it is no longer needed.
//!
//! ```text
//! manifest ── the contents, where the log continues, and the file number of each table
//!    └─ tables/<number>.table ── definition, rows in no chunk, and for each chunk its file, ids, mask, newer values
//!          └─ chunks/<number>.chunk ── columns
//! ```
//!
//! A checkpoint is incremental: chunks that have a file are not written again, nor are tables that did
//! not change since the last one. No file that the old manifest names is touched before the new manifest is
//! in place, so an interruption at any moment leaves the old checkpoint or the new one.
//!
//! A [`Checkpoint`] is a state machine that its caller steps on a thread that is not a worker. In order, it
//!
//! 1. notes which chunk files are not in use, then pins the newest version (all records that name those
//!    files are in the log before it),
//! 2. writes chunks without a file, one per step, then tables that changed,
//! 3. waits until the log is synced up to the version, since a manifest must not be ahead of the log,
//! 4. writes the manifest next to the old one and renames it over the old one,
//! 5. removes segments of the log, and files that neither the manifest nor the log names.

mod manifest;
mod reserve;
mod step;
mod table_file;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::DatabaseId;
use crate::chunk_file::ChunkFiles;
use crate::data_file::DataFileError;
use crate::database::DatabaseVersion;
use crate::files::{FileError, Files};
use crate::ids::TableId;
use crate::log::{FIRST_SEGMENT_BYTES, LogError, Position};
use crate::record::RecordError;
use crate::table::{Chunk, TableVersion};
use reserve::SpaceReserve;

pub(crate) use manifest::{MANIFEST, Manifest, NEXT_MANIFEST, TableFile};
pub use step::{Checkpoint, CheckpointReport, CheckpointState};
pub(crate) use table_file::{StoredTable, TABLE_DIRECTORY, table_file_name, table_file_number};

/// Why a checkpoint was not made. The previous one and the log are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file could not be written.
    #[error("no checkpoint was made, the last one and the log are kept: {0}")]
    File(#[from] DataFileError),
    /// A prepared transaction cannot be written.
    #[error("no checkpoint was made, the last one and the log are kept: {0}")]
    Prepared(#[from] RecordError),
    /// The log failed before the checkpoint was made.
    #[error("no checkpoint was made: {0}")]
    Log(#[from] LogError),
}

impl CheckpointError {
    /// Whether the disk is full.
    pub fn is_no_space(&self) -> bool {
        match self {
            Self::File(error) => error.is_no_space(),
            Self::Prepared(_) | Self::Log(_) => false,
        }
    }
}

/// The checkpoints of a data directory: the files of the last one.
pub struct Checkpoints {
    files: Arc<dyn Files>,
    database: DatabaseId,
    chunks: Arc<ChunkFiles>,
    last: Mutex<LastCheckpoint>,
    reserve: SpaceReserve,
    /// Bytes of a segment of the log at most.
    segment_bytes: u64,
}

/// The files that the manifest on disk names.
#[derive(Debug, Default)]
struct LastCheckpoint {
    from: Position,
    /// The last number given to the file of a table, including those of failed checkpoints.
    table_file: u64,
    tables: BTreeMap<TableId, (Weak<TableVersion>, TableFile)>,
}

impl Checkpoints {
    /// The checkpoints of a directory with this manifest; `version` is the version read from it. Segments
    /// of its log have `segment_bytes`.
    pub(crate) fn new(
        files: Arc<dyn Files>,
        chunks: Arc<ChunkFiles>,
        manifest: &Manifest,
        version: &DatabaseVersion,
        segment_bytes: u64,
    ) -> Result<Self, DataFileError> {
        // A failed attempt may have left files after the last valid one.
        let found = files.list(TABLE_DIRECTORY)?;
        let found = found.iter().filter_map(|name| table_file_number(name));
        let tables = manifest
            .tables
            .iter()
            .filter_map(|(id, file)| Some((*id, (Arc::downgrade(version.table(*id)?), *file))));
        let last = LastCheckpoint {
            from: manifest.start.from,
            table_file: found.fold(manifest.last_table_file, u64::max),
            tables: tables.collect(),
        };
        let reserve = SpaceReserve::open(Arc::clone(&files), segment_bytes / 4)?;
        let (database, last) = (manifest.database, Mutex::new(last));
        Ok(Self { files, database, chunks, last, reserve, segment_bytes })
    }

    /// The directory.
    pub(crate) fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// The files of chunks.
    pub fn chunks(&self) -> &Arc<ChunkFiles> {
        &self.chunks
    }

    /// Position in the log after the last record that the last checkpoint holds. Recovery reads the log from
    /// there.
    pub fn position(&self) -> Position {
        self.last.lock().from
    }

    /// Reserves the space that a checkpoint of this version and records written meanwhile need. If the disk is full
    /// and not everything can be reserved, a checkpoint made at once may free space.
    pub fn reserve_space(&self, version: &DatabaseVersion) -> Result<(), FileError> {
        self.reserve.keep(self.unwritten_bytes(version) + self.ahead_bytes(version.position()))
    }

    /// Frees part of the space reserved for a checkpoint; returns whether there was any.
    pub fn release_space(&self) -> bool {
        self.reserve.release()
    }

    /// What a checkpoint may need for records that arrive meanwhile, at the rate
    /// of those since the last one.
    fn ahead_bytes(&self, end: Position) -> u64 {
        let since = end.0.saturating_sub(self.last.lock().from.0);
        since
            .saturating_mul(4)
            .clamp(FIRST_SEGMENT_BYTES.min(self.segment_bytes), self.segment_bytes)
    }

    /// Approximate number of bytes that a checkpoint of a version writes.
    fn unwritten_bytes(&self, version: &DatabaseVersion) -> u64 {
        let last = self.last.lock();
        let is_changed = |id: TableId, table: &Arc<TableVersion>| match last.tables.get(&id) {
            Some((same, _)) => !std::ptr::eq(same.as_ptr(), Arc::as_ptr(table)),
            None => true,
        };
        let kept = version.tables().filter(|(id, _)| !id.is_temporary());
        let changed = kept.filter(|(id, table)| is_changed(*id, table));
        changed.map(|(_, table)| unwritten_bytes(table)).sum()
    }

    /// Begins a checkpoint; only one may run at a time. `newest` returns the newest version, synced or not.
    pub fn begin(
        self: &Arc<Self>,
        newest: impl FnOnce() -> Arc<DatabaseVersion>,
    ) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::begin(Arc::clone(self), newest)
    }
}

/// Approximate size of the chunks of a table that have no file, and of the table's own file, in bytes.
fn unwritten_bytes(table: &TableVersion) -> u64 {
    let mut chunks: Vec<&Arc<Chunk>> = Vec::new();
    for entry in table.entries().filter(|entry| entry.file().is_none()) {
        // Parts of a split chunk follow each other.
        if chunks.last().is_none_or(|last| !Arc::ptr_eq(last, entry.chunk())) {
            chunks.push(entry.chunk());
        }
    }
    let copies = chunks.into_iter().filter_map(|chunk| chunk.copies.first());
    let chunks: usize = copies.map(|copy| copy.memory.len()).sum();
    (chunks + table.loose_bytes() + 2 * table.deleted_rows()) as u64
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").field("last", &self.last).finish_non_exhaustive()
    }
}
