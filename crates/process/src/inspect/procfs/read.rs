//! Reading the files of a process, which may end or become inaccessible at any moment.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use atoll_sys::{Root, RootError};

use crate::inspect::InspectError;

/// Longest line: a path of 4096 bytes, each written as `\ooo`, and some slack.
const LINE_BYTES_MAX: u64 = 32 << 10;
/// Most lines of one file: 250 times the kernel's default limit of mappings.
const LINES_MAX: u64 = 1 << 24;
/// The kernel's error for reading a file whose process has ended since it was opened.
const ESRCH: i32 = 3;

/// Why a file of a process could not be read.
#[derive(Debug)]
pub(in crate::inspect) enum Unread {
    /// The file does not exist: the process or thread has ended, or the kernel has no such file.
    Absent,
    /// The caller lacks the rights.
    Denied,
    /// Anything else.
    Failed(InspectError),
}

impl From<RootError> for Unread {
    fn from(error: RootError) -> Self {
        match error {
            RootError::NotFound { .. } => Self::Absent,
            RootError::Denied { .. } => Self::Denied,
            RootError::Failed { path, source } => Self::from_io(&path, source),
            error => Self::Failed(error.into()),
        }
    }
}

impl From<InspectError> for Unread {
    fn from(error: InspectError) -> Self {
        Self::Failed(error)
    }
}

impl Unread {
    fn from_io(path: &Path, source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Absent,
            ErrorKind::PermissionDenied => Self::Denied,
            _ if source.raw_os_error() == Some(ESRCH) => Self::Absent,
            _ => Self::Failed(RootError::Failed { path: path.to_owned(), source }.into()),
        }
    }
}

/// The text of a small file. Names may contain any bytes: invalid UTF-8 is replaced.
pub(in crate::inspect) fn text(root: &Root, name: &str) -> Result<String, Unread> {
    let bytes = root.read_bytes(name)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The same; `None` if it cannot be read.
pub(in crate::inspect) fn text_if_readable(root: &Root, name: &str) -> Option<String> {
    text(root, name).ok()
}

/// An error for a malformed line.
pub(in crate::inspect) fn malformed(
    path: &Path,
    line: u64,
    expected: &'static str,
    found: &str,
) -> InspectError {
    let found = found.trim().chars().take(60).collect();
    InspectError::Malformed { path: path.to_owned(), line, expected, found }
}

/// The lines of a file of any length, one at a time.
pub(in crate::inspect) struct FileLines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
}

impl FileLines {
    pub(in crate::inspect) fn open(root: &Root, name: &str) -> Result<Self, Unread> {
        let path = root.path(name)?;
        match File::open(&path) {
            Ok(file) => {
                Ok(Self { path, reader: BufReader::new(file), buffer: Vec::new(), number: 0 })
            }
            Err(error) => Err(Unread::from_io(&path, error)),
        }
    }

    /// The next line without its end; `None` after the last.
    pub(in crate::inspect) fn next(&mut self) -> Result<Option<Cow<'_, str>>, Unread> {
        self.buffer.clear();
        let mut limited = (&mut self.reader).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut self.buffer);
        let length = read.map_err(|error| Unread::from_io(&self.path, error))?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if length as u64 == LINE_BYTES_MAX {
            return Err(self.malformed("a line of at most 32 KiB", "a longer one").into());
        }
        if self.number > LINES_MAX {
            return Err(self.malformed("at most 16777216 lines", "more").into());
        }
        Ok(Some(String::from_utf8_lossy(&self.buffer)))
    }

    /// An error for the line just read.
    pub(in crate::inspect) fn malformed(
        &self,
        expected: &'static str,
        found: &str,
    ) -> InspectError {
        malformed(&self.path, self.number, expected, found)
    }
}

/// The value of a line such as `VmRSS: 1712 kB` or `se.nr_migrations   :   3`, trimmed.
pub(in crate::inspect) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
        Some(value.trim())
    })
}
