//! The directory of a backup, which gets its name when it is complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BackupError, Result};
use crate::files::{FileErrorKind, Files, LiveFiles};

/// A new directory with the name `<name>.partial`. It is removed if dropped before [`finish`](Self::finish).
#[derive(Debug)]
pub struct BackupTarget {
    path: PathBuf,
    partial: PathBuf,
    live: LiveFiles,
    files: Arc<dyn Files>,
    is_finished: bool,
}

impl BackupTarget {
    /// Creates the directory. Its parent must exist.
    pub fn create(path: &Path) -> Result<Self> {
        let name = path.file_name().filter(|_| path.symlink_metadata().is_err());
        let Some(name) = name else { return Err(BackupError::Exists(path.to_owned())) };
        let mut partial = name.to_owned();
        partial.push(".partial");
        let partial = path.with_file_name(partial);
        let live = LiveFiles::create_new(&partial).map_err(|error| match error.kind {
            FileErrorKind::Exists => BackupError::Unfinished(partial.clone()),
            _ => error.into(),
        })?;
        let files = Arc::new(live.clone());
        Ok(Self { path: path.to_owned(), partial, live, files, is_finished: false })
    }

    /// Where the copy is written.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Gives the directory its name when the copy is complete.
    pub fn finish(mut self) -> Result<()> {
        self.live.move_to(&self.path)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for BackupTarget {
    fn drop(&mut self) {
        if !self.is_finished {
            // What remains cannot be opened, and its name ends in `.partial`.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}
