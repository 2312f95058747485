//! Applying the records of the log to the version of the checkpoint.

use std::collections::HashMap;
use std::sync::Arc;

use super::report::MissingPart;
use super::task::RegisteredChunk;
use super::{OpenError, OpenProgress, OpenReport, Result};
use crate::data_file::DataFileError;
use crate::database::{
    CatalogChange, ChangeStep, DatabaseChange, DatabaseVersion, StoreEnvironment,
};
use crate::files::Files;
use crate::ids::{ChunkFileId, Epoch, TableId};
use crate::log::{Log, LogOptions, LogRecord, Position, Recovery, RecoveryStart};
use crate::record::{RecordError, decode_record};
use crate::table::Chunk;
use crate::workers::Workers;

/// Chunks that were read, or the errors.
pub(super) type LoadedChunks =
    HashMap<ChunkFileId, std::result::Result<RegisteredChunk, Arc<DataFileError>>>;

/// The records of the log after the checkpoint.
#[derive(Debug, Default)]
pub(super) struct ReadLog {
    records: Vec<ReadRecord>,
    /// The end of the log, if it was read to its end.
    recovery: Option<Recovery>,
    /// Why it was not read to its end.
    pub(super) damage: Option<OpenError>,
}

#[derive(Debug)]
struct ReadRecord {
    position: Position,
    payload: Box<[u8]>,
}

impl ReadLog {
    /// Reads the log to its end.
    pub(super) fn fill(
        &mut self,
        files: &Arc<dyn Files>,
        options: LogOptions,
        start: RecoveryStart,
        mut each: impl FnMut(LogRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut recovery = Log::recover(Arc::clone(files), options, start)?;
        while let Some(record) = recovery.next_record()? {
            each(record)?;
            let LogRecord { position, payload } = record;
            self.records.push(ReadRecord { position, payload: payload.into() });
        }
        self.recovery = Some(recovery);
        Ok(())
    }

    /// The end of the log. Returns None for a damaged log.
    pub(super) fn end(self) -> Result<Option<Recovery>> {
        self.damage.map_or(Ok(self.recovery), Err)
    }
}

/// Reads the log without changing it.
pub(super) fn for_each_record(
    files: &Arc<dyn Files>,
    options: LogOptions,
    start: RecoveryStart,
    mut each: impl FnMut(LogRecord<'_>) -> Result<()>,
) -> Result<()> {
    let mut recovery = Log::recover(Arc::clone(files), options, start)?;
    while let Some(record) = recovery.next_record()? {
        each(record)?;
    }
    Ok(())
}

/// The version after each record.
pub(super) struct Replay<'a> {
    pub(super) version: DatabaseVersion,
    pub(super) environment: &'a StoreEnvironment,
    pub(super) chunks: &'a LoadedChunks,
    pub(super) report: &'a mut OpenReport,
    pub(super) salvage: bool,
    pub(super) workers: &'a dyn Workers,
    pub(super) progress: &'a OpenProgress,
}

impl Replay<'_> {
    /// Applies all records, and drops each.
    pub(super) fn run(&mut self, log: &mut ReadLog) -> Result<()> {
        for ReadRecord { position, payload } in std::mem::take(&mut log.records) {
            self.apply(LogRecord { position, payload: &payload })?;
            self.progress.record();
        }
        Ok(())
    }

    fn apply(&mut self, record: LogRecord<'_>) -> Result<()> {
        let LogRecord { position, payload } = record;
        let epoch = Epoch::new(self.version.epoch().get() + 1);
        let change = match self.change(position, payload) {
            Err(OpenError::Chunk(error)) if self.salvage => {
                self.change_without_damaged(position, payload, &error)
            }
            change => change,
        };
        let before = self.salvage.then(|| self.version.clone());
        let applied = change.and_then(|mut change| {
            let version = &mut self.version;
            match version.apply_in_place(&mut change, self.environment, self.workers) {
                Ok(()) => Ok(()),
                Err(reason) => match before {
                    Some(before) => {
                        self.version = self.apply_steps(before, change, position);
                        Ok(())
                    }
                    None => Err(OpenError::Misfit { position, reason }),
                },
            }
        });
        match applied {
            Err(error) if self.salvage && error.is_damage() => {
                let what = format!("the commit at log position {position}");
                self.report.missing.push(MissingPart::new(None, what, &error));
            }
            applied => applied?,
        }
        self.version = std::mem::take(&mut self.version).at(epoch, position);
        self.report.records += 1;
        self.report.record_bytes += payload.len() as u64;
        Ok(())
    }

    /// Prepares the transactions of the checkpoint.
    pub(super) fn prepare(&mut self, payload: &[u8]) -> Result<()> {
        let position = self.version.position();
        let change = self.change(position, payload)?;
        let prepared = self.version.apply(&change, self.environment);
        self.version = prepared.map_err(|reason| OpenError::Misfit { position, reason })?;
        Ok(())
    }

    fn change(&self, position: Position, payload: &[u8]) -> Result<DatabaseChange> {
        let chunk = |id: ChunkFileId| -> std::result::Result<Arc<Chunk>, RecordFailure> {
            match self.chunks.get(&id) {
                Some(Ok(loaded)) => Ok(Arc::clone(&loaded.chunk)),
                Some(Err(error)) => Err(RecordFailure::Chunk(Arc::clone(error))),
                None => Err(RecordFailure::Unread(id)),
            }
        };
        decode_record(payload, chunk).map_err(|failure| match failure {
            RecordFailure::Record(error) => OpenError::record(position, error),
            RecordFailure::Chunk(error) => OpenError::Chunk(error),
            RecordFailure::Unread(id) => {
                OpenError::Manifest(format!("chunk file {id} was not read"))
            }
        })
    }

    /// The change without new rows whose chunks were not read; `first` is the error of one of them. Returns the error
    /// if chunks other than those of new rows are damaged.
    fn change_without_damaged(
        &mut self,
        position: Position,
        payload: &[u8],
        first: &Arc<DataFileError>,
    ) -> Result<DatabaseChange> {
        let chunk = |id: ChunkFileId| -> std::result::Result<Arc<Chunk>, RecordError> {
            Ok(match self.chunks.get(&id) {
                Some(Ok(loaded)) => Arc::clone(&loaded.chunk),
                _ => Arc::new(Chunk::empty()),
            })
        };
        let Ok(mut change) = decode_record(payload, chunk) else {
            return Err(OpenError::Chunk(Arc::clone(first)));
        };
        let mut created: HashMap<TableId, String> = HashMap::new();
        for step in &mut change.steps {
            let (table, change) = match step {
                ChangeStep::Table(table, change) => (table, change),
                ChangeStep::Catalog(CatalogChange::CreateTable { id, name, .. }) => {
                    created.insert(*id, name.to_string());
                    continue;
                }
                _ => continue,
            };
            let known = self.version.table_name(*table).map(ToString::to_string);
            let name = created.get(table).cloned().or(known);
            change.appended.retain(|appended| {
                let is_read = appended.chunk.rows > 0;
                if !is_read {
                    let error =
                        appended.file.and_then(|file| self.chunks.get(&file)?.as_ref().err());
                    let what = format!(
                        "rows from row {} on, of the commit at log position {position},",
                        appended.first
                    );
                    let missing = MissingPart::new(name.clone(), what, error.unwrap_or(first));
                    self.report.missing.push(missing);
                }
                is_read
            });
        }
        Ok(change)
    }

    /// Applies as many steps as fit: rows that they change may be missing.
    fn apply_steps(
        &mut self,
        mut version: DatabaseVersion,
        change: DatabaseChange,
        position: Position,
    ) -> DatabaseVersion {
        for step in change.steps {
            let change = DatabaseChange { steps: vec![step] };
            match version.apply(&change, self.environment) {
                Ok(next) => version = next,
                Err(error) => {
                    let table = change.durable_tables().next();
                    let table = table.and_then(|(id, _)| version.table_name(id));
                    let what = format!("changes of the commit at log position {position}");
                    let missing =
                        MissingPart::new(table.map(|name| name.to_string()), what, &error);
                    self.report.missing.push(missing);
                }
            }
        }
        version
    }
}

/// Why a record was not read.
enum RecordFailure {
    Record(RecordError),
    Chunk(Arc<DataFileError>),
    Unread(ChunkFileId),
}

impl From<RecordError> for RecordFailure {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}
