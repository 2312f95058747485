//! The report of opening a data directory.

use std::fmt;

use crate::ids::Epoch;
use crate::log::Position;

/// The report of opening a data directory.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    /// Whether the database was created.
    pub is_new: bool,
    /// Commits that the database has seen.
    pub epoch: Epoch,
    /// Number of tables.
    pub tables: u64,
    /// Number of rows of all tables.
    pub rows: u64,
    /// Number of chunks read.
    pub chunks: u64,
    /// Size of their files, in bytes.
    pub chunk_bytes: u64,
    /// Number of chunks placed on other nodes than before, because this machine lacks theirs.
    pub chunks_moved: u64,
    /// Number of log records applied to the checkpoint.
    pub records: u64,
    /// Size of these records, in bytes.
    pub record_bytes: u64,
    /// Position after the last record.
    pub position: Position,
    /// Bytes after the last record that were written but never acknowledged: the rest of an interrupted
    /// write, which was cut off.
    pub bytes_cut: u64,
    /// Damaged parts that were left out; empty unless the directory was salvaged.
    pub missing: Vec<MissingPart>,
}

/// A part that could not be read and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// The table, as `schema.name`, if it belongs to one.
    pub table: Option<String>,
    /// The missing part.
    pub what: String,
    /// The damaged file, the place and the reason.
    pub reason: String,
}

impl MissingPart {
    pub(super) fn new(
        table: Option<String>,
        what: impl Into<String>,
        reason: &dyn fmt::Display,
    ) -> Self {
        Self { table, what: what.into(), reason: reason.to_string() }
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "{} of table {table}: {}", self.what, self.reason),
            None => write!(f, "{}: {}", self.what, self.reason),
        }
    }
}
