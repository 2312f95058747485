//! Tables as files from which the rivals load the same rows.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use atoll_tools::workload::{COLUMN_NAMES, ColumnTable};

/// Tables as files of little-endian 64-bit integers, one for each column. The files have no name: they
/// are gone with this value, also when the process is killed.
#[derive(Debug)]
pub(crate) struct Files(Vec<(&'static str, [File; 2])>);

impl Files {
    /// Writes tables to memory (`/dev/shm`), or to the directory for temporary files where there is no
    /// room.
    ///
    /// # Errors
    /// When neither directory has enough free space.
    pub(crate) fn write(tables: &[(&'static str, &ColumnTable)]) -> Result<Self> {
        let directories = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
        let write = |directory: &Path| {
            let files = tables.iter().map(|(name, table)| {
                Ok((*name, [column_file(directory, table, 0)?, column_file(directory, table, 1)?]))
            });
            files.collect::<io::Result<Vec<_>>>()
        };
        let files = write(&directories[0]).or_else(|_| write(&directories[1]));
        let files = files.with_context(|| {
            format!(
                "not enough space for the rivals' data in /dev/shm or {}",
                directories[1].display()
            )
        })?;
        Ok(Self(files))
    }

    /// Where another process of this user finds them: by table names and paths of the columns.
    pub(super) fn paths(&self) -> serde_json::Value {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let tables = self.0.iter().map(|(table, [keys, values])| {
            (*table, [(COLUMN_NAMES[0], path(keys)), (COLUMN_NAMES[1], path(values))])
        });
        tables.map(|(table, columns)| (table.to_owned(), serde_json::json!(columns))).collect()
    }
}

fn column_file(directory: &Path, table: &ColumnTable, column: usize) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(directory)?;
    for part in &table.parts {
        let column = part.rows.column(column).as_primitive::<Int64Type>();
        file.write_all(column.values().inner())?;
    }
    Ok(file)
}
