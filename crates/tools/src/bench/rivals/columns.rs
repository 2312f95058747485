//! The data: two columns of 64-bit integers, key and value, in Atoll's memory and as files from which
//! the rivals load the same.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use atoll_placement::NodeBuffer;
use atoll_primitives::{Part, PrimitiveError};
use atoll_runtime::TaskContext;
use atoll_topology::NodeId;
use bytes::Bytes;

use super::rig::Rig;

/// Rows of a part: columns of 8 MiB, some huge pages each.
pub(crate) const PART_ROWS: u64 = 1 << 20;
/// Names of the columns.
const NAMES: [&str; 2] = ["k", "v"];
/// Bytes of a row.
pub(crate) const ROW_BYTES: u64 = 16;

/// Rows of key and value, in parts on the nodes of the workers that made them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The parts, in the order of the rows.
    pub(crate) parts: Vec<Part>,
    /// Rows of all parts.
    pub(crate) len: u64,
}

impl Table {
    /// Makes rows on all workers; `row` tells key and value of a row by its number.
    ///
    /// # Errors
    /// When memory is out.
    pub(crate) fn make(
        rig: &Rig,
        rows: u64,
        row: impl Fn(u64) -> (i64, i64) + Send + Sync + 'static,
    ) -> Result<Self> {
        let context = rig.context.clone();
        let workers = context.runtime().worker_count() as u64;
        let of_worker = move |worker: u64, task: &TaskContext| {
            let end = rows * (worker + 1) / workers;
            let mut parts = Vec::new();
            let mut start = rows * worker / workers;
            while start < end {
                task.check()?;
                let next = end.min(start + PART_ROWS);
                parts.push(part(&context, task.node(), start..next, &row)?);
                start = next;
            }
            Ok(parts)
        };
        let made = rig
            .context
            .on_workers("data", move |worker, task| of_worker(u64::from(worker.0), task));
        let (parts, _) = rig.wait(made)?;
        Ok(Self { parts: parts.into_iter().flatten().collect(), len: rows })
    }

    /// Keys and values of all rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (i64, i64)> {
        self.parts.iter().flat_map(|part| rows_of(&part.rows))
    }

    /// Bytes of its rows.
    pub(crate) fn bytes(&self) -> u64 {
        self.len * ROW_BYTES
    }
}

/// A column.
pub(crate) fn values(rows: &RecordBatch, column: usize) -> &[i64] {
    rows.column(column).as_primitive::<Int64Type>().values()
}

/// Its first two columns, row by row.
pub(crate) fn rows_of(rows: &RecordBatch) -> impl Iterator<Item = (i64, i64)> {
    values(rows, 0).iter().copied().zip(values(rows, 1).iter().copied())
}

fn part(
    context: &atoll_primitives::Context,
    node: NodeId,
    rows: std::ops::Range<u64>,
    row: &impl Fn(u64) -> (i64, i64),
) -> Result<Part, PrimitiveError> {
    let len = (rows.end - rows.start) as usize;
    let column = || context.arena().allocate(Some(node), 8 * len);
    let (mut keys, mut values) = (column()?, column()?);
    let words = keys.as_mut_slice().as_chunks_mut().0.iter_mut();
    let words = words.zip(values.as_mut_slice().as_chunks_mut().0);
    for (number, (key, value)) in rows.zip(words) {
        let row = row(number);
        (*key, *value) = (row.0.to_ne_bytes(), row.1.to_ne_bytes());
    }
    let columns = [keys, values].map(|column| array(column, len));
    let batch = RecordBatch::try_from_iter(NAMES.into_iter().zip(columns))?;
    Ok(Part::new(node, batch))
}

fn array(column: NodeBuffer, len: usize) -> ArrayRef {
    let buffer = Buffer::from(Bytes::from_owner(column));
    Arc::new(Int64Array::new(ScalarBuffer::new(buffer, 0, len), None))
}

/// Tables as files of little-endian 64-bit integers, one for each column. The files have no name: they
/// are gone with this value, also when the process is killed.
#[derive(Debug)]
pub(crate) struct Files(Vec<(&'static str, [File; 2])>);

impl Files {
    /// Writes tables to memory (`/dev/shm`), or to the directory for temporary files where there is no
    /// room.
    ///
    /// # Errors
    /// When there is no room in either.
    pub(crate) fn write(tables: &[(&'static str, &Table)]) -> Result<Self> {
        let directories = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
        let write = |directory: &Path| {
            let files = tables.iter().map(|(name, table)| {
                Ok((*name, [column_file(directory, table, 0)?, column_file(directory, table, 1)?]))
            });
            files.collect::<io::Result<Vec<_>>>()
        };
        let files = write(&directories[0]).or_else(|_| write(&directories[1]));
        let files = files.with_context(|| {
            format!("no room for the rivals' data in /dev/shm or {}", directories[1].display())
        })?;
        Ok(Self(files))
    }

    /// Where another process of this user finds them: by table names and paths of the columns.
    pub(super) fn paths(&self) -> serde_json::Value {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let tables = self.0.iter().map(|(table, [keys, values])| {
            (*table, [(NAMES[0], path(keys)), (NAMES[1], path(values))])
        });
        tables.map(|(table, columns)| (table.to_owned(), serde_json::json!(columns))).collect()
    }
}

fn column_file(directory: &Path, table: &Table, column: usize) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(directory)?;
    for part in &table.parts {
        let column = part.rows.column(column).as_primitive::<Int64Type>();
        file.write_all(column.values().inner())?;
    }
    Ok(file)
}
