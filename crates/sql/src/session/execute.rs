//! Running one statement: plan beside the caller, run on the pools, hand back batches.

use std::sync::Arc;

use atoll_placement::Strategy;
use atoll_runtime::{CancelToken, WorkerId};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Session;
use super::aside::aside;
use super::drive::RunningQuery;
use super::planner::{StatementPlanner, cancel_token, plan_physical};
use super::progress::ScanProgress;
use super::statement::{not_null, parse};
use crate::error::SqlError;
use crate::parse::{on_deep_stack, stack_for};
use crate::settings::parse_placement;
use crate::task::BoundTask;
use crate::timezone;

/// Batches that may wait for the client before the query pauses.
const CLIENT_BATCHES: usize = 4;

/// What a statement returns, while it runs. Dropping it cancels the query.
#[derive(Debug)]
pub struct QueryResult {
    /// Reaches what is under way in the midst of a poll, which aborting the driver does not.
    pub(super) cancel: CancelToken,
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch>>,
    driver: Option<JoinHandle<()>>,
    progress: ScanProgress,
    tag: Option<String>,
    sql: String,
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
    pub fn progress(&self) -> &ScanProgress {
        &self.progress
    }

    /// What was done, for statements that return no rows: `CREATE TABLE 1500000`.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    pub(super) fn done(tag: String, sql: &str) -> Self {
        let (_, batches) = mpsc::channel(1);
        Self {
            cancel: CancelToken::new(),
            schema: Arc::new(Schema::empty()),
            batches,
            driver: None,
            progress: ScanProgress::default(),
            tag: Some(tag),
            sql: sql.to_owned(),
        }
    }
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        self.cancel.cancel();
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
            let (session, text) = (self.clone(), sql.to_owned());
            let running =
                async move { on_deep_stack(stack_for(&text), session.try_run(&text)).await };
            match aside(&self.runtime, running).await {
                Ok(result) => Ok(result),
                Err(error) => Err(SqlError::new(error, sql).with_near_names(self)),
            }
        })
    }

    async fn try_run(&self, sql: &str) -> Result<QueryResult> {
        let planner = self.planner();
        let placed = parse(sql, &planner.state)?;
        if let Parsed::Statement(ast) = &placed.statement
            && let Ast::AlterTable(alter) = ast.as_ref()
        {
            return self.alter(planner, alter.clone(), sql).await;
        }
        let form = StatementForm::of(&placed.statement);
        let plan = planner.plan(placed.statement).await?;
        let strategy = match &placed.placement {
            Some(placement) => parse_placement(placement)?,
            None => self.placement(),
        };
        let (plan, executed) = self.prepared.bound(&planner, plan).await?;
        let form = executed.as_ref().map_or(form, StatementForm::of_ast);
        match plan {
            LogicalPlan::Ddl(ddl) => self.define(planner, ddl, form, strategy, sql).await,
            LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
                self.prepared.keep(&prepare, form.kept()?)?;
                Ok(QueryResult::done(first_word(sql), sql))
            }
            LogicalPlan::Statement(PlanStatement::Deallocate(deallocate)) => {
                self.prepared.remove(&deallocate.name)?;
                Ok(QueryResult::done(first_word(sql), sql))
            }
            LogicalPlan::Statement(statement) => {
                let plan = LogicalPlan::Statement(timezone::checked_setting(statement)?);
                let frame = self.context.execute_logical_plan(plan).await?;
                self.spill.keep(&self.context)?;
                match frame.logical_plan() {
                    LogicalPlan::EmptyRelation(_) => Ok(QueryResult::done(first_word(sql), sql)),
                    _ => self.query(planner.state, frame.logical_plan().clone(), sql).await,
                }
            }
            plan => self.query(planner.state, plan, sql).await,
        }
    }

    pub(super) async fn define(
        &self,
        planner: StatementPlanner,
        ddl: DdlStatement,
        form: StatementForm,
        strategy: Strategy,
        sql: &str,
    ) -> Result<QueryResult> {
        let tag = match ddl {
            DdlStatement::CreateMemoryTable(create) => {
                let session = self.clone();
                let _waiting = cancel_token(&planner.state).cancel_on_drop();
                // The load is driven from a pool as well, so that what it awaits runs there.
                let created = self.runtime.spawn_on(WorkerId(0), async move {
                    Box::pin(session.create_table(planner, create, &form.not_null, strategy)).await
                });
                match BoundTask::new(created).join("carrying out the statement").await? {
                    Some(rows) => format!("CREATE TABLE {rows}"),
                    None => "CREATE TABLE: exists already".to_owned(),
                }
            }
            DdlStatement::CreateView(create) => {
                self.create_view(&planner, create, form.kept()?)?;
                first_words(sql)
            }
            DdlStatement::CreateExternalTable(create) => {
                self.create_external_table(&planner, *create).await?;
                first_words(sql)
            }
            ddl => {
                self.context.execute_logical_plan(LogicalPlan::Ddl(ddl)).await?;
                // What tables had is the kernel's again, as far as no query reads them still: this
                // one's names must not keep them.
                drop(planner);
                self.arena.trim();
                first_words(sql)
            }
        };
        Ok(QueryResult::done(tag, sql))
    }

    pub(super) async fn query(
        &self,
        state: SessionState,
        plan: LogicalPlan,
        sql: &str,
    ) -> Result<QueryResult> {
        let physical = plan_physical(&state, &plan).await?;
        let schema = physical.schema();
        let (progress, cancel) = (ScanProgress::of(&physical), cancel_token(&state));
        let (sender, batches) = mpsc::channel(CLIENT_BATCHES);
        let query = RunningQuery { state, plan, progress: progress.clone() };
        let driver = self.runtime.spawn_on(WorkerId(0), async move {
            query.drive(physical, sender).await;
        });
        let (driver, sql) = (Some(driver), sql.to_owned());
        Ok(QueryResult { cancel, schema, batches, driver, progress, tag: None, sql })
    }
}

/// What of a statement's text is needed once it is planned.
pub(super) struct StatementForm {
    /// The statement, where it is kept under a name.
    statement: Option<Ast>,
    /// For each column that it declares, whether it is NOT NULL.
    not_null: Vec<bool>,
}

impl StatementForm {
    fn of(statement: &Parsed) -> Self {
        match statement {
            Parsed::Statement(ast) => Self::of_ast(ast),
            _ => Self { statement: None, not_null: Vec::new() },
        }
    }

    /// Of one that makes a table whose columns are NOT NULL or not.
    pub(super) fn of_columns(not_null: Vec<bool>) -> Self {
        Self { statement: None, not_null }
    }

    fn of_ast(ast: &Ast) -> Self {
        let is_kept = matches!(ast, Ast::CreateView(_) | Ast::Prepare { .. });
        Self { statement: is_kept.then(|| ast.clone()), not_null: not_null(ast) }
    }

    fn kept(self) -> Result<Ast> {
        self.statement.ok_or_else(|| internal_datafusion_err!("the statement was not kept"))
    }
}

fn first_word(sql: &str) -> String {
    sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase()
}

/// `DROP TABLE`, `CREATE VIEW`: the first two words, what a client prints when it is done.
fn first_words(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().take(2).collect();
    words.join(" ").to_ascii_uppercase()
}
