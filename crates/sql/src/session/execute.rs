//! Running one statement: plan on the caller's thread, run on the pools, hand back batches.

use std::sync::Arc;

use atoll_placement::Strategy;
use atoll_runtime::WorkerId;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::options::{AggregateMethod, JoinMethod, parse_placement};
use super::statement::parse;
use super::{AtollOptions, Session};
use crate::error::SqlError;
use crate::lab;
use crate::rules;
use crate::scan::ScanExec;
use crate::task::BoundTask;

/// Batches that may wait for the client before the query pauses.
const CLIENT_BATCHES: usize = 4;

/// What a statement returns, while it runs. Dropping it cancels the query.
#[derive(Debug)]
pub struct QueryResult {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch>>,
    driver: Option<JoinHandle<()>>,
    progress: Progress,
    tag: Option<String>,
    sql: String,
}

/// How far a query's scans are.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    plan: Option<Arc<dyn ExecutionPlan>>,
    rows: u64,
}

impl Progress {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut rows = 0;
        for_each_scan(plan, &mut |scan| rows += scan.table_rows() as u64);
        Self { plan: Some(Arc::clone(plan)), rows }
    }

    /// Rows of placed tables read so far, and to be read at most. Both are 0 for a query without
    /// such tables.
    pub fn rows(&self) -> (u64, u64) {
        let mut read = 0;
        if let Some(plan) = &self.plan {
            for_each_scan(plan, &mut |scan| {
                let metrics = scan.metrics();
                let scanned = metrics.and_then(|metrics| metrics.sum_by_name("rows_scanned"));
                read += scanned.map_or(0, |value| value.as_usize() as u64);
            });
        }
        (read, self.rows)
    }
}

fn for_each_scan(plan: &Arc<dyn ExecutionPlan>, visit: &mut impl FnMut(&ScanExec)) {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        visit(scan);
    }
    plan.children().into_iter().for_each(|child| for_each_scan(child, visit));
}

impl QueryResult {
    /// The columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; none after the last.
    ///
    /// # Errors
    /// When the query fails; no batch follows.
    pub async fn next(&mut self) -> std::result::Result<Option<RecordBatch>, SqlError> {
        match self.batches.recv().await {
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => Err(SqlError::new(error, &self.sql)),
            None => self.ended().await,
        }
    }

    /// A driver that went away without a word panicked.
    async fn ended(&mut self) -> std::result::Result<Option<RecordBatch>, SqlError> {
        let Some(driver) = self.driver.take() else { return Ok(None) };
        match driver.await {
            Err(error) if error.is_panic() => {
                let error = DataFusionError::Execution(format!("the query panicked: {error}"));
                Err(SqlError::new(error, &self.sql))
            }
            _ => Ok(None),
        }
    }

    /// All batches that are left.
    ///
    /// # Errors
    /// As [`QueryResult::next`].
    pub async fn collect(mut self) -> std::result::Result<Vec<RecordBatch>, SqlError> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What was done, for statements that return no rows: `CREATE TABLE 1500000`.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    fn done(tag: String, sql: &str) -> Self {
        let (_, batches) = mpsc::channel(1);
        Self {
            schema: Arc::new(Schema::empty()),
            batches,
            driver: None,
            progress: Progress::default(),
            tag: Some(tag),
            sql: sql.to_owned(),
        }
    }
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

impl Session {
    /// Runs one statement. Rows arrive through the result while the query runs on the pools.
    ///
    /// # Errors
    /// With the place in the text where it is known, for statements that cannot be parsed, planned
    /// or started. The session stays as it was.
    pub fn run<'a>(
        &'a self,
        sql: &'a str,
    ) -> BoxFuture<'a, std::result::Result<QueryResult, SqlError>> {
        // Boxed, or every crate that awaits it compiles DataFusion's planner into itself.
        Box::pin(async move {
            match self.try_run(sql).await {
                Ok(result) => Ok(result),
                Err(error) => Err(SqlError::new(error, sql).with_near_names(self)),
            }
        })
    }

    async fn try_run(&self, sql: &str) -> Result<QueryResult> {
        let placed = parse(sql)?;
        let plan = self.context.state().statement_to_plan(placed.statement).await?;
        let strategy = match &placed.placement {
            Some(placement) => parse_placement(placement)?,
            None => self.placement(),
        };
        match plan {
            LogicalPlan::Ddl(ddl) => self.define(ddl, strategy, sql).await,
            LogicalPlan::Statement(_) => {
                let kind = first_word(sql);
                let frame = self.context.execute_logical_plan(plan).await?;
                match frame.logical_plan() {
                    LogicalPlan::EmptyRelation(_) => Ok(QueryResult::done(kind, sql)),
                    _ => self.query(frame.logical_plan().clone(), sql).await,
                }
            }
            plan => self.query(plan, sql).await,
        }
    }

    async fn define(
        &self,
        ddl: DdlStatement,
        strategy: Strategy,
        sql: &str,
    ) -> Result<QueryResult> {
        let tag = match ddl {
            DdlStatement::CreateMemoryTable(create) => {
                let session = self.clone();
                // The load is driven from a pool as well, so that what it awaits runs there.
                let created = self.runtime.spawn_on(WorkerId(0), async move {
                    Box::pin(session.create_table(create, strategy)).await
                });
                match BoundTask::new(created).join("carrying out the statement").await? {
                    Some(rows) => format!("CREATE TABLE {rows}"),
                    None => "CREATE TABLE: exists already".to_owned(),
                }
            }
            ddl => {
                self.context.execute_logical_plan(LogicalPlan::Ddl(ddl)).await?;
                first_words(sql)
            }
        };
        Ok(QueryResult::done(tag, sql))
    }

    async fn query(&self, plan: LogicalPlan, sql: &str) -> Result<QueryResult> {
        let physical = plan_physical(self, &plan).await?;
        let schema = physical.schema();
        let progress = Progress::of(&physical);
        let (sender, batches) = mpsc::channel(CLIENT_BATCHES);
        let session = self.clone();
        let driver = self.runtime.spawn_on(WorkerId(0), async move {
            session.drive(plan, physical, sender).await;
        });
        let driver = Some(driver);
        Ok(QueryResult { schema, batches, driver, progress, tag: None, sql: sql.to_owned() })
    }

    /// Runs a plan to its end. Where hash tables outgrow the memory limit before the first row is out
    /// the query is planned again with operators that spill.
    async fn drive(
        &self,
        logical: LogicalPlan,
        physical: Arc<dyn ExecutionPlan>,
        sender: mpsc::Sender<Result<RecordBatch>>,
    ) {
        let _running = lab::Query::begins();
        let context = self.context.task_ctx();
        let retry = rules::has_hash_tables(&physical) && !has_effects(&logical);
        let first = match execute_stream(physical, context) {
            Ok(stream) => send_all(stream, &sender, retry).await,
            Err(error) => Some(error),
        };
        let Some(error) = first else { return };
        let exhausted = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
        if !(retry && exhausted) {
            // The client may have gone; then nobody is left to tell.
            let _ = sender.send(Err(error)).await;
            return;
        }
        let error = match self.spilling(&logical).await {
            Ok(stream) => send_all(stream, &sender, false).await,
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            let _ = sender.send(Err(error)).await;
        }
    }

    async fn spilling(&self, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        let mut state = self.context.state();
        if let Some(options) = state.config_mut().options_mut().extensions.get_mut::<AtollOptions>()
        {
            options.join = JoinMethod::Merge;
            options.aggregate = AggregateMethod::Off;
        }
        let context = state.task_ctx();
        let physical = DataFrame::new(state, plan.clone()).create_physical_plan().await?;
        execute_stream(physical, context)
    }
}

/// Sends batches until the end, the client's departure or an error. With `retry`, memory that runs
/// out before the first batch was sent is returned to be tried otherwise; so is any other error.
async fn send_all(
    mut stream: SendableRecordBatchStream,
    sender: &mpsc::Sender<Result<RecordBatch>>,
    retry: bool,
) -> Option<DataFusionError> {
    let mut sent = false;
    while let Some(batch) = stream.next().await {
        match batch {
            Ok(batch) if batch.num_rows() == 0 => {}
            Ok(batch) => {
                sent = true;
                if sender.send(Ok(batch)).await.is_err() {
                    return None;
                }
            }
            Err(error) if sent && retry => {
                let _ = sender.send(Err(error)).await;
                return None;
            }
            Err(error) => return Some(error),
        }
    }
    None
}

fn has_effects(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Dml(_) | LogicalPlan::Copy(_))
}

/// The physical plan of a logical one, by the session's rules.
pub(super) async fn plan_physical(
    session: &Session,
    plan: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    DataFrame::new(session.context.state(), plan.clone()).create_physical_plan().await
}

fn first_word(sql: &str) -> String {
    sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase()
}

/// `DROP TABLE`, `CREATE VIEW`: the first two words, what a client prints when it is done.
fn first_words(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().take(2).collect();
    words.join(" ").to_ascii_uppercase()
}
