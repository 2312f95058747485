//! Prepared statements; those about one row by its key are planned once, and find and change the row without operators.

mod clock;
mod compile;
mod numbers;
mod repetition;
mod returning;
mod run;
mod scalar;
mod types;

use std::borrow::Cow;
use std::sync::Arc;

use atoll_store::database::{DatabaseNames, DatabaseVersion};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{ParamValues, Result, ScalarValue, TableReference, exec_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{ExplainFormat, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::compiled::Parameters;
use crate::session::Session;
use crate::session::cache::text_scope::TextScope;
use crate::session::dml::locking::LockingQuery;
use crate::session::dml::locking_subqueries;
use crate::session::plan::column_origin::{ColumnOrigins, origins_of};
use crate::session::plan::declared_operands::{DeclaredType, cast_operands};
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{analyzed, state_to_keep};
use crate::session::settings::parameters::{ParameterStatement, shown_schema};
use crate::session::statement::atoll_statement::AtollStatement;
use crate::session::statement::command_tag::StatementTag;
use crate::session::statement::explain::json_schema;
use crate::session::statement::query_result::QueryResult;
use crate::session::transaction::StatementTransaction;
use crate::shared_scan::{SharedChange, SharedSelection};
use crate::table::{ChangeKind, PlacedTable, StaleStatement, count_batch};
use atoll_sql_common::error::SqlError;
use atoll_sql_common::offload::offload;
use atoll_sql_common::pg_type::{PgType, type_oid};
use atoll_sql_common::settings::SharedScan;
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_parse::dialect::shown;
use atoll_sql_parse::parse::{on_deep_stack, stack_for};
use atoll_sql_semantics::rewrite::has_any_subquery;
use clock::ClockCalls;
use compile::PointPlan;
pub(crate) use compile::compile;
use repetition::Repetition;
pub(crate) use types::ParameterMarks;
use types::is_wider;
pub(in crate::session) use types::{cast_types, parameter_fields, types_of};

/// A statement that a session runs with different values, `$1` and so on.
#[derive(Debug)]
pub struct PreparedStatement {
    session: Session,
    sql: Arc<str>,
    planned: PlannedStatement,
    shape: Mutex<PreparedShape>,
}

/// The shape of a statement, valid by the rule of cached plans: see `plan_cache.rs`.
#[derive(Debug)]
struct PreparedShape {
    names: DatabaseNames,
    scope: TextScope,
    shape: Shape,
    columns: Option<SchemaRef>,
}

/// A planned statement in its session, to be run with values.
pub(in crate::session) struct StatementRun<'s> {
    pub(in crate::session) session: &'s Session,
    pub(in crate::session) sql: &'s Arc<str>,
    pub(in crate::session) planned: &'s PlannedStatement,
}

/// How to run a statement without planning it again.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Finds a row by its key, or lists its rows.
    Point(Arc<PointPlan>),
    /// Selects rows of one table, in a scan shared with other statements.
    Shared(Arc<SharedSelection>),
    /// Changes rows of one table, found in a scan shared with other statements.
    Change(Arc<SharedChange>),
    /// Is planned whenever it runs.
    Planned,
    /// Is executed from its text: `BEGIN`, `SET`, `ALTER TABLE` and others without parameters.
    Command,
}

/// A statement planned before it runs.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStatement {
    /// Types of its parameters.
    pub(in crate::session) types: Vec<DataType>,
    /// The OIDs that a client declared of them, 0 for none.
    pub(in crate::session) oids: Arc<[u32]>,
    pub(in crate::session) marks: ParameterMarks,
    pub(in crate::session) columns: Option<SchemaRef>,
    /// The origins of its result columns.
    pub(in crate::session) origins: Option<ColumnOrigins>,
    /// Whether it changes rows, or locks them.
    pub(in crate::session) writes: bool,
    /// How to run it with other values.
    pub(in crate::session) shape: Shape,
}

impl Shape {
    /// Whether the definition of its table is unchanged.
    pub(in crate::session) fn is_current(&self, version: &DatabaseVersion) -> bool {
        match self {
            Self::Point(point) => point.table_in(version).is_some(),
            Self::Shared(selection) => selection.is_current(version),
            Self::Change(change) => change.selection.is_current(version),
            Self::Planned | Self::Command => true,
        }
    }
}

impl Session {
    /// Prepares a statement.
    ///
    /// # Errors
    /// For statements that cannot be parsed or planned, with the position in the text if it is known.
    pub async fn prepare(&self, sql: &str) -> Result<PreparedStatement, SqlError> {
        self.prepare_as(sql, &[]).await
    }

    /// Prepares a statement with declared types of some parameters, used as far as the statement does not determine
    /// them.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_as<'a>(
        &'a self,
        sql: &'a str,
        declared: &[DeclaredType],
    ) -> BoxFuture<'a, Result<PreparedStatement, SqlError>> {
        let (session, text, declared) = (self.clone(), sql.to_owned(), declared.to_vec());
        // Boxed to keep DataFusion's planner from being compiled into every crate that awaits it.
        Box::pin(async move {
            // The version from before planning: if names change meanwhile, it is planned once more.
            let published = self.database().store().published();
            // Names of a transaction may be rolled back.
            let names = match self.sees_names_of(&published).await {
                true => published.names(),
                false => DatabaseNames::default(),
            };
            let scope = self.text_scope();
            let prepared = |planned: PlannedStatement| {
                let (shape, columns) = (planned.shape.clone(), planned.columns.clone());
                let shape = Mutex::new(PreparedShape { names, scope, shape, columns });
                PreparedStatement { session: self.clone(), sql: sql.into(), planned, shape }
            };
            if let Some(planned) = self.prepared_before(sql, &declared, &published).await {
                return Ok(prepared(planned));
            }
            let types = declared.clone();
            let planning = async move {
                on_deep_stack(stack_for(&text), session.plan_prepared(&text, &types)).await
            };
            let planned =
                offload(self.workers().threads(), self.database().planning(), Box::pin(planning))
                    .await;
            let planned = planned.map_err(|error| {
                SqlError::new(error, sql).with_near_names(|| self.table_names())
            })?;
            self.keep_prepared(sql, &declared, &published, &planned).await;
            Ok(prepared(planned))
        })
    }

    pub(in crate::session) async fn plan_prepared(
        &self,
        sql: &str,
        declared: &[DeclaredType],
    ) -> Result<PlannedStatement> {
        let statement = match self.read(sql)? {
            AtollStatement::Parameter(ParameterStatement::Show(name)) => {
                let columns = Some(shown_schema(&name));
                return Ok(PlannedStatement { columns, ..PlannedStatement::command() });
            }
            AtollStatement::Parsed(parsed) => parsed.statement,
            _ => return Ok(PlannedStatement::command()),
        };
        if is_command(&statement) {
            return Ok(PlannedStatement::command());
        }
        // Not before it is known to need one: COMMIT and SET TRANSACTION are prepared too.
        let transaction = self.statement_transaction()?;
        let locks = locking_subqueries::is_within(&statement, sql);
        let planned = self.plan_prepared_in(&transaction, statement, declared, locks).await;
        if transaction.is_own {
            // The cached statement must not keep alive what it was planned over.
            transaction.transaction.rollback().await;
        }
        planned
    }

    async fn plan_prepared_in(
        &self,
        transaction: &StatementTransaction,
        mut statement: Parsed,
        declared: &[DeclaredType],
        locks: bool,
    ) -> Result<PlannedStatement> {
        let writes = locks || self.prepared.writes(&statement);
        let planner = self.planner(transaction, writes).await?;
        let user_types = UserTypes::in_options(planner.state.config_options());
        cast_operands(&mut statement, declared, user_types)?;
        let normalizes = planner.state.config_options().sql_parser.enable_ident_normalization;
        let (names, _) = resolve_table_references(&statement, normalizes)?;
        let tells_rows = !StatementTag::from_statement(&statement).tells_all();
        let locks_rows = locks || LockingQuery::take(&statement)?.is_some();
        let plan = match planner.plan(statement.clone()).await {
            Err(error) if planner.routine_calls.are_noted() => {
                let described = self.describe_routines(&planner, statement, error).await?;
                planner.plan(described).await?
            }
            planned => planned?,
        };
        let data_types: Vec<_> = declared.iter().map(|of| of.data_type.clone()).collect();
        let mut types = types_of(&planner, &plan, &data_types)?;
        let mut marks = ParameterMarks::from_plan(&plan, types.len())?;
        let has_labels = marks.take_labels(&mut types);
        let columns =
            if tells_rows { Some(columns_of(&planner.state, &plan, &types)?) } else { None };
        let origins = tells_rows.then(|| origins_of(&plan));
        let planned = |shape| PlannedStatement {
            types: types.clone(),
            oids: declared.iter().map(|of| of.oid).collect(),
            marks: marks.clone(),
            columns,
            origins,
            writes,
            shape,
        };
        let may_be = matches!(
            plan,
            LogicalPlan::Dml(_)
                | LogicalPlan::Projection(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::Distinct(_)
        );
        let runs_routines = planner.routine_calls.are_noted();
        if runs_routines || locks_rows || has_labels || !may_be || !are_tables(&planner, names)? {
            return Ok(planned(Shape::Planned));
        }
        let (plan, clock) = ClockCalls::take(plan, types.len())?;
        let repetition = Repetition::from_plan(&plan)?;
        if repetition == Repetition::Other || !planner.rule_parameters.is_empty() {
            return Ok(planned(Shape::Planned));
        }
        let state = state_to_keep(&planner.state);
        let optimized = state.optimize(&plan)?;
        let asks = |node: &LogicalPlan| Ok(node.expressions().iter().any(has_any_subquery));
        if optimized.exists(asks)? {
            return Ok(planned(Shape::Planned));
        }
        let parameters = Parameters::new(&[types.as_slice(), &clock.types()].concat())?;
        let point = compile(&state, &optimized, &parameters)?;
        if let Some(point) = point {
            return Ok(planned(Shape::Point(Arc::new(PointPlan { clock, ..point }))));
        }
        if !clock.is_empty() || repetition == Repetition::Numbered {
            return Ok(planned(Shape::Planned));
        }
        if let Some(change) = SharedChange::compile(&state, &optimized, &parameters)? {
            return Ok(planned(Shape::Change(Arc::new(change))));
        }
        let shared = SharedSelection::compile(&state, &optimized, &parameters).await?;
        Ok(planned(shared.map_or(Shape::Planned, |shared| Shape::Shared(Arc::new(shared)))))
    }
}

impl PlannedStatement {
    pub(in crate::session) fn without_parameters(shape: Shape) -> Self {
        let (types, oids, marks) = Default::default();
        Self { types, oids, marks, columns: None, origins: None, writes: false, shape }
    }

    fn command() -> Self {
        Self::without_parameters(Shape::Command)
    }

    /// Whether it is valid while its names and its table are: the columns of a statement that is always planned may
    /// depend on more.
    pub(in crate::session) fn is_kept(&self) -> bool {
        matches!(self.shape, Shape::Point(_) | Shape::Shared(_) | Shape::Change(_))
    }
}

/// Whether a statement is executed from its text rather than planned with parameters.
fn is_command(statement: &Parsed) -> bool {
    let Parsed::Statement(ast) = statement else {
        return matches!(statement, Parsed::Reset(_) | Parsed::CreateExternalTable(_));
    };
    match ast.as_ref() {
        Ast::CreateTable(create) => create.query.is_none(),
        Ast::Query(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) | Ast::Merge(_) => false,
        Ast::Explain { .. } | Ast::ExplainTable { .. } | Ast::Execute { .. } => false,
        Ast::ShowVariable { .. } | Ast::ShowColumns { .. } | Ast::ShowTables { .. } => false,
        Ast::ShowFunctions { .. } | Ast::ShowCreate { .. } => false,
        _ => true,
    }
}

/// The result columns of a plan, for any values of its parameters.
pub(in crate::session) fn columns_of(
    state: &SessionState,
    plan: &LogicalPlan,
    types: &[DataType],
) -> Result<SchemaRef> {
    if let LogicalPlan::Explain(explain) = plan
        && explain.explain_format == ExplainFormat::PostgresJSON
    {
        return Ok(json_schema());
    }
    let nulls = types
        .iter()
        .map(|data_type| Ok(ScalarAndMetadata::new(ScalarValue::try_from(data_type)?, None)));
    let nulls = ParamValues::List(nulls.collect::<Result<_>>()?);
    let bound = plan.clone().replace_params_with_values(&nulls)?;
    let bound = analyzed(state, bound)?;
    let schema = Arc::clone(bound.schema().inner());
    Ok(shown(&schema).unwrap_or(schema))
}

/// Whether names are those of tables: a view may be replaced.
fn are_tables(planner: &StatementPlanner, names: Vec<TableReference>) -> Result<bool> {
    for name in names {
        let found = planner.names.table(&planner.resolve(name))?;
        if !found.is_some_and(|found| found.is::<PlacedTable>()) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl PreparedStatement {
    /// Types of the parameters.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.planned.types
    }

    /// The OID of a parameter's type in PostgreSQL.
    pub fn parameter_oid(&self, at: usize) -> u32 {
        let marked = self.planned.marks.0.get(at).copied().filter(|oid| *oid != 0);
        marked
            .or_else(|| Some(PgType::from_data_type(self.planned.types.get(at)?).oid))
            .unwrap_or(type_oid::TEXT)
    }

    /// The columns of its rows; `None` for a statement without rows, or whose tag holds the whole result.
    pub fn columns(&self) -> Option<&SchemaRef> {
        self.planned.columns.as_ref()
    }

    /// The columns that its rows have now, if it is a statement that changes rows: its table may have been altered.
    ///
    /// # Errors
    /// If it cannot be planned any more.
    pub async fn columns_to_write(&self) -> Result<Option<SchemaRef>, SqlError> {
        if !self.planned.writes || self.planned.columns.is_none() {
            return Ok(None);
        }
        let unfinished = self.session.unfinished();
        let current = self.current().await;
        unfinished.ended(&current);
        let current = current.map_err(|error| SqlError::new(error, &self.sql))?;
        Ok(current.1)
    }

    /// The origins of these columns, if any is a plain column of a table.
    pub fn origins(&self) -> Option<&ColumnOrigins> {
        self.planned.origins.as_ref()
    }

    /// Runs the statement with these values, in the session's transaction or in its own.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub async fn execute(&self, values: &[ScalarValue]) -> Result<QueryResult, SqlError> {
        let unfinished = self.session.unfinished();
        let result = self.try_execute(values).await;
        unfinished.ended(&result);
        result.map_err(|error| {
            SqlError::new(error, &self.sql).with_near_names(|| self.session.table_names())
        })
    }

    async fn try_execute(&self, values: &[ScalarValue]) -> Result<QueryResult> {
        if values.len() != self.planned.types.len() {
            let (wanted, given) = (self.planned.types.len(), values.len());
            return exec_err!(
                "the statement has {wanted} parameters, but {given} values are given"
            );
        }
        let types = values.iter().zip(&self.planned.types);
        let values = match types.clone().all(|(value, wanted)| value.data_type() == *wanted) {
            true => Cow::Borrowed(values),
            false => {
                let cast = types.clone().map(|(value, wanted)| value.cast_to(wanted));
                match cast.collect::<Result<Vec<_>>>() {
                    Ok(values) => Cow::Owned(values),
                    // A number that its column cannot hold matches no row, and is an error if it is written.
                    Err(_) if types.into_iter().any(|(value, wanted)| is_wider(value, wanted)) => {
                        let transaction = self.session.statement_transaction()?;
                        return self.run().by_planning(&transaction, values).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let ((shape, _), run) = (self.current().await?, self.run());
        match run.by_shape(&shape, &values).await? {
            Some(result) => Ok(result),
            None => {
                let transaction = self.session.statement_transaction()?;
                let values = self.planned.marks.canonical(&values, &self.session)?;
                run.by_planning(&transaction, &values).await
            }
        }
    }

    fn run(&self) -> StatementRun<'_> {
        StatementRun { session: &self.session, sql: &self.sql, planned: &self.planned }
    }

    /// Its shape and columns now; kept if names mean the same outside of the session's transaction.
    async fn current(&self) -> Result<(Shape, Option<SchemaRef>)> {
        let database = self.session.database();
        let version = database.store().published();
        let scope = self.session.text_scope();
        let is_common = self.session.sees_names_of(&version).await;
        if is_common {
            let planned = self.shape.lock();
            if planned.scope == scope
                && planned.names.are_those_of(&version)
                && planned.shape.is_current(&version)
            {
                return Ok((planned.shape.clone(), planned.columns.clone()));
            }
        }
        let PlannedStatement { types, shape, columns, .. } = self.plan_again().await?;
        // With parameters of other types it is another statement, which normal execution refuses or answers.
        let shape = if types == self.planned.types { shape } else { Shape::Planned };
        if is_common {
            let (names, shape, columns) = (version.names(), shape.clone(), columns.clone());
            *self.shape.lock() = PreparedShape { names, scope, shape, columns };
        }
        Ok((shape, columns))
    }

    /// Boxed, as all planning.
    fn plan_again(&self) -> BoxFuture<'_, Result<PlannedStatement>> {
        let oid = |at: usize| self.planned.oids.get(at).copied().unwrap_or(0);
        let types = self.planned.types.iter().cloned().map(Some).enumerate();
        let declared: Vec<_> =
            types.map(|(at, data_type)| DeclaredType { data_type, oid: oid(at) }).collect();
        let (session, sql) = (self.session.clone(), Arc::clone(&self.sql));
        let planning = async move {
            on_deep_stack(stack_for(&sql), session.plan_prepared(&sql, &declared)).await
        };
        let (workers, database) = (self.session.workers(), self.session.database());
        let planned = async move {
            offload(workers.threads(), database.planning(), Box::pin(planning)).await
        };
        Box::pin(planned)
    }
}

impl StatementRun<'_> {
    /// Runs it by a cached shape; `None` if it has to be planned.
    pub(in crate::session) async fn by_shape(
        &self,
        shape: &Shape,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        if !matches!(shape, Shape::Command) && self.session.is_serializable() {
            // Only planned statements note what they read.
            return Ok(None);
        }
        let values = self.planned.marks.canonical(values, self.session)?;
        let result = match shape {
            Shape::Point(point) => self.run_point(point, &values).await,
            Shape::Shared(selection) => self.run_shared(selection, &values).await,
            Shape::Change(change) => self.run_change(change, &values).await,
            Shape::Planned => Ok(None),
            Shape::Command => return self.session.run_aside(self.sql).await.map(Some),
        };
        Ok(result?.map(|result| result.with_origins(self.planned.origins.clone())))
    }

    /// Selects rows in a shared scan; `None` if that is off, or normal execution has to answer.
    async fn run_shared(
        &self,
        selection: &SharedSelection,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        let session = self.session;
        if session.is_in_transaction() || session.shared_scan() == SharedScan::Off {
            return Ok(None);
        }
        let values = run::arrays(values)?;
        let Some(bound) = selection.bind(&values)? else { return Ok(None) };
        let rows = bound.ride(session.database(), &session.workers(), || session.state()).await?;
        Ok(rows.map(|rows| QueryResult::of_scan(selection.schema(), rows, Arc::clone(self.sql))))
    }

    /// Changes rows found in a shared scan; `None` as in [`run_shared`](Self::run_shared).
    async fn run_change(
        &self,
        change: &SharedChange,
        values: &[ScalarValue],
    ) -> Result<Option<QueryResult>> {
        let session = self.session;
        if session.is_in_transaction() || session.shared_scan() == SharedScan::Off {
            return Ok(None);
        }
        let Some(bound) = change.selection.bind(&run::arrays(values)?)? else { return Ok(None) };
        let Some(found) = bound.find(session.database(), &session.workers()).await? else {
            return Ok(None);
        };
        let (database, transaction) = (session.database(), session.statement_transaction()?);
        let count = match change.write(found, database, &transaction.transaction).await {
            // With the locks that it holds, normal execution finds fewer rows that others change.
            Err(error) if StaleStatement::ended(&error) => {
                return self.by_planning(&transaction, values).await.map(Some);
            }
            Err(error) => {
                transaction.fail_settled().await;
                return Err(error);
            }
            Ok(written) => count_batch(written)?,
        };
        transaction.finish(database).await?;
        let words = match change.kind() {
            ChangeKind::Update => "UPDATE",
            ChangeKind::Delete => "DELETE",
        };
        let result = QueryResult::from_batches(count.schema(), vec![count], Arc::clone(self.sql));
        Ok(Some(result.tagged(StatementTag::written(words))))
    }

    /// Runs it as any other statement; boxed, as all planning.
    fn by_planning(
        &self,
        transaction: &StatementTransaction,
        values: &[ScalarValue],
    ) -> BoxFuture<'_, Result<QueryResult>> {
        let (session, sql) = (self.session.clone(), Arc::clone(self.sql));
        let oids = Arc::clone(&self.planned.oids);
        let values = values.iter().map(|value| ScalarAndMetadata::new(value.clone(), None));
        let (transaction, values) = (transaction.clone(), ParamValues::List(values.collect()));
        let running = async move {
            let running = session.run_with(&transaction, &sql, &values, &oids);
            let result = on_deep_stack(stack_for(&sql), running).await;
            if result.is_err() {
                transaction.fail_settled().await;
            }
            result
        };
        let (workers, database) = (self.session.workers(), self.session.database());
        let ran =
            async move { offload(workers.threads(), database.planning(), Box::pin(running)).await };
        Box::pin(ran)
    }
}
