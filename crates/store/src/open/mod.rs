//! Opening a data directory: from its files to the newest version of the database and a log to continue.
//!
//! ```text
//! Opening::begin   lock, manifest, files of tables, the records of the log; finds the chunks
//!    │ tasks()     each reads one chunk into memory at its home: run them on the workers of their nodes
//! Opening::finish  tables out of chunks, then the records, one by one; unused files are removed
//!    │ Opened      version, log, files of chunks, checkpoints, and a report
//!    └ durable            the same with sessions and the log's thread
//! ```
//!
//! A directory without files becomes a new database. Damage is an error that names the file and the place; with
//! [`OpenOptions::salvage`] damaged parts are left out and listed, nothing is written, and there is no log to
//! continue.

mod create;
mod error;
mod finish;
mod formats;
mod inspect;
mod progress;
mod replay;
mod report;
mod task;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::DatabaseId;
use crate::checkpoint::{Checkpoints, Manifest, StoredTable};
use crate::chunk_file::ChunkFiles;
use crate::data_file::DataFileError;
use crate::database::{DatabaseVersion, StoreEnvironment};
use crate::files::{DirectoryLock, Files};
use crate::ids::ChunkFileId;
use crate::log::{Log, LogOptions};
use crate::record::files_of_record;
use replay::ReadLog;

pub use error::OpenError;
pub use formats::{FileFormat, file_formats};
pub use inspect::{DirectoryInfo, TableInfo, check_directory, directory_info};
pub use progress::OpenProgress;
pub use report::{MissingPart, OpenReport};
pub use task::{RecoveredChunk, RecoveryTask};

/// How a data directory is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The schemas of a new database.
    pub schemas: Vec<Arc<str>>,
    /// The id of a new database; random if `None`.
    pub database: Option<DatabaseId>,
    /// Bytes of a new segment of the log.
    pub segment_bytes: u64,
    /// Whether a new database is created in a directory without one.
    pub create: bool,
    /// Whether damaged files are left out instead of refused.
    pub salvage: bool,
    /// Counts the progress.
    pub progress: Arc<OpenProgress>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            schemas: vec!["public".into()],
            database: None,
            segment_bytes: LogOptions::new(DatabaseId([0; 16])).segment_bytes,
            create: true,
            salvage: false,
            progress: Arc::default(),
        }
    }
}

/// A data directory that is being opened.
#[derive(Debug)]
pub struct Opening {
    files: Arc<dyn Files>,
    environment: StoreEnvironment,
    options: OpenOptions,
    lock: DirectoryLock,
    manifest: Manifest,
    chunks: Arc<ChunkFiles>,
    tables: Vec<StoredTable>,
    /// Chunk files that the manifest or the log names.
    named: BTreeSet<ChunkFileId>,
    log: OpeningLog,
    report: OpenReport,
}

/// The log of a directory that is being opened.
#[derive(Debug)]
enum OpeningLog {
    /// The log of a database just created.
    New(Log),
    /// The log as read.
    Read(ReadLog),
}

/// A data directory that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The newest version.
    pub version: DatabaseVersion,
    /// The log, to be written after its last record; `None` if the directory was salvaged.
    pub log: Option<Log>,
    /// Its checkpoints, with the files of its chunks.
    pub checkpoints: Arc<Checkpoints>,
    /// Held while the database is open.
    pub lock: DirectoryLock,
    /// The report.
    pub report: OpenReport,
}

type Result<T> = std::result::Result<T, OpenError>;

impl Opening {
    /// Locks the directory and finds the chunks.
    pub fn begin(
        files: Arc<dyn Files>,
        environment: StoreEnvironment,
        options: OpenOptions,
    ) -> Result<Self> {
        // Check this before creating a lock file in a directory that is not a database.
        create::check_directory(&*files)?;
        let lock = files.lock()?;
        let mut report = OpenReport::default();
        let (manifest, log) = match Manifest::read(&*files)? {
            Some(manifest) => (manifest, OpeningLog::Read(ReadLog::default())),
            None => {
                report.is_new = true;
                let (manifest, log) = create::create(&files, &options)?;
                (manifest, OpeningLog::New(log))
            }
        };
        let chunks = match options.salvage {
            true => ChunkFiles::reading(Arc::clone(&files), manifest.database),
            false => {
                ChunkFiles::open(Arc::clone(&files), manifest.database, manifest.last_chunk_file)?
            }
        };
        let mut opening = Self {
            files,
            environment,
            options,
            lock,
            manifest,
            chunks: Arc::new(chunks),
            tables: Vec::new(),
            named: BTreeSet::new(),
            log,
            report,
        };
        opening.read_tables()?;
        let prepared = opening.manifest.prepared_files().map_err(OpenError::prepared)?;
        opening.named.extend(prepared);
        opening.read_log()?;
        opening.options.progress.expect_chunks(opening.named.len() as u64);
        Ok(opening)
    }

    /// The work that can be done in parallel, before [`finish`](Self::finish).
    pub fn tasks(&self) -> Vec<RecoveryTask> {
        let (arena, progress) = (&self.environment.arena, &self.options.progress);
        let task = |id: &ChunkFileId| {
            RecoveryTask::new(&self.chunks, *id, arena.clone(), Arc::clone(progress))
        };
        self.named.iter().map(task).collect()
    }

    fn read_tables(&mut self) -> Result<()> {
        for (id, file) in &self.manifest.tables {
            match StoredTable::read(&*self.files, self.manifest.database, file.number) {
                Ok(table) if table.id == *id => {
                    self.named.extend(table.entries.iter().map(|entry| entry.file));
                    self.tables.push(table);
                }
                Ok(_) => return Err(OpenError::Manifest(format!("table {id} has another's file"))),
                Err(error) if self.options.salvage && error.is_damage() => {
                    let name = self.manifest.name_of(*id);
                    let missing = MissingPart::new(Some(name), "all rows", &error);
                    self.report.missing.push(missing);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the log, and finds the chunks that its records name, so that they are read in parallel too.
    fn read_log(&mut self) -> Result<()> {
        let OpeningLog::Read(_) = &self.log else { return Ok(()) };
        let (options, salvage) = (self.log_options(), self.options.salvage);
        let mut read = ReadLog::default();
        let reading = read.fill(&self.files, options, self.manifest.start, |record| {
            self.options.progress.expect_record();
            match files_of_record(record.payload) {
                Ok(files) => self.named.extend(files),
                // Applying the record reports the error.
                Err(_) if salvage => {}
                Err(reason) => return Err(OpenError::record(record.position, reason)),
            }
            Ok(())
        });
        match reading {
            Err(error) if salvage && error.is_damage() => read.damage = Some(error),
            other => other?,
        }
        self.log = OpeningLog::Read(read);
        Ok(())
    }

    fn log_options(&self) -> LogOptions {
        LogOptions { database: self.manifest.database, segment_bytes: self.options.segment_bytes }
    }
}

impl From<crate::files::FileError> for OpenError {
    fn from(error: crate::files::FileError) -> Self {
        Self::File(DataFileError::File(error))
    }
}
