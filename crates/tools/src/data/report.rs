//! Output of the commands, as text and as JSON.

use std::fmt;

use atoll_store::checkpoint::CheckpointReport;
use atoll_store::open::{DirectoryInfo, OpenReport};
use atoll_topology::Bytes;
use serde::Serialize;

/// A data directory.
#[derive(Debug, Serialize)]
pub(super) struct DirectoryView {
    database: String,
    commits: u64,
    tables: Vec<TableView>,
    other_relations: u64,
    log_records: u64,
    log_record_bytes: u64,
    chunk_file_bytes: u64,
    table_file_bytes: u64,
    log_file_bytes: u64,
    /// Whether all files were read.
    checked: bool,
    damage: Vec<DamageView>,
}

#[derive(Debug, Serialize)]
struct TableView {
    name: String,
    rows: u64,
    chunks: u64,
    bytes: u64,
    changed_rows: u64,
}

#[derive(Debug, Serialize)]
struct DamageView {
    table: Option<String>,
    what: String,
    reason: String,
}

/// A checkpoint that was made.
#[derive(Debug, Serialize)]
pub(super) struct CheckpointView {
    commits: u64,
    log_records: u64,
    log_bytes_cut: u64,
    rows: u64,
    open_seconds: f64,
    chunks_written: u64,
    chunk_bytes: u64,
    tables_written: u64,
    table_bytes: u64,
    files_removed: u64,
    checkpoint_seconds: f64,
}

impl DirectoryView {
    pub(super) fn from_info(info: &DirectoryInfo) -> Self {
        let tables = info.tables.iter().map(|table| TableView {
            name: table.name.clone(),
            rows: table.rows,
            chunks: table.chunks,
            bytes: table.bytes,
            changed_rows: table.changed_rows,
        });
        let damage = info.damage.iter().map(|part| DamageView {
            table: part.table.clone(),
            what: part.what.clone(),
            reason: part.reason.clone(),
        });
        Self {
            database: info.database.to_string(),
            commits: info.epoch.get(),
            tables: tables.collect(),
            other_relations: info.other_relations,
            log_records: info.records,
            log_record_bytes: info.record_bytes,
            chunk_file_bytes: info.chunk_bytes,
            table_file_bytes: info.table_bytes,
            log_file_bytes: info.log_bytes,
            checked: false,
            damage: damage.collect(),
        }
    }

    pub(super) fn checked(info: &DirectoryInfo) -> Self {
        Self { checked: true, ..Self::from_info(info) }
    }
}

impl fmt::Display for DirectoryView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "database {}, checkpoint of commit {}", self.database, self.commits)?;
        for table in &self.tables {
            write!(f, "  {}: {} rows in {} chunks, ", table.name, table.rows, table.chunks)?;
            writeln!(f, "{}, {} rows changed since", Bytes(table.bytes), table.changed_rows)?;
        }
        if self.other_relations > 0 {
            writeln!(f, "  {} views, sequences and external tables", self.other_relations)?;
        }
        let files = [self.chunk_file_bytes, self.table_file_bytes, self.log_file_bytes].map(Bytes);
        writeln!(f, "files: chunks {}, tables {}, log {}", files[0], files[1], files[2])?;
        let bytes = Bytes(self.log_record_bytes);
        writeln!(f, "log: {} commits after the checkpoint, {bytes}", self.log_records)?;
        for part in &self.damage {
            let table =
                part.table.as_ref().map_or(String::new(), |name| format!(" of table {name}"));
            writeln!(f, "damaged: {}{table}: {}", part.what, part.reason)?;
        }
        match (self.checked, self.damage.is_empty()) {
            (true, true) => writeln!(f, "all files were read; no damage found"),
            _ => Ok(()),
        }
    }
}

impl CheckpointView {
    pub(super) fn from_reports(
        opened: &OpenReport,
        made: &CheckpointReport,
        open_seconds: f64,
        checkpoint_seconds: f64,
    ) -> Self {
        Self {
            commits: made.epoch.get(),
            log_records: opened.records,
            log_bytes_cut: opened.bytes_cut,
            rows: opened.rows,
            open_seconds,
            chunks_written: made.chunks,
            chunk_bytes: made.chunk_bytes,
            tables_written: made.tables,
            table_bytes: made.table_bytes,
            files_removed: made.removed,
            checkpoint_seconds,
        }
    }
}

impl fmt::Display for CheckpointView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, log_records, open_seconds, .. } = self;
        writeln!(f, "opened: {rows} rows, {log_records} commits of the log, {open_seconds:.2} s")?;
        if self.log_bytes_cut > 0 {
            let cut = Bytes(self.log_bytes_cut);
            writeln!(f, "cut: {cut} of an interrupted write, never acknowledged")?;
        }
        let (chunks, tables) = (Bytes(self.chunk_bytes), Bytes(self.table_bytes));
        write!(f, "checkpoint of commit {}: {} chunks ", self.commits, self.chunks_written)?;
        write!(f, "({chunks}) and {} tables ({tables}) written, ", self.tables_written)?;
        writeln!(f, "{} files removed, {:.2} s", self.files_removed, self.checkpoint_seconds)
    }
}
