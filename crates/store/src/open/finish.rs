//! From chunks and records to the newest version.

use std::sync::Arc;

use arrow_schema::Schema;

use super::replay::{LoadedChunks, ReadLog, Replay};
use super::report::MissingPart;
use super::task::{RecoveredChunk, RegisteredChunk};
use super::{OpenError, Opened, Opening, OpeningLog, Result};
use crate::checkpoint::{
    Checkpoints, NEXT_MANIFEST, StoredTable, TABLE_DIRECTORY, table_file_name, table_file_number,
};
use crate::chunk_file::{HomeChange, chunk_file_name};
use crate::data_file::DataFileError;
use crate::database::{DatabaseContents, DatabaseVersion, Relation};
use crate::files::FileError;
use crate::ids::{ChunkFileId, TableId};
use crate::log::Log;
use crate::table::{Destination, RestoredEntry, TableDefinition, TableVersion};
use crate::workers::Workers;

impl Opening {
    /// Makes the newest version. `chunks` are the results of all [`tasks`](Self::tasks), in any order; `workers` build
    /// the indexes.
    pub fn finish(mut self, chunks: Vec<RecoveredChunk>, workers: &dyn Workers) -> Result<Opened> {
        let mut loaded = LoadedChunks::new();
        for RecoveredChunk { id, chunk } in chunks {
            if let Ok(chunk) = &chunk {
                self.report.chunks += 1;
                self.report.chunk_bytes += chunk.bytes;
                self.report.chunks_moved += u64::from(chunk.home == HomeChange::ChosenAnew);
            }
            loaded.insert(id, chunk);
        }
        let checkpoint = self.checkpoint(&loaded, workers)?;
        let checkpoints = Checkpoints::new(
            Arc::clone(&self.files),
            Arc::clone(&self.chunks),
            &self.manifest,
            &checkpoint,
            self.options.segment_bytes,
        )?;
        let (version, log) = self.replay(checkpoint, &loaded, workers)?;
        drop(loaded);
        if !self.options.salvage {
            self.remove_unnamed()?;
        }
        self.report.epoch = version.epoch();
        self.report.position = version.position();
        self.report.tables = version.tables().count() as u64;
        self.report.rows = version.tables().map(|(_, table)| table.rows() as u64).sum();
        let (lock, report) = (self.lock, self.report);
        Ok(Opened { version, log, checkpoints: Arc::new(checkpoints), lock, report })
    }

    /// The version of the checkpoint.
    fn checkpoint(
        &mut self,
        loaded: &LoadedChunks,
        workers: &dyn Workers,
    ) -> Result<DatabaseVersion> {
        let mut tables = Vec::new();
        for stored in std::mem::take(&mut self.tables) {
            let id = stored.id;
            tables.push((id, Arc::new(self.restore(stored, loaded, workers)?)));
        }
        let manifest = &self.manifest;
        let is_there = |id: &TableId| tables.iter().any(|(found, _)| found == id);
        let relations = manifest.relations.iter().filter(|(_, relation)| match relation {
            Relation::Table(id) => !self.options.salvage || is_there(id),
            _ => true,
        });
        let contents = DatabaseContents {
            epoch: manifest.epoch,
            position: manifest.start.from,
            schemas: manifest.schemas.clone(),
            relations: relations.cloned().collect(),
            tables,
            sequences: manifest.sequences.clone(),
            // They may refer to tables of the checkpoint: `replay` prepares them.
            prepared: Vec::new(),
            next_table: manifest.next_table,
            next_sequence: manifest.next_sequence,
        };
        DatabaseVersion::from_contents(contents).map_err(OpenError::Manifest)
    }

    fn restore(
        &mut self,
        stored: StoredTable,
        loaded: &LoadedChunks,
        workers: &dyn Workers,
    ) -> Result<TableVersion> {
        let name = self.manifest.name_of(stored.id);
        let definition = Arc::new(stored.definition);
        let mut tail = stored.tail;
        let mut entries = Vec::with_capacity(stored.entries.len());
        for entry in stored.entries {
            match usable(loaded.get(&entry.file), &definition, entry.file) {
                Ok(loaded) => entries.push(RestoredEntry {
                    chunk: Arc::clone(&loaded.chunk),
                    ids: entry.ids,
                    masked: entry.masked,
                    delta: entry.delta.into_iter().collect(),
                    file: Some(entry.file),
                }),
                Err(error) if self.options.salvage => {
                    let lost = entry.ids.count() - entry.masked.len();
                    let what = format!("{lost} rows from row {} on", entry.ids.first());
                    self.report.missing.push(MissingPart::new(Some(name.clone()), what, &error));
                    // The chunk's file does not contain newer values.
                    tail.extend(entry.delta);
                }
                Err(reason) => return Err(OpenError::TableChunk { table: name, reason }),
            }
        }
        let destination = Destination {
            machine: Arc::clone(&self.environment.machine),
            arena: self.environment.arena.clone(),
            strategy: definition.placement,
        };
        let in_errors = name.rsplit('.').next().unwrap_or_default().into();
        let tail = tail.into_iter().collect();
        let next = stored.next_row_id;
        let restored = TableVersion::restored(
            in_errors,
            definition,
            destination,
            entries,
            tail,
            next,
            workers,
        );
        restored.map_err(|reason| OpenError::Table { table: name, reason })
    }

    fn replay(
        &mut self,
        version: DatabaseVersion,
        loaded: &LoadedChunks,
        workers: &dyn Workers,
    ) -> Result<(DatabaseVersion, Option<Log>)> {
        let empty = OpeningLog::Read(ReadLog::default());
        let mut read = match std::mem::replace(&mut self.log, empty) {
            OpeningLog::New(log) => return Ok((version, Some(log))),
            OpeningLog::Read(read) => read,
        };
        let salvage = self.options.salvage;
        let mut replay = Replay {
            version,
            environment: &self.environment,
            chunks: loaded,
            report: &mut self.report,
            salvage,
            workers,
            progress: &self.options.progress,
        };
        let prepared = match self.manifest.prepared.is_empty() {
            true => Ok(()),
            false => replay.prepare(&self.manifest.prepared),
        };
        let replayed = prepared.and_then(|()| replay.run(&mut read)).and_then(|()| read.end());
        let version = replay.version;
        match replayed {
            Ok(Some(recovery)) if !salvage => {
                let (log, found) = recovery.finish()?;
                self.report.bytes_cut = found.bytes_cut;
                Ok((version, Some(log)))
            }
            Ok(_) => Ok((version, None)),
            Err(error) if salvage && error.is_damage() => {
                let what = format!("commits after log position {}", version.position());
                self.report.missing.push(MissingPart::new(None, what, &error));
                Ok((version, None))
            }
            Err(error) => Err(error),
        }
    }

    /// Removes files that neither the manifest nor the log names: those of transactions that did not commit, and of
    /// unfinished checkpoints.
    fn remove_unnamed(&self) -> std::result::Result<(), FileError> {
        for id in self.chunks.unused()? {
            if !self.named.contains(&id) {
                self.chunks.remove(id)?;
            }
        }
        let named = |number: u64| self.manifest.tables.values().any(|file| file.number == number);
        for number in
            self.files.list(TABLE_DIRECTORY)?.iter().filter_map(|name| table_file_number(name))
        {
            if !named(number) {
                self.files.remove(&table_file_name(number))?;
            }
        }
        match self.files.list("")?.iter().any(|name| name == NEXT_MANIFEST) {
            true => self.files.remove(NEXT_MANIFEST),
            false => Ok(()),
        }
    }
}

/// The chunk of a file, if it was read and has the columns of the table.
fn usable<'a>(
    loaded: Option<&'a std::result::Result<RegisteredChunk, Arc<DataFileError>>>,
    definition: &TableDefinition,
    file: ChunkFileId,
) -> std::result::Result<&'a RegisteredChunk, Arc<DataFileError>> {
    let damaged = |reason: &str| {
        Arc::new(DataFileError::damaged(&chunk_file_name(file), "its header", reason))
    };
    let loaded = match loaded {
        Some(Ok(loaded)) => loaded,
        Some(Err(error)) => return Err(Arc::clone(error)),
        None => return Err(damaged("it was not read")),
    };
    let types = |schema: &Schema| -> Vec<_> {
        schema.fields().iter().map(|field| field.data_type().clone()).collect()
    };
    match types(&loaded.schema) == types(&definition.columns) {
        true => Ok(loaded),
        false => Err(damaged("its columns are not those of the table")),
    }
}
