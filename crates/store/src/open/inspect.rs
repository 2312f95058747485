//! Inspecting a data directory without opening its database: its contents, and whether all of it can be read.

use std::sync::Arc;

use super::report::MissingPart;
use super::{OpenError, Result, create, replay};
use crate::DatabaseId;
use crate::checkpoint::{Manifest, StoredTable, TABLE_DIRECTORY};
use crate::chunk_file::{CHUNK_DIRECTORY, ChunkFiles};
use crate::database::Relation;
use crate::files::{FileError, Files};
use crate::ids::{ChunkFileId, Epoch};
use crate::log::{LOG_DIRECTORY, LogOptions, Position};
use crate::record::files_of_record;

/// The contents of a data directory.
#[derive(Clone, Debug)]
pub struct DirectoryInfo {
    /// The database.
    pub database: DatabaseId,
    /// Commits that the last checkpoint holds.
    pub epoch: Epoch,
    /// Position in the log after the last record in the checkpoint.
    pub checkpoint: Position,
    /// Its tables.
    pub tables: Vec<TableInfo>,
    /// Number of views, external tables and sequences.
    pub other_relations: u64,
    /// Number of commits in the log after it.
    pub records: u64,
    /// Size of their records, in bytes.
    pub record_bytes: u64,
    /// Size of the files of chunks, of tables, and of the log, in bytes.
    pub chunk_bytes: u64,
    /// See above.
    pub table_bytes: u64,
    /// See above.
    pub log_bytes: u64,
    /// What cannot be read; with [`check_directory`] among everything, else among the files inspected.
    pub damage: Vec<MissingPart>,
}

/// A table in a checkpoint.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// As `schema.name`.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Size of the chunks in memory, in bytes.
    pub bytes: u64,
    /// Rows of its chunks that are deleted or have newer values.
    pub changed_rows: u64,
}

/// The contents of a data directory, by its manifest, its tables and its log. The directory is locked meanwhile.
pub fn directory_info(files: &Arc<dyn Files>) -> Result<DirectoryInfo> {
    Inspection::run(files, false)
}

/// The same, with all files read and all checksums verified.
pub fn check_directory(files: &Arc<dyn Files>) -> Result<DirectoryInfo> {
    Inspection::run(files, true)
}

struct Inspection<'a> {
    files: &'a Arc<dyn Files>,
    manifest: Manifest,
    chunks: ChunkFiles,
    reads_chunks: bool,
    info: DirectoryInfo,
}

impl Inspection<'_> {
    fn run(files: &Arc<dyn Files>, reads_chunks: bool) -> Result<DirectoryInfo> {
        create::check_directory(&**files)?;
        if files.list("")?.is_empty() {
            return Err(OpenError::Empty);
        }
        let _lock = files.lock()?;
        let Some(manifest) = Manifest::read(&**files)? else { return Err(OpenError::Empty) };
        let chunks = ChunkFiles::reading(Arc::clone(files), manifest.database);
        let is_table = |(_, relation): &&(_, Relation)| matches!(relation, Relation::Table(_));
        let other = manifest.relations.len() - manifest.relations.iter().filter(is_table).count();
        let info = DirectoryInfo {
            database: manifest.database,
            epoch: manifest.epoch,
            checkpoint: manifest.start.from,
            tables: Vec::new(),
            other_relations: other as u64,
            records: 0,
            record_bytes: 0,
            chunk_bytes: bytes_in(&**files, CHUNK_DIRECTORY)?,
            table_bytes: bytes_in(&**files, TABLE_DIRECTORY)?,
            log_bytes: bytes_in(&**files, LOG_DIRECTORY)?,
            damage: Vec::new(),
        };
        let mut inspection = Inspection { files, manifest, chunks, reads_chunks, info };
        inspection.tables()?;
        for file in inspection.manifest.prepared_files().map_err(OpenError::prepared)? {
            inspection.chunk(file, None, "a chunk of a prepared transaction".to_owned())?;
        }
        inspection.log()?;
        Ok(inspection.info)
    }

    fn tables(&mut self) -> Result<()> {
        for (id, file) in self.manifest.tables.clone() {
            let name = self.manifest.name_of(id);
            let stored = StoredTable::read(&**self.files, self.manifest.database, file.number);
            let (chunks, changed_rows) = match &stored {
                Ok(table) => {
                    (table.entries.len(), table.entries.iter().map(|e| e.masked.len()).sum())
                }
                Err(error) if error.is_damage() => {
                    self.info.damage.push(MissingPart::new(Some(name.clone()), "all rows", error));
                    (0, 0)
                }
                Err(_) => return stored.map(drop).map_err(Into::into),
            };
            self.info.tables.push(TableInfo {
                name: name.clone(),
                rows: file.rows,
                chunks: chunks as u64,
                bytes: file.chunk_bytes,
                changed_rows: changed_rows as u64,
            });
            for entry in stored.into_iter().flat_map(|table| table.entries) {
                let what = format!("{} rows from row {} on", entry.ids.count(), entry.ids.first());
                self.chunk(entry.file, Some(name.clone()), what)?;
            }
        }
        Ok(())
    }

    fn chunk(&mut self, file: ChunkFileId, table: Option<String>, what: String) -> Result<()> {
        if !self.reads_chunks {
            return Ok(());
        }
        match self.chunks.check(file) {
            Ok(_) => Ok(()),
            Err(error) if error.is_damage() => {
                self.info.damage.push(MissingPart::new(table, what, &error));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn log(&mut self) -> Result<()> {
        let options = LogOptions::new(self.manifest.database);
        let mut named = Vec::new();
        let info = &mut self.info;
        let mut last = info.checkpoint;
        let read = replay::for_each_record(self.files, options, self.manifest.start, |record| {
            info.records += 1;
            info.record_bytes += record.payload.len() as u64;
            last = record.position;
            match files_of_record(record.payload) {
                Ok(files) => named.extend(files.into_iter().map(|file| (file, last))),
                Err(reason) => return Err(OpenError::record(record.position, reason)),
            }
            Ok(())
        });
        match read {
            Err(error) if error.is_damage() => {
                let what = format!("commits after log position {last}");
                self.info.damage.push(MissingPart::new(None, what, &error));
            }
            other => other?,
        }
        for (file, position) in named {
            self.chunk(file, None, format!("a chunk of the commit at log position {position}"))?;
        }
        Ok(())
    }
}

fn bytes_in(files: &dyn Files, directory: &str) -> std::result::Result<u64, FileError> {
    let names = files.list(directory)?;
    names.iter().map(|name| files.open(&format!("{directory}/{name}"))?.bytes()).sum()
}
