//! The queries that wait for the rows of a table, and the cycles that answer them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use atoll_runtime::{Runtime, WorkerId};
use atoll_store::TableId;
use atoll_store::clock_scan::{BatchQuery, ColumnSamples};
use atoll_store::database::DatabaseVersion;
use atoll_store::table::{TableDefinition, TableSnapshot};
use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::memory_pool::MemoryReservation;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::cycle;
use super::report::{CycleCounts, ScanCounters, ScanReport};
use crate::database::{Database, Workers};
use atoll_sql_common::error::SqlState;

/// Maximum number of queries that a cycle answers.
const BATCH_MAX: usize = 4096;

/// Maximum number of queries that wait for a table; more are refused.
const WAITING_MAX: usize = 4 * BATCH_MAX;

/// After a batch of this size, clients that were answered get a moment to come back, so that they ride together again:
/// this fraction of the last cycle's time.
const TOGETHER: usize = 8;
const MOMENT_SHARE: u32 = 16;

/// Samples are taken again when the size of the table has changed by this fraction, or after this many cycles.
const SAMPLE_DRIFT: usize = 8;
const SAMPLE_CYCLES: usize = 1024;

/// The shared scan of a table.
#[derive(Debug)]
pub(super) struct TableScan {
    pub(super) table: TableId,
    name: Arc<str>,
    /// The pool of the sessions; `None` for the common workers.
    pool: Option<Arc<str>>,
    state: Mutex<ScanState>,
    counters: ScanCounters,
}

#[derive(Debug, Default)]
struct ScanState {
    waiting: Vec<WaitingQuery>,
    /// Whether cycles are running.
    turns: bool,
    /// Whether a query that could have waited runs alone.
    has_alone: bool,
    samples: Option<KeptSamples>,
}

#[derive(Debug)]
struct KeptSamples {
    definition: Arc<TableDefinition>,
    samples: Arc<ColumnSamples>,
    cycles: usize,
}

/// A waiting query.
#[derive(Debug)]
pub(super) struct WaitingQuery {
    pub(super) query: BatchQuery,
    pub(super) definition: Arc<TableDefinition>,
    /// The workers that answer it.
    workers: Workers,
    /// Cleared when its client is gone.
    pub(super) is_wanted: Arc<AtomicBool>,
    pub(super) since: Instant,
    pub(super) reply: oneshot::Sender<Result<ScanAnswer>>,
}

/// The answer to a query.
#[derive(Debug)]
pub(crate) enum ScanAnswer {
    /// Its rows.
    Rows(AnsweredRows),
    /// Normal execution has to answer it.
    Elsewhere,
}

/// The rows of a query, and the memory charged for the cycle's rows while any of them is kept.
#[derive(Debug)]
pub(crate) struct AnsweredRows {
    /// Columns and number of rows, one part for each worker that found some.
    pub(super) parts: Vec<(Vec<ArrayRef>, usize)>,
    /// The version that the cycle read.
    pub(super) version: Arc<DatabaseVersion>,
    pub(super) charge: Arc<MemoryReservation>,
}

/// A query that runs alone, until this is dropped.
#[derive(Debug)]
pub(crate) struct AloneQuery(Arc<TableScan>);

impl Drop for AloneQuery {
    fn drop(&mut self) {
        self.0.state.lock().has_alone = false;
    }
}

/// Informs the cycle when the client is gone.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl TableScan {
    pub(super) fn new(table: TableId, name: &str, pool: Option<Arc<str>>) -> Self {
        let (state, counters) = Default::default();
        Self { table, name: name.into(), pool, state, counters }
    }

    /// Starts a query that runs alone; `None` if another one does, or rides.
    pub(super) fn alone(self: &Arc<Self>) -> Option<AloneQuery> {
        let mut state = self.state.lock();
        if state.turns || state.has_alone {
            return None;
        }
        state.has_alone = true;
        drop(state);
        Some(AloneQuery(Arc::clone(self)))
    }

    pub(super) fn report(&self) -> ScanReport {
        let waiting = self.state.lock().waiting.len();
        self.counters.report(&self.name, self.pool.as_deref(), waiting)
    }

    /// Waits for the cycle that answers a query. Dropping the future abandons the query.
    pub(super) async fn ask(
        self: &Arc<Self>,
        database: &Database,
        workers: Workers,
        definition: Arc<TableDefinition>,
        query: BatchQuery,
    ) -> Result<ScanAnswer> {
        let wanted = Wanted(Arc::new(AtomicBool::new(true)));
        let (reply, answer) = oneshot::channel();
        let since = Instant::now();
        let is_wanted = Arc::clone(&wanted.0);
        let turning = Turning { scan: Arc::clone(self), workers: workers.clone(), ended: true };
        let waiting = WaitingQuery { query, definition, workers, is_wanted, since, reply };
        if self.wait(waiting)? {
            turning.start(database.clone(), Vec::new());
        }
        let answer = answer.await;
        drop(wanted);
        answer.map_err(|_| exec_datafusion_err!("the shared scan of '{}' has ended", self.name))?
    }

    /// Adds a query; whether the cycles have to be started.
    fn wait(&self, waiting: WaitingQuery) -> Result<bool> {
        let mut state = self.state.lock();
        if state.waiting.len() >= WAITING_MAX {
            return Err(SqlState::TOO_MANY_WAITING.error(format!(
                "{WAITING_MAX} queries are waiting for the shared scan of '{}' already; try again later",
                self.name
            )));
        }
        state.waiting.push(waiting);
        Ok(!std::mem::replace(&mut state.turns, true))
    }

    /// The worker that prepares cycles.
    fn leader(&self, runtime: &Runtime) -> WorkerId {
        let workers = runtime.worker_count().max(1) as u64;
        WorkerId((self.table.get() % workers) as u32)
    }

    /// All waiting queries, up to the size of a batch; none ends the cycles.
    fn take(&self) -> Vec<WaitingQuery> {
        let mut state = self.state.lock();
        let count = state.waiting.len().min(BATCH_MAX);
        state.turns = count > 0;
        state.waiting.drain(..count).collect()
    }

    /// Samples of a version, or of a similar earlier one.
    pub(super) fn samples(
        &self,
        definition: &Arc<TableDefinition>,
        view: &TableSnapshot,
    ) -> Arc<ColumnSamples> {
        let mut state = self.state.lock();
        if let Some(kept) = &mut state.samples {
            kept.cycles += 1;
            let drift = kept.samples.table_rows().abs_diff(view.rows);
            let is_same = Arc::ptr_eq(&kept.definition, definition);
            if is_same && drift <= view.rows / SAMPLE_DRIFT && kept.cycles < SAMPLE_CYCLES {
                return Arc::clone(&kept.samples);
            }
        }
        let samples = Arc::new(ColumnSamples::from_snapshot(view));
        let definition = Arc::clone(definition);
        state.samples = Some(KeptSamples { definition, samples: Arc::clone(&samples), cycles: 0 });
        samples
    }
}

/// The task that runs cycles while queries wait. If it dies, they get an error instead of waiting on.
struct Turning {
    scan: Arc<TableScan>,
    /// The workers of the cycles.
    workers: Workers,
    ended: bool,
}

impl Turning {
    /// Starts it on one of its workers, with a batch that was taken already.
    fn start(mut self, database: Database, first: Vec<WaitingQuery>) {
        self.ended = false;
        let runtime = self.workers.runtime().clone();
        drop(runtime.spawn_on(self.scan.leader(&runtime), self.run(database, first)));
    }

    async fn run(mut self, database: Database, first: Vec<WaitingQuery>) {
        let (mut last, mut batch) = (Duration::ZERO, first);
        loop {
            if last > Duration::ZERO {
                tokio::time::sleep(last / MOMENT_SHARE).await;
            }
            if batch.is_empty() {
                batch = self.scan.take();
            }
            let Some(workers) = batch.last().map(|waiting| waiting.workers.clone()) else {
                self.ended = true;
                return;
            };
            if !workers.is(&self.workers) {
                // Pools were created or dropped: the chunks go to other workers.
                self.ended = true;
                let next = Self { scan: Arc::clone(&self.scan), workers, ended: true };
                return next.start(database, batch);
            }
            let (begun, queries) = (Instant::now(), batch.len());
            let waited: Vec<Instant> = batch.iter().map(|waiting| waiting.since).collect();
            let batch = std::mem::take(&mut batch);
            let counts = cycle::turn(&self.scan, &database, &self.workers, batch).await;
            let took = begun.elapsed();
            last = if queries >= TOGETHER { took } else { Duration::ZERO };
            self.scan.counters.cycle(CycleCounts { queries, took, ..counts }, &waited);
        }
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        if !self.ended {
            let mut state = self.scan.state.lock();
            state.turns = false;
            state.waiting.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use atoll_placement::Strategy;
    use atoll_runtime::RuntimeOptions;
    use atoll_testkit::kernel::SimulatedKernel;
    use atoll_testkit::machines;
    use datafusion::arrow::datatypes::Schema;

    use super::*;
    use crate::database::DatabaseOptions;
    use atoll_sql_common::error::SqlError;

    #[test]
    fn queries_beyond_those_that_may_wait_are_refused_and_those_that_wait_stay() {
        let machine = Arc::new(machines::two_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        let runtime = Runtime::start(machine, kernel, RuntimeOptions::default()).unwrap();
        let database = Database::start(runtime, DatabaseOptions::default()).unwrap();
        let columns = Arc::new(Schema::empty());
        let definition = Arc::new(TableDefinition::new(columns, Strategy::Aligned));
        let scan = TableScan::new(TableId::new(1), "t", None);
        let wait = || {
            let (tests, projection) = (Vec::new(), [].into());
            let query = BatchQuery { tests, projection, with_ids: false, limit: usize::MAX };
            let (definition, workers) = (Arc::clone(&definition), database.pools().common());
            let is_wanted = Arc::new(AtomicBool::new(true));
            let (since, (reply, _)) = (Instant::now(), oneshot::channel());
            scan.wait(WaitingQuery { query, definition, workers, is_wanted, since, reply })
        };
        assert!(wait().unwrap(), "the first starts the cycles");
        assert!((1..WAITING_MAX).all(|_| !wait().unwrap()));
        let error = SqlError::new(wait().unwrap_err(), "");
        assert_eq!(error.state.code(), "53400");
        assert!(error.message.contains("try again later"), "{}", error.message);
        let batches: Vec<usize> =
            std::iter::repeat_with(|| scan.take().len()).take_while(|count| *count > 0).collect();
        assert_eq!(batches, [BATCH_MAX; WAITING_MAX / BATCH_MAX]);
        assert!(wait().unwrap(), "there is room again");
    }
}
