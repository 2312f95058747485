//! New values of rows: a few are kept row by row, many of one chunk make a chunk in its place, written by
//! the worker of its node.

use std::collections::HashMap;

use atoll_store::RowId;
use atoll_store::table::{BLOCK_ROWS, ReplacedChunk, RewriteTask, TableChange};
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::Result;

use super::PlacedTable;
use crate::error::table_error;
use crate::task::on_workers;

/// From so many changed rows on a chunk is written anew at once.
const MANY_ROWS: usize = BLOCK_ROWS;

/// Ids of rows, and their new values.
pub(super) type NewValues = (Vec<RowId>, RecordBatch);

/// The change that gives rows new values.
pub(super) async fn updated(table: &PlacedTable, values: &[NewValues]) -> Result<TableChange> {
    let mut change = TableChange::default();
    let many = many(table, values);
    if many.is_empty() {
        for (ids, batch) in values {
            add_rows(table, &mut change, ids, batch)?;
        }
        return Ok(change);
    }
    let mut by_chunk: HashMap<RowId, Vec<NewValues>> = HashMap::new();
    for (ids, batch) in values {
        for (chunk, rows) in split(table, &many, ids) {
            let of_chunk: Vec<RowId> = rows.iter().map(|row| ids[*row as usize]).collect();
            let batch = take_record_batch(batch, &UInt64Array::from(rows))?;
            match chunk {
                Some(chunk) => by_chunk.entry(chunk).or_default().push((of_chunk, batch)),
                None => add_rows(table, &mut change, &of_chunk, &batch)?,
            }
        }
    }
    change.replaced = rewritten(table, by_chunk).await?;
    Ok(change)
}

fn add_rows(
    table: &PlacedTable,
    change: &mut TableChange,
    ids: &[RowId],
    values: &RecordBatch,
) -> Result<()> {
    let rows = table.version().codec().encode(values).map_err(table_error)?;
    change.updated.extend(ids.iter().copied().zip(rows));
    Ok(())
}

/// The chunks of which many rows get new values.
fn many(table: &PlacedTable, values: &[NewValues]) -> HashMap<RowId, usize> {
    let mut counts: HashMap<RowId, usize> = HashMap::new();
    if values.iter().map(|(ids, _)| ids.len()).sum::<usize>() < MANY_ROWS {
        return counts;
    }
    for id in values.iter().flat_map(|(ids, _)| ids) {
        if let Some(chunk) = table.version().entry_of(*id) {
            *counts.entry(chunk).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count >= MANY_ROWS);
    counts
}

/// Numbers of rows by the chunk that is written anew; under none all others.
fn split(
    table: &PlacedTable,
    many: &HashMap<RowId, usize>,
    ids: &[RowId],
) -> HashMap<Option<RowId>, Vec<u64>> {
    let mut parts: HashMap<Option<RowId>, Vec<u64>> = HashMap::new();
    for (row, id) in ids.iter().enumerate() {
        let chunk = table.version().entry_of(*id).filter(|chunk| many.contains_key(chunk));
        parts.entry(chunk).or_default().push(row as u64);
    }
    parts
}

/// The chunks written anew, each on its node.
async fn rewritten(
    table: &PlacedTable,
    values: HashMap<RowId, Vec<NewValues>>,
) -> Result<Vec<ReplacedChunk>> {
    let mut tasks = Vec::with_capacity(values.len());
    for (chunk, values) in values {
        let task: RewriteTask = table.version().rewrite(chunk, values).map_err(table_error)?;
        tasks.push((Some(task.node()), task));
    }
    let run = |task: RewriteTask| task.run().map_err(table_error);
    let chunks = on_workers(table.runtime(), "writing the changed rows", tasks, run).await?;
    Ok(chunks.into_iter().flatten().collect())
}
