//! Why a data directory was not opened.

use std::sync::Arc;

use crate::data_file::DataFileError;
use crate::database::ApplyError;
use crate::files::FileErrorKind;
use crate::log::{LogError, Position};
use crate::record::RecordError;
use crate::table::TableError;

/// Why a data directory was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file other than the log is missing, damaged, from another database, or of a newer version.
    #[error(transparent)]
    File(#[from] DataFileError),
    /// The file of a chunk cannot be used.
    #[error(transparent)]
    Chunk(Arc<DataFileError>),
    /// The file of a chunk cannot be used, and its table is known.
    #[error("table {table}: {reason}")]
    TableChunk {
        /// The table.
        table: String,
        /// What is wrong with the file.
        reason: Arc<DataFileError>,
    },
    /// The log is damaged or cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A record of the log is intact but its contents are invalid.
    #[error("the record of the log that ends at position {position} cannot be used: {reason}")]
    Record {
        /// The position after the record.
        position: Position,
        /// What is wrong with it.
        reason: RecordError,
    },
    /// A record does not fit the database made by the records before it.
    #[error(
        "the record of the log that ends at position {position} does not fit the database before it: {reason}"
    )]
    Misfit {
        /// The position after the record.
        position: Position,
        /// What does not fit.
        reason: ApplyError,
    },
    /// The manifest does not match the files that it names.
    #[error(
        "the manifest does not fit the files that it names: {0}; restore the directory from a copy"
    )]
    Manifest(String),
    /// The parts of a table do not match.
    #[error("the parts of table {table} do not match: {reason}; restore the directory from a copy")]
    Table {
        /// The table.
        table: String,
        /// What does not fit.
        reason: TableError,
    },
    /// A directory with other files and no database.
    #[error(
        "the directory holds no database, but {file}; give a directory of a database, or an empty one for a new \
         database"
    )]
    NotADatabase {
        /// One of the files in it.
        file: String,
    },
    /// A directory without a database, but one was to be opened.
    #[error("the directory holds no database")]
    Empty,
    /// The log's thread could not be started.
    #[error("the thread of the log could not be started: {0}")]
    Thread(std::io::Error),
    /// The kernel returned no random numbers for the id of a new database.
    #[error("cannot generate the id of a new database: {0}")]
    Random(std::io::Error),
}

impl OpenError {
    pub(super) fn record(position: Position, reason: RecordError) -> Self {
        Self::Record { position, reason }
    }

    /// The prepared transactions of a manifest cannot be read.
    pub(crate) fn prepared(reason: RecordError) -> Self {
        Self::Manifest(format!("its prepared transactions cannot be read: {reason}"))
    }

    /// Whether a database of this process has the directory open.
    pub fn is_open_here(&self) -> bool {
        let Self::File(DataFileError::File(error)) = self else { return false };
        error.kind == FileErrorKind::Locked(Some(std::process::id()))
    }

    /// Whether something is damaged or missing, so that salvaging the rest may help.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::File(error) => error.is_damage(),
            Self::Chunk(reason) | Self::TableChunk { reason, .. } => reason.is_damage(),
            Self::Log(error) => matches!(error, LogError::Corrupt { .. }),
            Self::Record { reason, .. } => !matches!(reason, RecordError::NewerFormat(_)),
            Self::Misfit { .. } | Self::Manifest(_) | Self::Table { .. } => true,
            Self::NotADatabase { .. } | Self::Empty | Self::Thread(_) | Self::Random(_) => false,
        }
    }
}
