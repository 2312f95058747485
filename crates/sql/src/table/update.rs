//! New values of rows: a few are stored row by row, many of one chunk replace it by a new one, written by the worker of
//! its node.

use std::collections::{BTreeMap, BTreeSet};

use atoll_store::RowId;
use atoll_store::table::{BLOCK_ROWS, ReplacedChunk, RewriteTask, TableChange};
use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::Result;

use super::PlacedTable;
use atoll_sql_common::error::table_error;
use atoll_sql_common::task::on_workers;

/// Number of changed rows from which a chunk is rewritten at once.
const MANY_ROWS: usize = BLOCK_ROWS;

/// Ids of rows, and their new values.
pub(super) type NewValues = (Vec<RowId>, RecordBatch);

/// The chunk of each row; `None` if it is in none.
type RowEntries = Vec<Option<RowId>>;

/// The change that gives rows new values, all `by_row` if chunks must not be rewritten.
pub(super) async fn updated(
    table: &PlacedTable,
    values: &[NewValues],
    by_row: bool,
) -> Result<TableChange> {
    let mut change = TableChange::default();
    if by_row || values.iter().map(|(ids, _)| ids.len()).sum::<usize>() < MANY_ROWS {
        for (ids, batch) in values {
            add_rows(table, &mut change, ids, batch)?;
        }
        return Ok(change);
    }
    let entries: Vec<RowEntries> =
        values.iter().map(|(ids, _)| table.version().entries_of(ids)).collect();
    let many = many(&entries);
    let mut by_chunk: BTreeMap<RowId, Vec<NewValues>> = BTreeMap::new();
    for ((ids, batch), entries) in values.iter().zip(&entries) {
        for (chunk, rows) in split(&many, entries) {
            let (ids, batch) = some_of(ids, batch, rows)?;
            match chunk {
                Some(chunk) => by_chunk.entry(chunk).or_default().push((ids, batch)),
                None => add_rows(table, &mut change, &ids, &batch)?,
            }
        }
    }
    change.replaced = rewritten(table, by_chunk).await?;
    Ok(change)
}

/// Some rows of a batch, in ascending order.
fn some_of(ids: &[RowId], batch: &RecordBatch, rows: Vec<u64>) -> Result<NewValues> {
    if rows.len() == ids.len() {
        return Ok((ids.to_vec(), batch.clone()));
    }
    let ids = rows.iter().map(|row| ids[*row as usize]).collect();
    Ok((ids, take_record_batch(batch, &UInt64Array::from(rows))?))
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
fn many(entries: &[RowEntries]) -> BTreeSet<RowId> {
    let mut counts: BTreeMap<RowId, usize> = BTreeMap::new();
    for neighbours in entries.iter().flat_map(|entries| entries.chunk_by(|a, b| a == b)) {
        if let Some(chunk) = neighbours[0] {
            *counts.entry(chunk).or_default() += neighbours.len();
        }
    }
    counts.into_iter().filter(|(_, count)| *count >= MANY_ROWS).map(|(chunk, _)| chunk).collect()
}

/// Numbers of rows by the chunk that is rewritten; under `None` all others.
fn split(many: &BTreeSet<RowId>, entries: &[Option<RowId>]) -> BTreeMap<Option<RowId>, Vec<u64>> {
    let mut parts: BTreeMap<Option<RowId>, Vec<u64>> = BTreeMap::new();
    let mut first = 0;
    for neighbours in entries.chunk_by(|a, b| a == b) {
        let chunk = neighbours[0].filter(|chunk| many.contains(chunk));
        let last = first + neighbours.len() as u64;
        parts.entry(chunk).or_default().extend(first..last);
        first = last;
    }
    parts
}

/// The rewritten chunks, each on its node.
async fn rewritten(
    table: &PlacedTable,
    values: BTreeMap<RowId, Vec<NewValues>>,
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
