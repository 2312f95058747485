//! One checkpoint, step by step.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::manifest::{Manifest, TableFile};
use super::table_file::{
    StoredTable, TABLE_DIRECTORY, encode_table_file, table_file_name, table_file_number,
};
use super::{CheckpointError, Checkpoints};
use crate::change::{ChangeStep, DatabaseChange, PreparedTransaction};
use crate::data_file::DataFileError;
use crate::database::DatabaseVersion;
use crate::files::FileError;
use crate::ids::{ChunkFileId, Epoch, TableId};
use crate::log::{Position, RecoveryStart, truncate_before};
use crate::record::{RecordError, encode_record};
use crate::table::{Chunk, TableVersion};

/// A checkpoint in progress. If dropped before its end, it leaves the last one unchanged, and files that the
/// next one removes.
pub struct Checkpoint {
    shared: Arc<Checkpoints>,
    version: Arc<DatabaseVersion>,
    work: VecDeque<CheckpointWork>,
    /// Files of chunks that were no longer in use when the version was pinned.
    unused: Vec<ChunkFileId>,
    tables: BTreeMap<TableId, TableFile>,
    /// Chunks that are written but not synced.
    written: Vec<(Arc<Chunk>, TableId, ChunkFileId)>,
    report: CheckpointReport,
}

/// A piece of the work.
enum CheckpointWork {
    Chunk(Arc<Chunk>, TableId),
    /// Syncs these chunks and their names: together, because each sync writes the file system's metadata.
    SyncChunks,
    Table(TableId),
    WaitForLog,
    Manifest,
    Switch,
    Clean,
}

/// The state of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointState {
    /// There is more to do.
    Working,
    /// It continues when the log is synced up to this position.
    NeedsLog(Position),
    /// It is on disk.
    Done(CheckpointReport),
}

/// What a checkpoint did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointReport {
    /// Commits that it holds.
    pub epoch: Epoch,
    /// Position in the log after the last record that it holds.
    pub position: Position,
    /// Number of chunks written.
    pub chunks: u64,
    /// Bytes of their files.
    pub chunk_bytes: u64,
    /// Number of tables written.
    pub tables: u64,
    /// Bytes of their files and of the manifest.
    pub table_bytes: u64,
    /// Number of files removed, including those of the log.
    pub removed: u64,
    /// Why files that are no longer needed were not removed. The next checkpoint tries again.
    pub not_removed: Option<FileError>,
}

type Result<T> = std::result::Result<T, CheckpointError>;

impl Checkpoint {
    pub(super) fn begin(
        shared: Arc<Checkpoints>,
        newest: impl FnOnce() -> Arc<DatabaseVersion>,
    ) -> Result<Self> {
        // The order matters: see `ChunkFiles::unused`.
        let unused = shared.chunks.unused().map_err(DataFileError::from)?;
        let version = newest().durable();
        let report = CheckpointReport {
            epoch: version.epoch(),
            position: version.position(),
            ..CheckpointReport::default()
        };
        let mut begun = Self {
            shared,
            version,
            work: VecDeque::new(),
            unused,
            tables: BTreeMap::new(),
            written: Vec::new(),
            report,
        };
        begun.plan();
        Ok(begun)
    }

    /// The version that it holds.
    pub fn version(&self) -> &Arc<DatabaseVersion> {
        &self.version
    }

    fn plan(&mut self) {
        let last = self.shared.last.lock();
        let mut changed = Vec::new();
        for (id, table) in self.version.tables() {
            match last.tables.get(&id) {
                Some((same, file)) if std::ptr::eq(same.as_ptr(), Arc::as_ptr(table)) => {
                    self.tables.insert(id, *file);
                }
                _ => changed.push((id, table)),
            }
        }
        for (id, table) in &changed {
            let new = table.entries().filter(|entry| entry.file().is_none());
            let new = new.map(|entry| CheckpointWork::Chunk(Arc::clone(entry.chunk()), *id));
            self.work.extend(new);
        }
        if !self.work.is_empty() {
            self.work.push_back(CheckpointWork::SyncChunks);
        }
        self.work.extend(changed.iter().map(|(id, _)| CheckpointWork::Table(*id)));
        self.work.extend([
            CheckpointWork::WaitForLog,
            CheckpointWork::Manifest,
            CheckpointWork::Switch,
            CheckpointWork::Clean,
        ]);
    }

    /// Does the next step; `synced` is the position up to which the log is on disk.
    pub fn step(&mut self, synced: Position) -> Result<CheckpointState> {
        match self.work.front() {
            None => return Ok(CheckpointState::Done(self.report.clone())),
            Some(CheckpointWork::WaitForLog) if synced < self.version.position() => {
                return Ok(CheckpointState::NeedsLog(self.version.position()));
            }
            Some(CheckpointWork::WaitForLog) => {}
            Some(CheckpointWork::Chunk(chunk, table)) => {
                let (chunk, table) = (Arc::clone(chunk), *table);
                self.write_chunk(&chunk, table)?;
            }
            Some(CheckpointWork::SyncChunks) => self.sync_chunks()?,
            Some(CheckpointWork::Table(table)) => self.write_table(*table)?,
            Some(CheckpointWork::Manifest) => self.write_manifest(synced)?,
            Some(CheckpointWork::Switch) => self.switch()?,
            Some(CheckpointWork::Clean) => {
                if let Err(error) = self.clean() {
                    self.report.not_removed = Some(error);
                }
            }
        }
        self.work.pop_front();
        match self.work.is_empty() {
            true => Ok(CheckpointState::Done(self.report.clone())),
            false => Ok(CheckpointState::Working),
        }
    }

    fn table(&self, id: TableId) -> Option<&Arc<TableVersion>> {
        self.version.table(id)
    }

    fn write_chunk(&mut self, chunk: &Arc<Chunk>, id: TableId) -> Result<()> {
        let Some(table) = self.table(id) else { return Ok(()) };
        let written = self.shared.chunks.write(chunk, &table.definition().columns)?;
        self.report.chunks += u64::from(written.bytes > 0);
        self.report.chunk_bytes += written.bytes;
        self.written.push((Arc::clone(chunk), id, written.id));
        Ok(())
    }

    fn sync_chunks(&mut self) -> Result<()> {
        let chunks = &self.shared.chunks;
        let synced = self.written.iter().try_for_each(|(_, _, file)| chunks.sync(*file));
        synced.and_then(|()| chunks.sync_names()).map_err(DataFileError::from)?;
        for (chunk, table, file) in std::mem::take(&mut self.written) {
            let entries = self.version.table(table).into_iter().flat_map(|table| table.entries());
            for entry in entries.filter(|entry| Arc::ptr_eq(entry.chunk(), &chunk)) {
                entry.set_file(file);
            }
        }
        Ok(())
    }

    fn write_table(&mut self, id: TableId) -> Result<()> {
        let Some(table) = self.version.table(id) else { return Ok(()) };
        let payload = encode_table_file(id, table)?;
        let number = {
            let mut last = self.shared.last.lock();
            last.table_file += 1;
            last.table_file
        };
        let bytes =
            StoredTable::write(&*self.shared.files, self.shared.database, number, &payload)?;
        let chunks = table.entries().filter_map(|entry| entry.chunk().copies.first());
        let file = TableFile {
            number,
            rows: table.rows() as u64,
            chunk_bytes: chunks.map(|copy| copy.memory.len() as u64).sum(),
        };
        self.tables.insert(id, file);
        self.report.tables += 1;
        self.report.table_bytes += bytes;
        Ok(())
    }

    fn write_manifest(&mut self, synced: Position) -> Result<()> {
        let contents = self.version.contents();
        let last_table_file = self.shared.last.lock().table_file;
        let prepared = prepared_record(contents.prepared)?;
        let manifest = Manifest {
            database: self.shared.database,
            epoch: contents.epoch,
            start: RecoveryStart { from: contents.position, synced },
            last_chunk_file: self.shared.chunks.last(),
            last_table_file,
            next_table: contents.next_table,
            next_sequence: contents.next_sequence,
            schemas: contents.schemas,
            relations: contents.relations,
            sequences: contents.sequences,
            tables: self.tables.clone(),
            prepared,
        };
        self.report.table_bytes += manifest.write_beside(&*self.shared.files)?;
        Ok(())
    }

    /// From here on the checkpoint is valid.
    fn switch(&mut self) -> Result<()> {
        Manifest::switch(&*self.shared.files).map_err(DataFileError::from)?;
        let mut last = self.shared.last.lock();
        last.from = self.version.position();
        let file = |(id, table): (TableId, &Arc<TableVersion>)| {
            Some((id, (Arc::downgrade(table), *self.tables.get(&id)?)))
        };
        last.tables = self.version.tables().filter_map(file).collect();
        Ok(())
    }

    fn clean(&mut self) -> std::result::Result<(), FileError> {
        let files = Arc::clone(&self.shared.files);
        let removed = truncate_before(&*files, self.version.position());
        self.report.removed += removed.or_else(|error| match error {
            crate::log::LogError::File(error) | crate::log::LogError::NoSpace(error) => Err(error),
            _ => Ok(0),
        })?;
        for number in files.list(TABLE_DIRECTORY)?.iter().filter_map(|name| table_file_number(name))
        {
            if !self.tables.values().any(|file| file.number == number) {
                files.remove(&table_file_name(number))?;
                self.report.removed += 1;
            }
        }
        for id in &self.unused {
            self.shared.chunks.remove(*id)?;
            self.report.removed += 1;
        }
        Ok(())
    }
}

/// A record that prepares these transactions; empty if there are none.
fn prepared_record(
    prepared: Vec<(Arc<str>, Arc<PreparedTransaction>)>,
) -> std::result::Result<Vec<u8>, RecordError> {
    if prepared.is_empty() {
        return Ok(Vec::new());
    }
    let steps = prepared.into_iter().map(|(name, of)| ChangeStep::Prepare(name, of));
    encode_record(&DatabaseChange { steps: steps.collect() })
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint")
            .field("report", &self.report)
            .field("steps_left", &self.work.len())
            .finish_non_exhaustive()
    }
}
