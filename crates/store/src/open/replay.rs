//! Applying the records of the log to the version that the checkpoint holds.

use std::collections::HashMap;
use std::sync::Arc;

use super::report::MissingPart;
use super::task::RegisteredChunk;
use super::{OpenError, OpenReport, Result};
use crate::data_file::DataFileError;
use crate::database::{DatabaseChange, DatabaseVersion, StoreEnvironment};
use crate::files::Files;
use crate::ids::{ChunkFileId, Epoch};
use crate::log::{Log, LogOptions, LogRecord, Position, Recovery, RecoveryStart};
use crate::record::{RecordError, decode_record};
use crate::table::Chunk;

/// Chunks that were read, or why not.
pub(super) type LoadedChunks =
    HashMap<ChunkFileId, std::result::Result<RegisteredChunk, Arc<DataFileError>>>;

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

/// Versions from record to record.
pub(super) struct Replay<'a> {
    pub(super) version: DatabaseVersion,
    pub(super) environment: &'a StoreEnvironment,
    pub(super) chunks: &'a LoadedChunks,
    pub(super) report: &'a mut OpenReport,
    pub(super) salvage: bool,
}

impl Replay<'_> {
    /// Applies all records that are left.
    pub(super) fn run(&mut self, recovery: &mut Recovery) -> Result<()> {
        while let Some(record) = recovery.next_record()? {
            self.apply(record)?;
        }
        Ok(())
    }

    fn apply(&mut self, record: LogRecord<'_>) -> Result<()> {
        let LogRecord { position, payload } = record;
        let epoch = Epoch::new(self.version.epoch().get() + 1);
        let applied = self.change(position, payload).and_then(|change| {
            let applied = self.version.apply(&change, self.environment);
            applied.map_err(|reason| (change, OpenError::Misfit { position, reason })).or_else(
                |(change, error)| match self.salvage {
                    true => Ok(self.apply_steps(change, position)),
                    false => Err(error),
                },
            )
        });
        let next = match applied {
            Err(error) if self.salvage && error.is_damage() => {
                let what = format!("the commit at log position {position}");
                self.report.missing.push(MissingPart::new(None, what, &error));
                self.version.clone()
            }
            applied => applied?,
        };
        self.version = next.at(epoch, position);
        self.report.records += 1;
        self.report.record_bytes += payload.len() as u64;
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

    /// Applies as many steps as fit: rows that they change may be missing.
    fn apply_steps(&mut self, change: DatabaseChange, position: Position) -> DatabaseVersion {
        let mut version = self.version.clone();
        for step in change.steps {
            let change = DatabaseChange { steps: vec![step] };
            match version.apply(&change, self.environment) {
                Ok(next) => version = next,
                Err(error) => {
                    let table = change.tables().next();
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
