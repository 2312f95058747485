//! Checkpoints: a version of the database on disk, so that the log before it is not needed any more.
//!
//! ```text
//! manifest ── what the database holds, where the log goes on, and of each table the number of its file
//!    └─ tables/<number>.table ── definition, rows in no chunk, and of each chunk file, ids, mask, newer values
//!          └─ chunks/<number>.chunk ── columns
//! ```
//!
//! A checkpoint is incremental by nature: chunks that have a file are not written again, nor are tables that did
//! not change since the last one. Nothing that the old manifest names is touched before the new one is in its
//! place, so a stop at any moment leaves the old checkpoint or the new one.
//!
//! A [`Checkpoint`] is a state machine: its caller steps it, on a thread that is not a worker. In order it
//!
//! 1. notes which chunk files are not in use, then pins the newest version (all records that name those
//!    files are in the log before it),
//! 2. writes chunks without a file, one a step, then tables that changed,
//! 3. waits until the log is synced up to the version, since a manifest must not be ahead of the log,
//! 4. writes the manifest beside the old one and renames it over that,
//! 5. removes segments of the log, and files that neither the manifest nor the log names.

mod manifest;
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
use crate::files::Files;
use crate::ids::TableId;
use crate::log::{LogError, Position};
use crate::table::TableVersion;

pub(crate) use manifest::{MANIFEST, Manifest, NEXT_MANIFEST, TableFile};
pub use step::{Checkpoint, CheckpointReport, CheckpointState};
pub(crate) use table_file::{StoredTable, TABLE_DIRECTORY, table_file_name, table_file_number};

/// Why a checkpoint was not made. The one before it is as it was, and so is the log.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file was not written.
    #[error("no checkpoint was made, the last one and the log are kept: {0}")]
    File(#[from] DataFileError),
    /// The log failed before the checkpoint was made.
    #[error("no checkpoint was made: {0}")]
    Log(#[from] LogError),
}

/// The checkpoints of a data directory: what the last one wrote.
pub struct Checkpoints {
    files: Arc<dyn Files>,
    database: DatabaseId,
    chunks: Arc<ChunkFiles>,
    last: Mutex<LastCheckpoint>,
}

/// What the manifest on disk names.
#[derive(Debug, Default)]
struct LastCheckpoint {
    from: Position,
    /// The last number given to the file of a table, also by a checkpoint that failed.
    table_file: u64,
    tables: BTreeMap<TableId, (Weak<TableVersion>, TableFile)>,
}

impl Checkpoints {
    /// The checkpoints of a directory whose manifest this is; `version` is what it holds, as it was read.
    pub(crate) fn new(
        files: Arc<dyn Files>,
        chunks: Arc<ChunkFiles>,
        manifest: &Manifest,
        version: &DatabaseVersion,
    ) -> Result<Self, DataFileError> {
        // An attempt that failed may have left files behind the last one that counts.
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
        Ok(Self { files, database: manifest.database, chunks, last: Mutex::new(last) })
    }

    /// The files of chunks.
    pub fn chunks(&self) -> &Arc<ChunkFiles> {
        &self.chunks
    }

    /// Position of the log behind the last record that the last checkpoint holds. The log from there on is
    /// what recovery reads.
    pub fn position(&self) -> Position {
        self.last.lock().from
    }

    /// Begins a checkpoint; one at a time. `newest` gives the newest version, whether it is synced or not.
    pub fn begin(
        self: &Arc<Self>,
        newest: impl FnOnce() -> Arc<DatabaseVersion>,
    ) -> Result<Checkpoint, CheckpointError> {
        Checkpoint::begin(Arc::clone(self), newest)
    }
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").field("last", &self.last).finish_non_exhaustive()
    }
}
