//! Running one statement: plan off the caller's thread, run on the pools, return batches.

use std::borrow::Cow;
use std::sync::Arc;

use atoll_placement::Strategy;
use datafusion::common::{ParamValues, Result, not_impl_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{
    CreateMemoryTable, DdlStatement, ExplainFormat, LogicalPlan, Statement as PlanStatement,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectType, Statement as Ast};
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::session::Session;
use crate::session::cache::prepared::ExecutedStatement;
use crate::session::cache::statement_texts::TextRide;
use crate::session::ddl::declared_table::DeclaredTable;
use crate::session::dml::locking::LockingQuery;
use crate::session::dml::locking_subqueries;
use crate::session::dml::write::has_effects;
use crate::session::plan::column_origin::origins_of;
use crate::session::plan::declared_operands::{DeclaredType, are_users, cast_operands};
use crate::session::plan::modifying_with;
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::routine_calls::RoutineCalled;
use crate::session::plan::steps::{cancel_token, plan_physical};
use crate::session::statement::atoll_statement::AtollStatement;
use crate::session::statement::command_tag::{StatementTag, ddl_tag, there, with_notices};
use crate::session::statement::parsed_statement::ParsedStatement;
use crate::session::statement::query_result::{QueryResult, ResultRows, RunningRows};
use crate::session::statement::running_query::RunningQuery;
use crate::session::statement::statement_form::StatementForm;
use crate::session::statement::utility::UtilityStatement;
use crate::session::transaction::StatementTransaction;
use crate::table::StaleStatement;
use atoll_sql_common::error::{SqlError, SqlState};
use atoll_sql_common::offload::offload;
use atoll_sql_common::settings::parse_placement;
use atoll_sql_exec::scan::ScanProgress;
use atoll_sql_files::copy::ReplacedDirectory;
use atoll_sql_parse::dialect::shown;
use atoll_sql_parse::parse::{on_deep_stack, stack_for};

/// Batches that may wait for the client before the query pauses.
const CLIENT_BATCHES: usize = 4;

/// The plan of a query, and what it runs in.
pub type PlannedQuery = (Arc<dyn ExecutionPlan>, Arc<TaskContext>);

/// The next step for a planned statement.
enum StatementPlan {
    /// Lock the rows that it selects.
    Locking(Box<LockingQuery>),
    Planned(Box<PlannedParts>),
}

impl StatementPlan {
    fn from_parts(parts: PlannedParts) -> Self {
        Self::Planned(Box::new(parts))
    }
}

/// A plan, and the parts of its statement that are not in it.
struct PlannedParts {
    plan: LogicalPlan,
    form: StatementForm,
    tag: StatementTag,
    /// The placement of a table that it creates.
    strategy: Strategy,
}

impl Session {
    /// Runs one statement. Rows arrive through the result while the query runs on the pools.
    ///
    /// # Errors
    /// With the position in the text, if it is known, for statements that cannot be parsed, planned or started. The
    /// session stays as it was.
    pub fn run<'a>(
        &'a self,
        sql: &'a str,
    ) -> BoxFuture<'a, std::result::Result<QueryResult, SqlError>> {
        // Boxed to keep DataFusion's planner from being compiled into every crate that awaits it.
        Box::pin(async move {
            let unfinished = self.unfinished();
            let result = self.run_aside(sql).await;
            unfinished.ended(&result);
            result.map_err(|error| SqlError::new(error, sql).with_near_names(|| self.table_names()))
        })
    }

    /// Boxed, as all planning: else each crate that runs statements compiles it too.
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
            // Boxed: planning futures are large, and move from one thread's stack to another's.
            let workers = self.workers();
            offload(workers.threads(), self.database().planning(), Box::pin(running)).await
        })
    }

    async fn try_run(&self, sql: &str) -> Result<QueryResult> {
        match self.read(sql)? {
            AtollStatement::Utility(statement) => self.run_utility(statement, sql).await,
            AtollStatement::Role(statement) => self.run_roles(&statement, sql).await,
            AtollStatement::Parameter(statement) => self.parameter(statement, sql).await,
            AtollStatement::Notify(statement) => self.run_notify(statement, sql).await,
            AtollStatement::Parsed(statement) => self.run_parsed(&statement, sql).await,
        }
    }

    /// Runs a statement of a block, within the statement that the block is.
    pub(in crate::session) async fn run_nested(&self, sql: &str) -> Result<QueryResult> {
        match self.read(sql)? {
            AtollStatement::Parsed(statement) => Box::pin(self.run_parsed(&statement, sql)).await,
            AtollStatement::Role(statement) => Box::pin(self.run_roles(&statement, sql)).await,
            AtollStatement::Notify(statement) => Box::pin(self.run_notify(statement, sql)).await,
            AtollStatement::Parameter(statement) => Box::pin(self.parameter(statement, sql)).await,
            AtollStatement::Utility(UtilityStatement::Routine(routine)) => {
                Ok(QueryResult::done(self.create_routine(&routine, sql).await?.to_owned(), sql))
            }
            AtollStatement::Utility(_) => not_impl_err!("'{sql}' in DO is not supported"),
        }
    }

    /// Runs a parsed statement: transaction control, or by a cached or a new plan.
    async fn run_parsed(&self, statement: &ParsedStatement, sql: &str) -> Result<QueryResult> {
        self.watch.parsed();
        if let Parsed::Statement(ast) = &statement.statement
            && let Some(done) = self.control(ast, sql).await?
        {
            return Ok(done);
        }
        if let Parsed::Statement(ast) = &statement.statement
            && let Ast::Call(call) = ast.as_ref()
        {
            return self.run_call(call, sql).await;
        }
        let alone = match self.ride_text(&statement.statement, sql).await? {
            TextRide::Done(result) => return Ok(*result),
            TextRide::Alone(alone) => Some(alone),
            TextRide::Misfit => None,
        };
        let transaction = self.statement_transaction()?;
        let mut result = self.run_in(&transaction, statement, None, sql).await;
        if let Ok(result) = &mut result {
            result.alone = alone;
        }
        if result.is_err() {
            transaction.fail_settled().await;
        }
        result
    }

    /// Runs a statement with these values of its parameters. `marks` are the OIDs of their types, as far as the values
    /// do not tell them.
    pub(in crate::session) async fn run_with(
        &self,
        transaction: &StatementTransaction,
        sql: &str,
        values: &ParamValues,
        marks: &[u32],
    ) -> Result<QueryResult> {
        let mut statement = self.parse(sql)?;
        if let ParamValues::List(values) = values {
            let declared = values.iter().enumerate().map(|(at, value)| DeclaredType {
                data_type: Some(value.value.data_type()),
                oid: marks.get(at).copied().unwrap_or(0),
            });
            let declared: Vec<_> = declared.collect();
            let user_types = are_users(&declared).then(|| self.names().user_types());
            cast_operands(&mut statement.statement, &declared, user_types.as_ref())?;
        }
        self.run_in(transaction, &statement, Some(values), sql).await
    }

    /// Runs a statement in its transaction: again whenever others changed rows that it found before it had locked them.
    /// It keeps the locks, so this happens less each time.
    pub(in crate::session) async fn run_in(
        &self,
        transaction: &StatementTransaction,
        statement: &ParsedStatement,
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        let announced = transaction.transaction.announced();
        loop {
            match self.run_once(transaction, statement.clone(), values, sql).await {
                Err(error) if StaleStatement::ended(&error) => {
                    transaction.transaction.undo_announcements(announced);
                    transaction.transaction.lock().await?.undo_parts();
                }
                Err(error) if RoutineCalled::is(&error) => {
                    let given = (values, sql);
                    return self.run_with_routines(transaction, statement, given, error).await;
                }
                result => return result,
            }
        }
    }

    /// The steps of a statement, in order: statements without a plan, parts that run before planning, planning, and
    /// execution.
    async fn run_once(
        &self,
        transaction: &StatementTransaction,
        placed: ParsedStatement,
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        let locks = locking_subqueries::is_within(&placed.statement, sql);
        let writes = locks || self.prepared.writes(&placed.statement);
        let mut planner = self.planner(transaction, writes).await?;
        planner.values = values.cloned();
        for (name, rows) in placed.relations.iter() {
            planner.names.hide(name, Arc::clone(rows));
        }
        let calls = planner.routine_calls.clone();
        let done = self.run_planned(planner, (placed, locks, writes), values, sql).await;
        done.map_err(|error| calls.marked(error))
    }

    /// Runs a statement by a planner.
    async fn run_planned(
        &self,
        mut planner: StatementPlanner,
        (mut placed, locks, writes): (ParsedStatement, bool, bool),
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<QueryResult> {
        if let Some(done) = self.run_without_plan(&planner, &placed.statement, sql).await? {
            if matches!(&placed.statement, Parsed::Statement(ast) if matches!(**ast, Ast::Drop { .. }))
            {
                // Tables that it dropped are freed unless queries still read them: this statement's names must not keep
                // them.
                drop(planner);
                self.arena().trim();
            }
            return Ok(done);
        }
        if let Parsed::Statement(ast) = &mut placed.statement {
            self.run_parts(&planner, ast, locks).await?;
        }
        if let Some(locking) = LockingQuery::take(&placed.statement)? {
            return self.run_locking(planner, locking, sql).await;
        }
        match self.plan_parsed(&mut planner, placed, values, sql).await? {
            StatementPlan::Locking(locking) => self.run_locking(planner, *locking, sql).await,
            StatementPlan::Planned(planned) => {
                self.carry_out_plan(planner, *planned, writes, sql).await
            }
        }
    }

    /// Runs DDL that DataFusion does not plan, and statements about variables; `None` for others.
    async fn run_without_plan(
        &self,
        planner: &StatementPlanner,
        statement: &Parsed,
        sql: &str,
    ) -> Result<Option<QueryResult>> {
        if let Parsed::Statement(ast) = statement
            && let Some(done) = self.define_other(planner, ast, sql).await?
        {
            planner.transaction.finish(self.database()).await?;
            return Ok(Some(done));
        }
        if !self.variables.carry_out(planner, statement).await? {
            return Ok(None);
        }
        planner.transaction.finish(self.database()).await?;
        let tag = if matches!(statement, Parsed::Reset(_)) { "RESET" } else { "SET" };
        Ok(Some(QueryResult::done(tag.to_owned(), sql)))
    }

    /// Runs the parts of a statement that lock or change rows before the rest of it is planned.
    async fn run_parts(
        &self,
        planner: &StatementPlanner,
        ast: &mut Ast,
        locks: bool,
    ) -> Result<()> {
        if locks {
            self.lock_within(planner, ast).await?;
        }
        if modifying_with::are_in(ast) {
            self.run_changes(planner, ast).await?;
        }
        Ok(())
    }

    /// Plans a statement; for EXECUTE, the prepared one.
    async fn plan_parsed(
        &self,
        planner: &mut StatementPlanner,
        mut placed: ParsedStatement,
        values: Option<&ParamValues>,
        sql: &str,
    ) -> Result<StatementPlan> {
        let strategy = match &placed.placement {
            Some(placement) => parse_placement(placement)?,
            None => self.placement(),
        };
        let copied_indexes = planner.write_out_like(&mut placed.statement)?;
        planner.write_out_domains(&mut placed.statement)?;
        let mut form = StatementForm::new(&placed.statement, sql);
        form.declared.copied_indexes = copied_indexes;
        let tag = StatementTag::from_statement(&placed.statement);
        let mut plan = planner.plan(placed.statement).await?;
        let is_prepared = matches!(plan, LogicalPlan::Statement(PlanStatement::Prepare(_)));
        if let (false, None, Some(name)) = (is_prepared, values, planner.rule_parameters.first()) {
            let message = format!("there is no parameter {name}");
            return Err(SqlState::UNDEFINED_PARAMETER.error(message));
        }
        if let Some(values) = values {
            plan = plan.replace_params_with_values(values)?;
        }
        let (mut plan, executed) = self.prepared.bound(planner, plan).await?;
        let Some(ExecutedStatement { mut statement, values }) = executed else {
            return Ok(StatementPlan::from_parts(PlannedParts { plan, form, tag, strategy }));
        };
        let locks = locking_subqueries::is_in(&statement);
        let has_parts = locks || modifying_with::are_in(&statement);
        if has_parts {
            planner.values = Some(values.clone());
        }
        self.run_parts(planner, &mut statement, locks).await?;
        if let Some(locking) = LockingQuery::try_from_ast(&statement)? {
            planner.values = Some(values);
            return Ok(StatementPlan::Locking(Box::new(locking)));
        }
        if has_parts {
            let rest = Parsed::Statement(Box::new(statement.clone()));
            let rest = planner.labelled(planner.plan_other(rest).await?)?;
            plan = rest.replace_params_with_values(&values)?;
        }
        let (form, tag) = (StatementForm::of_ast(&statement), StatementTag::of_ast(&statement));
        Ok(StatementPlan::from_parts(PlannedParts { plan, form, tag, strategy }))
    }

    /// Runs a plan.
    async fn carry_out_plan(
        &self,
        planner: StatementPlanner,
        planned: PlannedParts,
        writes: bool,
        sql: &str,
    ) -> Result<QueryResult> {
        let PlannedParts { plan, form, tag, strategy } = planned;
        match plan {
            LogicalPlan::Ddl(ddl) => self.define(planner, ddl, form, strategy, sql).await,
            LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
                let parameters = planner.rule_parameters.and_of(&prepare.input)?.len();
                self.prepared.keep(&prepare, form.kept()?, parameters, sql)?;
                Ok(QueryResult::done("PREPARE".to_owned(), sql))
            }
            LogicalPlan::Statement(PlanStatement::Deallocate(deallocate)) => {
                self.prepared.remove(&deallocate.name)?;
                // pgjdbc forgets its own names after this tag.
                let is_all = deallocate.name.eq_ignore_ascii_case("all");
                let words = if is_all { "DEALLOCATE ALL" } else { "DEALLOCATE" };
                Ok(QueryResult::done(words.to_owned(), sql))
            }
            LogicalPlan::Statement(statement) => self.change_setting(planner, statement, sql).await,
            LogicalPlan::Explain(explain)
                if !writes || explain.explain_format == ExplainFormat::PostgresJSON =>
            {
                Ok(self.explain(planner, explain, writes, sql).await?.tagged(tag))
            }
            plan if writes || has_effects(&plan)? => {
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

    /// Runs work on a worker, so that what it awaits runs there too, and returns its result.
    pub(crate) async fn on_worker<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.workers().run(work).await
    }

    /// Runs ALTER TABLE and statements about sequences; `None` for others.
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
            Ast::CreateIndex(_) | Ast::AlterIndex { .. } => {
                self.index_statement(planner, ast).await?
            }
            Ast::Drop { object_type: ObjectType::Index, .. } => {
                self.index_statement(planner, ast).await?
            }
            Ast::CreateView(create) if create.materialized => {
                Some(self.create_materialized(planner, create, sql).await?)
            }
            other => match planner.macros(other, sql).await? {
                Some(tag) => Some(tag),
                None => match self.drop_all(planner, other).await? {
                    Some(tag) => Some(tag),
                    None => match self.user_type(planner, other).await? {
                        Some(tag) => Some(tag),
                        None => match Box::pin(self.domain(planner, other)).await? {
                            Some(tag) => Some(tag),
                            None => planner.sequence(other).await?,
                        },
                    },
                },
            },
        };
        Ok(tag.map(|tag| QueryResult::done(tag.into_owned(), sql)))
    }

    /// The plan of a query over the current state, to be run on a worker, and its context.
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
        let (progress, cancel) = (ScanProgress::for_plan(&physical), cancel_token(&state));
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
        let notices = Vec::new();
        Ok(QueryResult { schema, origins, rows, progress, tag, sql, last, alone, charge, notices })
    }
}
