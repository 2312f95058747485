//! Running one statement: plan beside the caller, run on the pools, hand back batches.

use std::borrow::Cow;
use std::sync::Arc;

use atoll_placement::Strategy;
use atoll_runtime::CancelToken;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, ParamValues, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{
    CreateMemoryTable, DdlStatement, LogicalPlan, Statement as PlanStatement,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::role::RoleStatement;
use crate::session::Session;
use crate::session::cache::prepared::ExecutedStatement;
use crate::session::cache::statement_texts::TextRide;
use crate::session::ddl::declared_table::DeclaredTable;
use crate::session::dml::locking::LockingQuery;
use crate::session::dml::locking_subqueries;
use crate::session::dml::write::sets_sequences;
use crate::session::plan::column_origin::{ColumnOrigins, origins_of};
use crate::session::plan::declared_operands::cast_operands;
use crate::session::plan::modifying_with;
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{cancel_token, plan_physical};
use crate::session::statement::command_tag::{StatementTag, ddl_tag, there, with_notices};
use crate::session::statement::drive::RunningQuery;
use crate::session::statement::parsed_statement::ParsedStatement;
use crate::session::statement::statement_form::StatementForm;
use crate::session::statement::utility::WholeStatement;
use crate::session::transaction::StatementTransaction;
use crate::shared_scan::{AloneQuery, ScannedRows};
use crate::table::StaleStatement;
use atoll_sql_common::error::SqlError;
use atoll_sql_common::offload::offload;
use atoll_sql_common::settings::parse_placement;
use atoll_sql_exec::scan::ScanProgress;
use atoll_sql_files::copy::ReplacedDirectory;
use atoll_sql_parse::dialect::shown;
use atoll_sql_parse::parse::{on_deep_stack, stack_for};

/// Batches that may wait for the client before the query pauses.
const CLIENT_BATCHES: usize = 4;

/// What a statement returns, while it runs. Dropping it cancels the query.
#[derive(Debug)]
pub struct QueryResult {
    schema: SchemaRef,
    origins: Option<ColumnOrigins>,
    rows: ResultRows,
    progress: ScanProgress,
    tag: StatementTag,
    sql: Arc<str>,
    /// What comes behind all other batches.
    pub(in crate::session) last: Option<RecordBatch>,
    /// Tells others like it that they are not alone, while it runs.
    alone: Option<AloneQuery>,
    /// The memory that its rows are charged with.
    charge: Option<Arc<MemoryReservation>>,
}

/// Where the batches of a result come from.
#[derive(Debug)]
enum ResultRows {
    /// They are there.
    Ready(std::vec::IntoIter<RecordBatch>),
    /// The query gives them while it runs.
    Running(RunningRows),
}

/// The batches of a query that runs. Dropping this cancels it.
#[derive(Debug)]
struct RunningRows {
    /// Reaches what is under way in the midst of a poll, which aborting the driver does not.
    cancel: CancelToken,
    batches: mpsc::Receiver<Result<RecordBatch>>,
    driver: Option<JoinHandle<()>>,
}

/// The plan of a query, and what it runs in.
pub type PlannedQuery = (Arc<dyn ExecutionPlan>, Arc<TaskContext>);

impl QueryResult {
    /// The columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where its columns come from, if any is a plain column of a table.
    pub fn origins(&self) -> Option<&ColumnOrigins> {
        self.origins.as_ref()
    }

    pub(in crate::session) fn with_origins(mut self, origins: Option<ColumnOrigins>) -> Self {
        self.origins = origins;
        self
    }

    /// The next batch; none after the last.
    ///
    /// # Errors
    /// When the query fails; no batch follows.
    pub async fn next(&mut self) -> std::result::Result<Option<RecordBatch>, SqlError> {
        let next = match &mut self.rows {
            ResultRows::Ready(batches) => batches.next(),
            ResultRows::Running(running) => {
                let next = running.next().await;
                next.map_err(|error| SqlError::new(error, &self.sql))?
            }
        };
        let Some(batch) = next else { return Ok(self.last.take()) };
        self.tag.add(&batch);
        match shown(batch.schema_ref()) {
            Some(schema) => {
                let named = named(&batch, schema);
                named.map(Some).map_err(|error| SqlError::new(error, &self.sql))
            }
            None => Ok(Some(batch)),
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

    /// What was done, as PostgreSQL says it: `INSERT 0 3`, `CREATE VIEW`. Complete once all batches were read.
    pub fn tag(&self) -> String {
        self.tag.text()
    }

    /// Whether there are no rows, or only the number that the tag tells: those of a statement that writes.
    pub fn is_told_by_tag(&self) -> bool {
        self.tag.tells_all() || self.schema.fields().is_empty() && !self.tag.counts_rows()
    }

    pub(crate) fn done(tag: String, sql: &str) -> Self {
        Self::of(Arc::new(Schema::empty()), Vec::new(), sql).tagged(StatementTag::done(tag))
    }

    pub(in crate::session) fn tagged(mut self, tag: StatementTag) -> Self {
        self.tag = tag;
        self
    }

    /// Rows that a shared scan found.
    pub(in crate::session) fn of_scan(
        schema: &SchemaRef,
        rows: ScannedRows,
        sql: impl Into<Arc<str>>,
    ) -> Self {
        let mut result = Self::of(Arc::clone(schema), rows.batches, sql);
        result.charge = Some(rows.charge);
        result
    }

    /// Batches that are there.
    pub(in crate::session) fn of(
        schema: SchemaRef,
        rows: Vec<RecordBatch>,
        sql: impl Into<Arc<str>>,
    ) -> Self {
        let (rows, progress) = (ResultRows::Ready(rows.into_iter()), ScanProgress::default());
        let (sql, origins, last, alone, charge) = (sql.into(), None, None, None, None);
        let (schema, tag) = (shown(&schema).unwrap_or(schema), StatementTag::rows());
        Self { schema, origins, rows, progress, tag, sql, last, alone, charge }
    }

    /// What cancels the query; none for one that is done.
    #[cfg(test)]
    pub(in crate::session) fn cancel_token(&self) -> Option<&CancelToken> {
        match &self.rows {
            ResultRows::Ready(_) => None,
            ResultRows::Running(running) => Some(&running.cancel),
        }
    }
}

impl RunningRows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.batches.recv().await {
            Some(batch) => batch.map(Some),
            None => self.ended().await,
        }
    }

    /// A driver that went away without a word panicked.
    async fn ended(&mut self) -> Result<Option<RecordBatch>> {
        let Some(driver) = self.driver.take() else { return Ok(None) };
        match driver.await {
            Err(error) if error.is_panic() => {
                Err(DataFusionError::Execution(format!("the query panicked: {error}")))
            }
            _ => Ok(None),
        }
    }
}

impl Drop for RunningRows {
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
            let unfinished = self.unfinished();
            let result = self.run_aside(sql).await;
            unfinished.ended(&result);
            result.map_err(|error| SqlError::new(error, sql).with_near_names(|| self.table_names()))
        })
    }

    /// Boxed, as all that plans: else each crate that runs statements compiles it into itself.
    pub(in crate::session) fn run_aside<'a>(
        &'a self,
        sql: &'a str,
    ) -> BoxFuture<'a, Result<QueryResult>> {
        Box::pin(async move {
            if let Some(done) = self.run_unplanned(sql).await? {
                return Ok(done);
            }
            let (session, text) = (self.clone(), sql.to_owned());
            let running =
                async move { on_deep_stack(stack_for(&text), session.try_run(&text)).await };
            // Boxed: what plans is large, and is handed from one thread's stack to another's.
            let workers = self.workers();
            offload(workers.threads(), self.database().planning(), Box::pin(running)).await
        })
    }

    async fn try_run(&self, sql: &str) -> Result<QueryResult> {
        if let Some(whole) = WholeStatement::of(sql)? {
            return self.run_whole(whole, sql).await;
        }
        if let Some(statement) = RoleStatement::of(sql)? {
            return self.run_roles(&statement, sql).await;
        }
        if let Some(statement) = self.parameter_statement(sql) {
            return self.parameter(statement, sql).await;
        }
        let statement = self.parse(sql)?;
        self.watch.parsed();
        if let Parsed::Statement(ast) = &statement.statement
            && let Some(done) = self.control(ast, sql).await?
        {
            return Ok(done);
        }
        let alone = match self.ride_text(&statement.statement, sql).await? {
            TextRide::Done(result) => return Ok(result),
            TextRide::Alone(alone) => Some(alone),
            TextRide::Misfit => None,
        };
        let transaction = self.statement_transaction()?;
        let mut result = self.run_in(&transaction, &statement, None, sql).await;
        if let Ok(result) = &mut result {
            result.alone = alone;
        }
        if result.is_err() {
            transaction.fail_settled().await;
        }
        result
    }

    /// Runs a statement with these values of its parameters.
    pub(in crate::session) async fn run_with(
        &self,
        transaction: &StatementTransaction,
        sql: &str,
        values: &ParamValues,
    ) -> Result<QueryResult> {
        let mut statement = self.parse(sql)?;
        if let ParamValues::List(values) = values {
            let types = values.iter().map(|value| Some(value.value.data_type()));
            cast_operands(&mut statement.statement, &types.collect::<Vec<_>>())?;
        }
        self.run_in(transaction, &statement, Some(values), sql).await
    }

    /// Runs a statement in its transaction: once more whenever rows that it found were changed by others
    /// before it had locked them. It keeps the locks, so each time fewer can be.
    pub(in crate::session) async fn run_in(
        &self,
        transaction: &StatementTransaction,
        statement: &ParsedStatement,
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        loop {
            match self.run_once(transaction, statement.clone(), values, sql).await {
                Err(error) if StaleStatement::ended(&error) => {
                    transaction.transaction.lock().await?.undo_parts();
                }
                result => return result,
            }
        }
    }

    async fn run_once(
        &self,
        transaction: &StatementTransaction,
        mut placed: ParsedStatement,
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        let locks = locking_subqueries::is_within(&placed.statement, sql);
        let writes = locks || self.prepared.writes(&placed.statement);
        let mut planner = self.planner(transaction, writes).await?;
        planner.values = values.cloned();
        if let Parsed::Statement(ast) = &placed.statement
            && let Some(done) = self.define_other(&planner, ast, sql).await?
        {
            planner.transaction.finish(self.database()).await?;
            if matches!(ast.as_ref(), Ast::Drop { .. }) {
                // What tables had is the kernel's again, as far as no query reads them still: this one's names
                // must not keep them.
                drop(planner);
                self.arena().trim();
            }
            return Ok(done);
        }
        if self.variables.carry_out(&planner, &placed.statement).await? {
            planner.transaction.finish(self.database()).await?;
            let tag = if matches!(placed.statement, Parsed::Reset(_)) { "RESET" } else { "SET" };
            return Ok(QueryResult::done(tag.to_owned(), sql));
        }
        if let Parsed::Statement(ast) = &mut placed.statement
            && locks
        {
            self.lock_within(&planner, ast).await?;
        }
        if let Parsed::Statement(ast) = &mut placed.statement
            && modifying_with::are_in(ast)
        {
            self.run_changes(&planner, ast).await?;
        }
        if let Some(locking) = LockingQuery::take(&placed.statement)? {
            return self.run_locking(planner, locking, sql).await;
        }
        let strategy = match &placed.placement {
            Some(placement) => parse_placement(placement)?,
            None => self.placement(),
        };
        planner.write_out_like(&mut placed.statement)?;
        let form = StatementForm::of(&placed.statement, sql);
        let tag = StatementTag::of(&placed.statement);
        let mut plan = planner.plan(placed.statement).await?;
        if let Some(values) = values {
            plan = plan.replace_params_with_values(values)?;
        }
        let (mut plan, executed) = self.prepared.bound(&planner, plan).await?;
        let (form, tag) = match executed {
            Some(ExecutedStatement { mut statement, values }) => {
                let (locks, changes) =
                    (locking_subqueries::is_in(&statement), modifying_with::are_in(&statement));
                if locks || changes {
                    planner.values = Some(values.clone());
                }
                if locks {
                    self.lock_within(&planner, &mut statement).await?;
                }
                if changes {
                    self.run_changes(&planner, &mut statement).await?;
                }
                if let Some(locking) = LockingQuery::of(&statement)? {
                    planner.values = Some(values);
                    return self.run_locking(planner, locking, sql).await;
                }
                if locks || changes {
                    let rest = Parsed::Statement(Box::new(statement.clone()));
                    let rest = planner.plan_other(rest).await?;
                    plan = rest.replace_params_with_values(&values)?;
                }
                (StatementForm::of_ast(&statement), StatementTag::of_ast(&statement))
            }
            None => (form, tag),
        };
        match plan {
            LogicalPlan::Ddl(ddl) => self.define(planner, ddl, form, strategy, sql).await,
            LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
                let parameters = planner.rule_parameters.and_of(&prepare.input)?.len();
                self.prepared.keep(&prepare, form.kept()?, parameters)?;
                Ok(QueryResult::done("PREPARE".to_owned(), sql))
            }
            LogicalPlan::Statement(PlanStatement::Deallocate(deallocate)) => {
                self.prepared.remove(&deallocate.name)?;
                // pgjdbc forgets its own names when it is told of all.
                let is_all = deallocate.name.eq_ignore_ascii_case("all");
                let words = if is_all { "DEALLOCATE ALL" } else { "DEALLOCATE" };
                Ok(QueryResult::done(words.to_owned(), sql))
            }
            LogicalPlan::Statement(statement) => self.change_setting(planner, statement, sql).await,
            LogicalPlan::Explain(explain) if !writes => {
                Ok(self.explain(planner, explain, sql).await?.tagged(tag))
            }
            plan if writes || sets_sequences(&plan)? => {
                Ok(self.write(planner, plan, sql).await?.tagged(tag))
            }
            plan => Ok(self.query(planner, plan, sql).await?.tagged(tag)),
        }
    }

    async fn define(
        &self,
        planner: StatementPlanner,
        ddl: DdlStatement,
        form: StatementForm,
        strategy: Strategy,
        sql: &str,
    ) -> Result<QueryResult> {
        let tag = ddl_tag(&ddl);
        let tag = match ddl {
            DdlStatement::CreateMemoryTable(create) => {
                let is_query = form.declared.columns.is_empty();
                let name = create.name.table().to_owned();
                match self.create_on_worker(&planner, create, form.declared, strategy).await? {
                    Some(rows) if is_query => format!("SELECT {rows}"),
                    Some(_) => tag.to_owned(),
                    None => with_notices(tag, &[there("relation", name)]).into_owned(),
                }
            }
            DdlStatement::CreateView(create) => {
                self.create_view(&planner, create, form.kept_text()?).await?;
                tag.to_owned()
            }
            DdlStatement::CreateExternalTable(create) => {
                planner.check_files("CREATE EXTERNAL TABLE")?;
                self.create_external_table(&planner, *create).await?;
                tag.to_owned()
            }
            ddl => match self.create_schema(&planner, &ddl).await? {
                Some(passed) => with_notices(tag, &passed).into_owned(),
                None => {
                    self.context.execute_logical_plan(LogicalPlan::Ddl(ddl)).await?;
                    tag.to_owned()
                }
            },
        };
        planner.transaction.finish(self.database()).await?;
        Ok(QueryResult::done(tag, sql))
    }

    /// Creates a table. The load is driven from a pool as well, so that what it awaits runs there.
    pub(in crate::session) async fn create_on_worker(
        &self,
        planner: &StatementPlanner,
        create: CreateMemoryTable,
        declared: DeclaredTable,
        strategy: Strategy,
    ) -> Result<Option<usize>> {
        let (session, planner) = (self.clone(), planner.clone());
        let _waiting = cancel_token(&planner.state).cancel_on_drop();
        self.on_worker(async move {
            Box::pin(session.create_table(&planner, create, declared, strategy)).await
        })
        .await
    }

    /// Runs work on a worker, so that what it awaits runs there too; what it gives.
    pub(crate) async fn on_worker<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.workers().run(work).await
    }

    /// Carries out ALTER TABLE and statements about sequences; none for all others.
    async fn define_other(
        &self,
        planner: &StatementPlanner,
        ast: &Ast,
        sql: &str,
    ) -> Result<Option<QueryResult>> {
        if let Some(tag) = planner.change_rights(ast).await? {
            return Ok(Some(QueryResult::done(tag.to_owned(), sql)));
        }
        if let Some(tag) = planner.comment(ast).await? {
            return Ok(Some(QueryResult::done(tag.to_owned(), sql)));
        }
        let tag: Option<Cow<'static, str>> = match ast {
            Ast::AlterTable(alter) => Some(self.alter(planner, alter).await?),
            Ast::Truncate(truncate) => match self.truncate_all(planner, truncate, sql).await? {
                None => {
                    planner.restart_identities(truncate).await?;
                    None
                }
                done => done.map(Cow::Borrowed),
            },
            other => match planner.macros(other, sql).await? {
                Some(tag) => Some(tag),
                None => match self.drop_all(planner, other).await? {
                    Some(tag) => Some(tag),
                    None => planner.sequence(other).await?,
                },
            },
        };
        Ok(tag.map(|tag| QueryResult::done(tag.into_owned(), sql)))
    }

    /// The plan of a query over what is there now, to be run on a worker, and what it runs in.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn plan<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, Result<PlannedQuery, SqlError>> {
        let planned = async move {
            let transaction = self.statement_transaction()?;
            let planner = self.planner(&transaction, false).await?;
            let statement =
                crate::session::statement::parsed_statement::parse(sql, &planner.state)?.statement;
            let plan = planner.plan(statement).await?;
            Ok((plan_physical(&planner.state, &plan).await?, planner.state.task_ctx()))
        };
        Box::pin(async move {
            planned
                .await
                .map_err(|error| SqlError::new(error, sql).with_near_names(|| self.table_names()))
        })
    }

    /// Starts a query.
    pub(in crate::session) async fn query(
        &self,
        planner: StatementPlanner,
        mut plan: LogicalPlan,
        sql: &str,
    ) -> Result<QueryResult> {
        let StatementPlanner { mut state, transaction, workers, .. } = planner;
        if let Some(replaced) = ReplacedDirectory::take(&mut plan) {
            state.config_mut().set_extension(Arc::new(replaced));
        }
        let origins = Some(origins_of(&plan));
        let physical = plan_physical(&state, &plan).await?;
        self.watch.planned(&physical);
        transaction.settle().await?;
        let schema = physical.schema();
        let schema = shown(&schema).unwrap_or(schema);
        let (progress, cancel) = (ScanProgress::of(&physical), cancel_token(&state));
        self.watch.follow(&progress);
        let (sender, batches) = mpsc::channel(CLIENT_BATCHES);
        let admitted = self.admit(&transaction, &progress).await?;
        let watch = self.watch.clone();
        let query =
            RunningQuery { state, plan, progress: progress.clone(), transaction, admitted, watch };
        let driver = workers.drive(async move {
            query.drive(physical, sender).await;
        });
        let rows = ResultRows::Running(RunningRows { cancel, batches, driver: Some(driver) });
        let (sql, last, alone, charge) = (sql.into(), None, None, None);
        let tag = StatementTag::rows();
        Ok(QueryResult { schema, origins, rows, progress, tag, sql, last, alone, charge })
    }
}

/// The batch with other names.
fn named(batch: &RecordBatch, schema: SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
