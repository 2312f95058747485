//! The file layer: every access to a data directory goes through [`Files`] and [`DataFile`], so that
//! tests can cut the power at any call and make any call fail.
//!
//! Names are paths relative to the data directory, with `/` between directory and file
//! (`log/00000000000000000000.log`). What a call promises when it returns without an error:
//!
//! | Call | Promise |
//! |---|---|
//! | [`Files::create_directory`], [`Files::create`], [`Files::rename`], [`Files::remove`] | the change of names is on disk: the directory was synced |
//! | [`Files::create`] with a size | every byte was written as zero and synced, so overwriting it needs no more space and syncing it no metadata |
//! | [`DataFile::write_at`] | reads see all of it; on disk it may be there, missing or in part until the next sync |
//! | [`DataFile::sync_data`] | all writes before are on disk, with the file's length |
//!
//! A call that fails may have happened, in part or not at all. A sync that failed must not be tried
//! again: the kernel may have dropped what it could not write, and a second sync would succeed without it.

use std::fmt;
use std::sync::Arc;

mod error;
mod live;

pub use error::{FileError, FileErrorKind, FileOperation};
pub(crate) use live::LOCK_NAME;
pub use live::LiveFiles;

/// A data directory and the files in it.
pub trait Files: fmt::Debug + Send + Sync {
    /// Locks the directory for this process until the lock is dropped or the process ends, whatever
    /// ends it. The reason of an error of kind [`FileErrorKind::Locked`] names the process that holds it.
    fn lock(&self) -> Result<DirectoryLock, FileError>;

    /// Creates a directory, which may exist already.
    fn create_directory(&self, name: &str) -> Result<(), FileError>;

    /// A new file of this many zeros; 0 for one that grows as it is written. Returns an error of kind
    /// [`FileErrorKind::Exists`] if the name is in use. If it fails, nothing of the file is left
    /// unless removing it fails too.
    fn create(&self, name: &str, bytes: u64) -> Result<Arc<dyn DataFile>, FileError>;

    /// A new file that takes this many bytes of the disk, with any contents, until it is removed; otherwise like
    /// [`create`](Self::create).
    fn reserve(&self, name: &str, bytes: u64) -> Result<(), FileError> {
        self.create(name, bytes).map(drop)
    }

    /// A new file that grows as it is written. Its name is on disk when [`sync_names`](Self::sync_names) returns;
    /// otherwise like [`create`](Self::create).
    fn create_unsynced(&self, name: &str) -> Result<Arc<dyn DataFile>, FileError>;

    /// Waits until the names of files in a directory are on disk.
    fn sync_names(&self, directory: &str) -> Result<(), FileError>;

    /// An existing file, for reading and writing.
    fn open(&self, name: &str) -> Result<Arc<dyn DataFile>, FileError>;

    /// Renames a file, replacing a file that has the new name, in one step.
    fn rename(&self, from: &str, to: &str) -> Result<(), FileError>;

    /// Removes a file.
    fn remove(&self, name: &str) -> Result<(), FileError>;

    /// Names of the files in a directory, without the directory's, sorted; empty if the directory does not exist.
    /// The empty name is the data directory itself.
    fn list(&self, directory: &str) -> Result<Vec<String>, FileError>;
}

/// An open file of a data directory. Threads may read and write different parts at the same time.
pub trait DataFile: fmt::Debug + Send + Sync {
    /// Its name in the data directory when it was opened.
    fn name(&self) -> &str;

    /// Its length now.
    fn bytes(&self) -> Result<u64, FileError>;

    /// Fills the buffer. Returns an error of kind [`FileErrorKind::Ended`] if the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError>;

    /// Writes all of the bytes; the file grows if they reach beyond its end.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError>;

    /// Cuts the file off at this length, or fills it up with zeros to it.
    fn truncate(&self, bytes: u64) -> Result<(), FileError>;

    /// Starts writing dirty data to disk without waiting: a hint, so that a later
    /// [`sync_data`](Self::sync_data) has less to wait for.
    fn begin_sync(&self) {}

    /// Waits until everything written is on disk.
    fn sync_data(&self) -> Result<(), FileError>;
}

/// The lock of a data directory. Dropping it releases the directory.
pub struct DirectoryLock(#[expect(dead_code, reason = "held, never read")] Box<dyn Send + Sync>);

impl DirectoryLock {
    /// A lock that holds while `guard` lives.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for DirectoryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryLock")
    }
}

/// The directory part of a name; empty for a file of the data directory itself.
pub(crate) fn directory_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}
