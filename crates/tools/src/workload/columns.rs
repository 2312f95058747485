//! Tables of two columns of 64-bit integers, key and value, in Atoll's memory.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use atoll_placement::NodeBuffer;
use atoll_primitives::{Part, PrimitiveError};
use atoll_runtime::TaskContext;
use atoll_topology::NodeId;
use bytes::Bytes;

use super::Rig;

/// Rows of a part: columns of 8 MiB, some huge pages each.
pub const PART_ROWS: u64 = 1 << 20;
/// Names of the columns.
pub const COLUMN_NAMES: [&str; 2] = ["k", "v"];
/// Bytes of a row.
pub const ROW_BYTES: u64 = 16;

/// Rows of key and value, in parts on the nodes of the workers that made them.
#[derive(Clone, Debug)]
pub struct ColumnTable {
    /// The parts, in the order of the rows.
    pub parts: Vec<Part>,
    /// Rows of all parts.
    pub len: u64,
}

impl ColumnTable {
    /// Makes rows on all workers; `row` returns key and value of a row by its number.
    ///
    /// # Errors
    /// When memory is out.
    pub fn make(
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
    pub fn rows(&self) -> impl Iterator<Item = (i64, i64)> {
        self.parts.iter().flat_map(|part| rows_of(&part.rows))
    }

    /// Bytes of its rows.
    pub fn bytes(&self) -> u64 {
        self.len * ROW_BYTES
    }

    /// The parts of each worker: those that it made, as even as whole parts allow.
    pub fn shares(&self, workers: usize) -> Vec<Vec<Part>> {
        let mut shares = vec![Vec::new(); workers];
        let mut row = 0;
        for part in &self.parts {
            // The worker in whose share the part begins: parts are cut at the shares' ends.
            let worker = ((row + 1) * workers as u64 - 1) / self.len.max(1);
            shares[(worker as usize).min(workers - 1)].push(part.clone());
            row += part.rows.num_rows() as u64;
        }
        shares
    }
}

/// A column.
pub fn values(rows: &RecordBatch, column: usize) -> &[i64] {
    rows.column(column).as_primitive::<Int64Type>().values()
}

/// Its first two columns, row by row.
pub fn rows_of(rows: &RecordBatch) -> impl Iterator<Item = (i64, i64)> {
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
    let batch = RecordBatch::try_from_iter(COLUMN_NAMES.into_iter().zip(columns))?;
    Ok(Part::new(node, batch))
}

fn array(column: NodeBuffer, len: usize) -> ArrayRef {
    let buffer = Buffer::from(Bytes::from_owner(column));
    Arc::new(Int64Array::new(ScalarBuffer::new(buffer, 0, len), None))
}
