//! One cycle: a batch of queries over one version of a table.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use atoll_runtime::{Task, WorkerId};
use atoll_store::clock_scan::{BatchScan, QueryBatch, QueryRows, RowsOutcome, ScanCounts};
use atoll_store::database::DatabaseVersion;
use atoll_store::table::TableSnapshot;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::memory_pool::MemoryConsumer;

use super::report::CycleCounts;
use super::table_scan::{AnsweredRows, ScanAnswer, TableScan, WaitingQuery};
use crate::database::{Database, Workers};
use atoll_sql_common::error::table_error;
use atoll_sql_exec::lab::QueryRegion;
use atoll_sql_exec::scan::assign::{ScannedChunk, by_chunks};

/// Maximum number of rows that a worker gathers for one query: larger results are left to the ordinary scan, which
/// returns them batch by batch.
const ROWS_MAX: usize = 1 << 16;

/// The rows that a worker found for each query.
type WorkerRows = (Vec<QueryRows>, ScanCounts);

/// The result of a pass, and the time of its preparation.
struct FoundByWorkers {
    workers: Vec<WorkerRows>,
    preparing: Duration,
}

/// Answers a batch.
pub(super) async fn turn(
    scan: &TableScan,
    database: &Database,
    workers: &Workers,
    batch: Vec<WaitingQuery>,
) -> CycleCounts {
    let version = database.store().published();
    let table = version.table(scan.table);
    let is_current = |waiting: &WaitingQuery| {
        table.is_some_and(|table| Arc::ptr_eq(table.definition(), &waiting.definition))
    };
    let (current, stale): (Vec<_>, Vec<_>) = batch.into_iter().partition(is_current);
    for waiting in stale {
        // A client that is gone does not take its answer.
        let _ = waiting.reply.send(Ok(ScanAnswer::Elsewhere));
    }
    let Some(table) = table.filter(|_| !current.is_empty()) else { return CycleCounts::default() };
    let found = match table.view().map_err(table_error) {
        Ok(view) => pass(scan, workers, table.definition(), view, &current).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(found) => answer(database, &version, current, found),
        Err(error) => {
            let shared = Arc::new(error);
            for waiting in current {
                let _ = waiting.reply.send(Err(DataFusionError::Shared(Arc::clone(&shared))));
            }
            CycleCounts::default()
        }
    }
}

/// One pass over the table, each worker over its chunks.
async fn pass(
    scan: &TableScan,
    workers: &Workers,
    definition: &Arc<atoll_store::table::TableDefinition>,
    view: Arc<TableSnapshot>,
    current: &[WaitingQuery],
) -> Result<FoundByWorkers> {
    let begun = Instant::now();
    let samples = scan.samples(definition, &view);
    let queries = current.iter().map(|waiting| waiting.query.clone()).collect();
    let batch = Arc::new(QueryBatch::new(Arc::clone(&view.schema), queries, &samples));
    let wanted: Arc<[_]> = current.iter().map(|waiting| Arc::clone(&waiting.is_wanted)).collect();
    let runtime = workers.runtime();
    let chunks = by_chunks(&view, runtime).into_iter().enumerate();
    let tasks = chunks.filter(|(_, chunks)| !chunks.is_empty()).map(|(worker, chunks)| {
        let (batch, view, wanted) = (Arc::clone(&batch), Arc::clone(&view), Arc::clone(&wanted));
        Task::on_worker(WorkerId(worker as u32), async move |_| {
            let mut scan = BatchScan::new(batch, ROWS_MAX);
            for ScannedChunk { chunk, copy } in chunks {
                let gone = wanted.iter().enumerate().filter(|(_, w)| !w.load(Ordering::Relaxed));
                gone.for_each(|(query, _)| scan.give_up(query));
                scan.chunk(&view, chunk, copy)?;
                // Lets others run on this worker.
                tokio::task::yield_now().await;
            }
            scan.finish()
        })
    });
    let step = runtime.step("shared scan", tasks.collect());
    let preparing = begun.elapsed();
    let _running = QueryRegion::begins();
    let workers = step.run().await.result.map_err(|error| match error {
        atoll_runtime::StepError::Failed { error, .. } => table_error(error),
        other => exec_datafusion_err!("a shared scan failed: {other}"),
    })?;
    Ok(FoundByWorkers { workers, preparing })
}

/// Sends each query the rows that the workers found.
fn answer(
    database: &Database,
    version: &Arc<DatabaseVersion>,
    current: Vec<WaitingQuery>,
    found: FoundByWorkers,
) -> CycleCounts {
    let FoundByWorkers { workers: found, preparing } = found;
    let mut counts = CycleCounts { preparing, ..CycleCounts::default() };
    found.iter().for_each(|(_, own)| counts.scan += *own);
    let charge = MemoryConsumer::new("shared scan").register(database.pool());
    if charge.try_grow(counts.scan.gathered as usize).is_err() {
        // Alone, each returns its rows batch by batch.
        counts.elsewhere += current.len();
        for waiting in current {
            let _ = waiting.reply.send(Ok(ScanAnswer::Elsewhere));
        }
        return counts;
    }
    let charge = Arc::new(charge);
    let mut workers: Vec<_> = found.into_iter().map(|(rows, _)| rows.into_iter()).collect();
    for waiting in current {
        let rows: Vec<QueryRows> = workers.iter_mut().filter_map(Iterator::next).collect();
        let is_whole = rows.iter().all(|rows| rows.outcome == RowsOutcome::Whole);
        let answer = match is_whole {
            false => {
                counts.elsewhere += 1;
                ScanAnswer::Elsewhere
            }
            true => {
                let parts = rows.into_iter().filter(|rows| rows.rows > 0);
                let parts = parts.map(|rows| (rows.columns, rows.rows)).collect();
                let (version, charge) = (Arc::clone(version), Arc::clone(&charge));
                ScanAnswer::Rows(AnsweredRows { parts, version, charge })
            }
        };
        let _ = waiting.reply.send(Ok(answer));
    }
    counts
}
