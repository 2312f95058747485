//! Running a planned query to its end, twice if memory runs out early.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_topology::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::session::plan::steps::plan_physical;
use crate::session::transaction::StatementTransaction;
use crate::session::{AtollOptions, Session};
use atoll_sql_common::settings::{AggregateMethod, JoinMethod};
use atoll_sql_exec::admission::{Admitted, StatementClass};
use atoll_sql_exec::lab;
use atoll_sql_exec::rules;
use atoll_sql_exec::scan::ScanProgress;
use atoll_sql_exec::watch::{StatementWait, StatementWatch};
use atoll_sql_files::{parquet_files, with_damaged_file};

/// How long the second plan of a query waits for the memory of the first: its tasks end where they
/// yield next, which a worker that is busy with a large batch may take a while to reach.
const RELEASE_MAX: Duration = Duration::from_secs(5);

impl Session {
    /// Waits for admission, if this statement needs it.
    pub(in crate::session) async fn admit(
        &self,
        transaction: &StatementTransaction,
        progress: &ScanProgress,
    ) -> Result<Admitted> {
        let class = StatementClass::from_bytes(Bytes(progress.bytes_total()));
        if class == StatementClass::Point || transaction.transaction.has_locks().await? {
            return Ok(Admitted::ahead());
        }
        let waits = self.watch.waiting(StatementWait::Queue);
        let admitted = self.database().admission().enter(class).await;
        drop(waits);
        self.watch.admitted(&admitted);
        Ok(admitted)
    }
}

/// A running query.
pub(in crate::session) struct RunningQuery {
    /// The settings it was planned with, over the names of its statement.
    pub(in crate::session) state: SessionState,
    /// Its plan, with the tables of its statement.
    pub(in crate::session) plan: LogicalPlan,
    pub(in crate::session) progress: ScanProgress,
    /// Its transaction, which pins what it reads until it ends.
    pub(in crate::session) transaction: StatementTransaction,
    /// Its admission.
    pub(in crate::session) admitted: Admitted,
    /// Records what it waits for.
    pub(in crate::session) watch: StatementWatch,
}

impl RunningQuery {
    /// Runs a plan to its end. If hash tables outgrow the memory limit before the first row is out the query is planned
    /// again with operators that spill.
    pub(in crate::session) async fn drive(
        self,
        physical: Arc<dyn ExecutionPlan>,
        sender: mpsc::Sender<Result<RecordBatch>>,
    ) {
        let _running = lab::QueryRegion::begins();
        let transaction = self.transaction.clone();
        let outlet = self.outlet(sender, parquet_files(&physical));
        let (context, before) = (self.state.task_ctx(), self.reserved());
        let retry = rules::has_hash_tables(&physical) && !has_effects(&self.plan);
        // A query that may be planned again keeps its tables, dropped or not.
        let again = retry.then_some(self);
        let first = match execute_stream(physical, context) {
            Ok(stream) => outlet.send_all(stream, retry).await,
            Err(error) => Some(error),
        };
        let Some(error) = first else { return transaction.release() };
        let exhausted = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
        let error = match again {
            Some(query) if exhausted => query.drive_again(before, &outlet).await,
            _ => Some(error),
        };
        transaction.release();
        if let Some(error) = error {
            transaction.fail_settled().await;
            // The client may be gone; then the error is dropped.
            let _ = outlet.send(Err(error)).await;
        }
    }

    async fn drive_again(self, before: usize, outlet: &ResultOutlet) -> Option<DataFusionError> {
        self.released(before).await;
        match self.spilling().await {
            Ok(stream) => outlet.send_all(stream, false).await,
            Err(error) => Some(error),
        }
    }

    /// The destination of its batches. In an open transaction it is not queued again: the queries ahead of it may wait
    /// for one of its locks.
    fn outlet(
        &self,
        sender: mpsc::Sender<Result<RecordBatch>>,
        files: Vec<PathBuf>,
    ) -> ResultOutlet {
        let (admitted, watch) = (self.admitted.clone(), self.watch.clone());
        let is_queued = self.transaction.is_own;
        ResultOutlet { sender, files, admitted, watch, is_queued }
    }

    fn reserved(&self) -> usize {
        self.state.runtime_env().memory_pool.reserved()
    }

    /// Waits until no more memory is used than before the first plan ran. Other queries may allocate some meanwhile, so
    /// the wait is bounded.
    async fn released(&self, before: usize) {
        let begun = Instant::now();
        while self.reserved() > before && begun.elapsed() < RELEASE_MAX {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn spilling(&self) -> Result<SendableRecordBatchStream> {
        let mut state = self.state.clone();
        if let Some(options) = state.config_mut().options_mut().extensions.get_mut::<AtollOptions>()
        {
            options.join = JoinMethod::Merge;
            options.aggregate = AggregateMethod::Off;
        }
        let physical = plan_physical(&state, &self.plan).await?;
        self.progress.follow(&physical);
        execute_stream(physical, state.task_ctx())
    }
}

/// The destination of a query's batches.
struct ResultOutlet {
    sender: mpsc::Sender<Result<RecordBatch>>,
    /// Files that may be damaged.
    files: Vec<PathBuf>,
    admitted: Admitted,
    watch: StatementWatch,
    /// Whether the query is queued again after it has waited for its client.
    is_queued: bool,
}

impl ResultOutlet {
    /// Sends batches until the end, the client's departure or an error. With `retry`, running out of memory before the
    /// first batch returns an error to retry with another plan; so does any other error.
    async fn send_all(
        &self,
        mut stream: SendableRecordBatchStream,
        retry: bool,
    ) -> Option<DataFusionError> {
        let mut sent = false;
        while let Some(batch) = stream.next().await {
            match batch {
                Ok(batch) if batch.num_rows() == 0 => {}
                Ok(batch) => {
                    sent = true;
                    if self.send(Ok(batch)).await.is_err() {
                        return None;
                    }
                }
                Err(error) if sent && retry => {
                    let _ = self.send(Err(error)).await;
                    return None;
                }
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// Sends a batch; an error if the client is gone. While it waits for the client, others may run.
    async fn send(&self, batch: Result<RecordBatch>) -> std::result::Result<(), ClientGone> {
        let batch = batch.map_err(|error| with_damaged_file(error, &self.files));
        let batch = match self.sender.try_send(batch) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Closed(_)) => return Err(ClientGone),
            Err(TrySendError::Full(batch)) => batch,
        };
        let had_place = self.admitted.leave();
        self.sender.send(batch).await.map_err(|_| ClientGone)?;
        if had_place && self.is_queued {
            let _waits = self.watch.waiting(StatementWait::Queue);
            self.admitted.enter_again().await;
        }
        Ok(())
    }
}

/// The client takes no more batches.
struct ClientGone;

/// COPY has none before its one row is out: see `files::whole`.
fn has_effects(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Dml(_) => true,
        LogicalPlan::Analyze(analyze) => has_effects(&analyze.input),
        _ => false,
    }
}
