//! Errors of the log.

use std::sync::Arc;

use super::{FORMAT_VERSION, PAYLOAD_BYTES_MAX, Position};
use crate::files::FileError;

/// An error of the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A call of the file layer failed.
    #[error(transparent)]
    File(FileError),
    /// The disk is full. The record was not taken; all records before it are safe, and the log accepts
    /// records again when there is space.
    #[error("no space for the log: {0}; free space on that disk and repeat the change")]
    NoSpace(FileError),
    /// The log is damaged below a position that was synced.
    #[error(
        "{file} is damaged at log position {position}: {reason}; the log was synced up to position \
         {synced}, so acknowledged changes are missing: restore the file from a copy"
    )]
    Corrupt {
        /// The segment, by its name in the data directory.
        file: String,
        /// Position of the first record that cannot be read.
        position: Position,
        /// What is wrong with it.
        reason: String,
        /// Position up to which the log is known to have been synced.
        synced: Position,
    },
    /// A segment belongs to another database.
    #[error("{file} is a log segment of another database; move it out of this data directory")]
    Foreign {
        /// The segment.
        file: String,
    },
    /// A segment was written by a later version of Atoll.
    #[error(
        "{file} has version {version} of the log's format; this version of Atoll reads up to version \
         {FORMAT_VERSION}: open the database with the version that wrote it, or a later one"
    )]
    NewerFormat {
        /// The segment.
        file: String,
        /// Its version.
        version: u32,
    },
    /// A log is to be created where one exists.
    #[error("{file} already contains records of a log; open the log instead of creating one")]
    Exists {
        /// The segment.
        file: String,
    },
    /// A payload larger than a record may be.
    #[error("a log record of {bytes} bytes is too large; the limit is {PAYLOAD_BYTES_MAX} bytes")]
    TooLarge {
        /// Bytes of the payload.
        bytes: u64,
    },
    /// An invalid segment size.
    #[error(
        "invalid size of a log segment: {bytes} bytes; expected a multiple of 4096, at least 8192"
    )]
    SegmentSize {
        /// The size.
        bytes: u64,
    },
    /// An earlier error stopped the log.
    #[error("the log stopped when it failed: {0}; open the database again")]
    Stopped(Arc<LogError>),
    /// The log's thread panicked.
    #[error("the log's thread panicked")]
    Panicked,
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
}

impl From<FileError> for LogError {
    fn from(error: FileError) -> Self {
        if error.is_no_space() { Self::NoSpace(error) } else { Self::File(error) }
    }
}

impl LogError {
    /// The error of all calls after this one.
    pub(super) fn stop(&self) -> Self {
        match self {
            Self::Stopped(_) => self.clone(),
            first => Self::Stopped(Arc::new(first.clone())),
        }
    }
}
