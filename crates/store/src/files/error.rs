//! Errors of the file layer.

use std::fmt;
use std::io;

/// A failed call of the file layer: the operation, the file and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {file}: {reason}")]
pub struct FileError {
    /// The operation.
    pub operation: FileOperation,
    /// The file or directory, as a path that a user can find.
    pub file: String,
    /// The kind, which decides the reaction.
    pub kind: FileErrorKind,
    /// The system's message, or what was found instead.
    pub reason: String,
}

/// An operation of the file layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOperation {
    /// Lock the data directory.
    Lock,
    /// Create a file or directory.
    Create,
    /// Open a file.
    Open,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Change a file's length.
    Truncate,
    /// Sync a file or directory.
    Sync,
    /// Rename a file.
    Rename,
    /// Remove a file.
    Remove,
    /// List a directory.
    List,
}

/// The kind of a [`FileError`], which decides the reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileErrorKind {
    /// The file or directory does not exist.
    NotFound,
    /// The name is in use.
    Exists,
    /// The file ends before the range to be read.
    Ended,
    /// The disk, a quota or the maximum file size is used up: the operation works again when space is free.
    NoSpace,
    /// Another process holds the data directory, this one where its number is known.
    Locked(Option<u32>),
    /// Anything else.
    Failed,
}

impl FileError {
    /// The error returned by the system.
    pub fn new(operation: FileOperation, file: impl Into<String>, error: &io::Error) -> Self {
        let kind = FileErrorKind::from_io(error);
        Self { operation, file: file.into(), kind, reason: error.to_string() }
    }

    /// Whether it works again when space is free.
    pub fn is_no_space(&self) -> bool {
        self.kind == FileErrorKind::NoSpace
    }
}

impl FileErrorKind {
    fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::Exists,
            io::ErrorKind::UnexpectedEof => Self::Ended,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoSpace,
            _ => Self::Failed,
        }
    }
}

impl fmt::Display for FileOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::Create => "create",
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Truncate => "change the length of",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::List => "list",
        })
    }
}
