//! A new database.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{OpenError, OpenOptions, Result};
use crate::DatabaseId;
use crate::checkpoint::{MANIFEST, Manifest, NEXT_MANIFEST, TABLE_DIRECTORY};
use crate::files::{Files, LOCK_NAME};
use crate::ids::{ChunkFileId, Epoch, SequenceId, TableId};
use crate::log::{Log, LogOptions, RecoveryStart};

/// Settings of a server, which may be in the directory before a database is.
const SETTINGS: &str = "atoll.toml";

/// Refuses a directory that contains files but no database.
pub(super) fn check_directory(files: &dyn Files) -> Result<()> {
    let names = files.list("")?;
    let known = [MANIFEST, NEXT_MANIFEST, LOCK_NAME, SETTINGS];
    let is_known = |name: &&String| known.contains(&name.as_str());
    match names.iter().find(|name| !is_known(name)) {
        Some(file) if !names.iter().any(|name| name == MANIFEST) => {
            Err(OpenError::NotADatabase { file: file.clone() })
        }
        _ => Ok(()),
    }
}

/// Creates a database in an empty directory: the log first and the manifest last, so that an interrupted creation
/// starts again.
pub(super) fn create(files: &Arc<dyn Files>, options: &OpenOptions) -> Result<(Manifest, Log)> {
    if !options.create || options.salvage {
        return Err(OpenError::Empty);
    }
    let database = match options.database {
        Some(database) => database,
        None => DatabaseId::random().map_err(OpenError::Random)?,
    };
    let log = LogOptions { database, segment_bytes: options.segment_bytes };
    let log = Log::create(Arc::clone(files), log)?;
    files.create_directory(TABLE_DIRECTORY)?;
    let manifest = Manifest {
        database,
        epoch: Epoch::default(),
        start: RecoveryStart::default(),
        last_chunk_file: ChunkFileId::default(),
        last_table_file: 0,
        next_table: TableId::new(1),
        next_sequence: SequenceId::new(1),
        schemas: options.schemas.clone(),
        relations: Vec::new(),
        sequences: Vec::new(),
        tables: BTreeMap::new(),
        prepared: Vec::new(),
    };
    manifest.write_beside(&**files)?;
    Manifest::switch(&**files)?;
    Ok((manifest, log))
}
