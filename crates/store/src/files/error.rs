//! Why a call of the file layer failed.

use std::fmt;
use std::io;

/// A call of the file layer that failed: what was tried, with which file, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {operation} {file}: {reason}")]
pub struct FileError {
    /// What was tried.
    pub operation: FileOperation,
    /// The file or directory, as a path that a user can find.
    pub file: String,
    /// What kind of answer the error asks for.
    pub kind: FileErrorKind,
    /// The system's text, or what was found instead.
    pub reason: String,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileOperation {
    /// Lock the data directory.
    Lock,
    /// Make a file or directory.
    Create,
    /// Open a file.
    Open,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Change a file's length.
    Truncate,
    /// Bring a file or directory to disk.
    Sync,
    /// Give a file another name.
    Rename,
    /// Remove a file.
    Remove,
    /// List a directory.
    List,
}

/// What kind of answer a [`FileError`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileErrorKind {
    /// The file or directory does not exist.
    NotFound,
    /// The name is taken.
    Exists,
    /// The file ends before what was to be read.
    Ended,
    /// The disk, a quota or the largest file size is used up: it works again when space is free.
    NoSpace,
    /// Another process holds the data directory, this one where its number is known.
    Locked(Option<u32>),
    /// Anything else.
    Failed,
}

impl FileError {
    /// The error that the system gave.
    pub fn new(operation: FileOperation, file: impl Into<String>, error: &io::Error) -> Self {
        let kind = FileErrorKind::of(error);
        Self { operation, file: file.into(), kind, reason: error.to_string() }
    }

    /// Whether it works again when space is free.
    pub fn is_no_space(&self) -> bool {
        self.kind == FileErrorKind::NoSpace
    }
}

impl FileErrorKind {
    fn of(error: &io::Error) -> Self {
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
