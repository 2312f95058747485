//! What opening a data directory found.

use std::fmt;

use crate::ids::Epoch;
use crate::log::Position;

/// What opening a data directory found.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    /// Whether the database was made now.
    pub is_new: bool,
    /// Commits that the database has seen.
    pub epoch: Epoch,
    /// Tables.
    pub tables: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of their files.
    pub chunk_bytes: u64,
    /// Chunks that lie on other nodes than before, because this machine lacks theirs.
    pub chunks_moved: u64,
    /// Records of the log that were applied to the checkpoint.
    pub records: u64,
    /// Bytes of these records.
    pub record_bytes: u64,
    /// Position behind the last record.
    pub position: Position,
    /// Bytes behind the last record that were written and never acknowledged: the rest of an interrupted
    /// write, which was cut.
    pub bytes_cut: u64,
    /// What is damaged and was left out; empty unless it was salvaged.
    pub missing: Vec<MissingPart>,
}

/// Something that could not be read and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// The table, as `schema.name`, where it is one's.
    pub table: Option<String>,
    /// What of it is missing.
    pub what: String,
    /// Which file is damaged, where, and how.
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
