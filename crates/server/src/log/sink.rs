//! Log destinations: stdout or a file that is appended to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use parking_lot::Mutex;

use super::LogTarget;
use crate::error::ServerError;

/// Only for the owner: statements and role names are not for everyone.
const MODE: u32 = 0o600;

/// An open log.
#[derive(Debug)]
pub(super) struct LogSink {
    target: LogTarget,
    /// None writes to stdout.
    file: Mutex<Option<File>>,
}

impl LogSink {
    pub(super) fn open(target: &LogTarget) -> Result<Self, ServerError> {
        let file = Mutex::new(file_of(target)?);
        Ok(Self { target: target.clone(), file })
    }

    /// Reopens the file by its name.
    pub(super) fn reopen(&self) -> Result<(), ServerError> {
        let file = file_of(&self.target)?;
        *self.file.lock() = file;
        Ok(())
    }

    /// Writes a line in one call, so that lines of other processes cannot interleave.
    pub(super) fn write(&self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        match &mut *self.file.lock() {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stdout().lock().write_all(line.as_bytes()),
        }
    }

    pub(super) fn target(&self) -> &LogTarget {
        &self.target
    }
}

fn file_of(target: &LogTarget) -> Result<Option<File>, ServerError> {
    match target {
        LogTarget::Stdout => Ok(None),
        LogTarget::File(path) => append_to(path).map(Some),
    }
}

fn append_to(path: &Path) -> Result<File, ServerError> {
    let file = OpenOptions::new().append(true).create(true).mode(MODE).open(path);
    file.map_err(|error| ServerError::Log { path: path.to_owned(), error })
}
