//! The format versions of the files of a data directory, read without opening it: nothing is locked or
//! written, so a server may have it open.

use std::collections::BTreeMap;

use super::{OpenError, Result};
use crate::checkpoint::{MANIFEST, TABLE_DIRECTORY};
use crate::chunk_file::CHUNK_DIRECTORY;
use crate::data_file::{
    DATA_FORMAT_VERSION, DataFileError, FIRST_DATA_FORMAT, MANIFEST_FORMAT_VERSION,
};
use crate::files::{FileError, FileErrorKind, Files};
use crate::log::{FORMAT_VERSION, LOG_DIRECTORY};

/// Bytes at the beginning of all files: their kind and the version of their format.
const HEADER_BYTES: usize = 12;

/// Directories, the kind of their files, how they begin, and the newest version that is written.
const KINDS: [(&str, &str, &[u8; 8], u32); 4] = [
    ("", "manifest", b"ATOLLMAN", MANIFEST_FORMAT_VERSION),
    (TABLE_DIRECTORY, "tables", b"ATOLLTAB", DATA_FORMAT_VERSION),
    (CHUNK_DIRECTORY, "chunks", b"ATOLLCHK", FIRST_DATA_FORMAT),
    (LOG_DIRECTORY, "log", b"ATOLLLOG", FORMAT_VERSION),
];

/// Files of one kind in one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFormat {
    /// `manifest`, `tables`, `chunks` or `log`.
    pub what: &'static str,
    /// The version of their format.
    pub version: u32,
    /// The newest version that this program writes and reads.
    pub written: u32,
    /// Number of files.
    pub files: u64,
}

impl FileFormat {
    /// Whether this program reads it.
    pub fn is_read(&self) -> bool {
        self.version <= self.written
    }
}

/// The formats of the files of a data directory.
///
/// # Errors
/// If there is no database in the directory, or a file does not begin like others of its kind.
pub fn file_formats(files: &dyn Files) -> Result<Vec<FileFormat>> {
    let mut formats = Vec::new();
    for (directory, what, magic, written) in KINDS {
        let mut counts = BTreeMap::<u32, u64>::new();
        for name in files.list(directory)? {
            let is_manifest = directory.is_empty();
            if is_manifest && name != MANIFEST {
                continue;
            }
            let name = if is_manifest { name } else { format!("{directory}/{name}") };
            if let Some(version) = version(files, &name, magic)? {
                *counts.entry(version).or_default() += 1;
            }
        }
        let format = |(version, files)| FileFormat { what, version, written, files };
        formats.extend(counts.into_iter().map(format));
    }
    match formats.iter().any(|format| format.what == KINDS[0].1) {
        true => Ok(formats),
        false => Err(OpenError::Empty),
    }
}

/// The version of a file. Returns None if it no longer exists, or is a segment of the log not in use yet.
fn version(files: &dyn Files, name: &str, magic: &[u8; 8]) -> Result<Option<u32>> {
    let mut header = [0; HEADER_BYTES];
    match files.open(name).and_then(|file| file.read_at(0, &mut header)) {
        Err(FileError { kind: FileErrorKind::NotFound, .. }) => return Ok(None),
        Err(FileError { kind: FileErrorKind::Ended, .. }) => {}
        read => read?,
    }
    if header == [0; HEADER_BYTES] {
        return Ok(None);
    }
    let (start, version) = header.split_at(magic.len());
    let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
    match start == magic && version != 0 {
        true => Ok(Some(version)),
        false => {
            let reason = "the file does not begin like the files of its directory";
            Err(DataFileError::damaged(name, "byte 0", reason).into())
        }
    }
}
