//! From a parsed statement to its plan, against the names of one moment.

use std::sync::Arc;

use atoll_functions::StatementStart;
use atoll_runtime::CancelToken;
use atoll_store::database::DatabaseVersion;
use atoll_store::database::{CatalogChange, LockWait};
use atoll_store::lock::LockMode;
use atoll_store::table::TableChange;
use chrono::Utc;
use datafusion::arrow::datatypes::Field;
use datafusion::catalog::view::ViewTable;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{
    ParamValues, ResolvedTableReference, Result, TableReference, internal_err,
};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{
    DdlStatement, Expr, LogicalPlan, Prepare, Statement as PlanStatement,
};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::planner::{IdentNormalizer, object_name_to_table_reference};
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast::{Ident, Insert, ObjectName, Statement as Ast, TableObject};
use futures::future::BoxFuture;

use crate::catalog::{Catalogs, StoredNames, UnplannedView};
use crate::database::{Database, Workers};
use crate::pg_catalog::tells_columns_of_views;
use crate::role::check_reserved;
use crate::role::rights::{LimitedUser, Right};
use crate::session::Session;
use crate::session::ddl::create::distinctly_named;
use crate::session::ddl::declared_table::DeclaredTable;
use crate::session::dml::change::{RowChange, innermost, quoted};
use crate::session::dml::insert::{
    GivenIdentities, fill_defaults, take_conflict, take_or, take_with,
};
use crate::session::dml::merge::RowMerge;
use crate::session::dml::refused_values::check_inserted;
use crate::session::dml::returning::Returning;
use crate::session::plan::argument_types::type_arguments;
use crate::session::plan::routine_calls::RoutineCalls;
use crate::session::plan::rule_parameters::RuleParameters;
use crate::session::plan::same_names::BareQualifiers;
use crate::session::plan::steps::coerced;
use crate::session::statement::copy_in::{copies, inserts_copied};
use crate::session::transaction::StatementTransaction;
use crate::statement_handle::StatementHandle;
use crate::table::{PlacedTable, WriteRules, WriteTarget, fresh};
use crate::table_text::is_generated;
use atoll_sql_common::error::{SqlError, SqlState, stated_err, transaction_error};
use atoll_sql_common::names::{NameList, plain, resolve, resolve_lasting};
use atoll_sql_common::settings::AtollOptions;
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_exec::admission::StatementClass;
use atoll_sql_files::check_files;
use atoll_sql_parse::dialect::BY_NAME;
use atoll_sql_semantics::enums::{cast_parameters, labelled, labels_in_containers};
use atoll_sql_semantics::sql_to_plan::statement_to_plan;
use atoll_sql_semantics::zoned_ranges::ranges_shown;

/// Plans one statement: all of its scans see the rows at the time of its creation.
#[derive(Clone)]
pub(crate) struct StatementPlanner {
    /// The session's settings, with the names of the statement.
    pub(in crate::session) state: SessionState,
    /// These names.
    pub(crate) names: Catalogs,
    /// The transaction that it reads and writes in.
    pub(in crate::session) transaction: StatementTransaction,
    /// The shared database.
    pub(in crate::session) database: Database,
    /// The workers on which it runs.
    pub(in crate::session) workers: Workers,
    /// Whether the statement may name files.
    files: bool,
    /// The user whose rights limit it; `None` if it may do everything.
    pub(in crate::session) user: Option<Arc<LimitedUser>>,
    /// The values of its parameters, if any.
    pub(in crate::session) values: Option<ParamValues>,
    /// Parameters outside of its plan.
    pub(in crate::session) rule_parameters: RuleParameters,
    /// Whether it calls functions that must run before it.
    pub(in crate::session) routine_calls: RoutineCalls,
}

impl Session {
    /// A planner for the next statement of a transaction, which sees its state.
    pub(crate) async fn planner(
        &self,
        transaction: &StatementTransaction,
        writes: bool,
    ) -> Result<StatementPlanner> {
        let version = transaction.statement(writes).await?;
        let workers = self.workers();
        let stored = StoredNames::new(version, workers.runtime().clone());
        let mut names = self.catalogs.fork(stored.noting(transaction.reads().await?));
        let files = self.may_use_files();
        if !files {
            names.leave_files_out();
        }
        let mut state = self.state_on(&workers);
        self.follow_search_path(&mut names, &mut state.config_mut().options_mut().catalog);
        state.register_catalog_list(NameList::new(names.clone()));
        state.config_mut().set_extension(Arc::new(CancelToken::new()));
        // Another session may have set it.
        if let Some(options) = state.config_mut().options_mut().extensions.get_mut::<AtollOptions>()
        {
            options.cores = self.database().pools().cores();
            let limit = |class| self.database().admission().limit(class);
            options.small_statements = limit(StatementClass::Small);
            options.large_statements = limit(StatementClass::Large);
        }
        let types = names.user_types();
        if !types.is_empty() {
            state.config_mut().options_mut().extensions.insert(types);
        }
        let user = self.limited_user();
        let statement =
            StatementHandle::new(transaction.transaction.clone(), user.clone(), names.clone());
        let begun = Utc::now();
        let extensions = &mut state.config_mut().options_mut().extensions;
        extensions.insert(statement);
        let transaction_begun = self.transaction_begun().unwrap_or(begun);
        extensions.insert(StatementStart {
            statement: Some(begun.timestamp_micros()),
            transaction: Some(transaction_begun.timestamp_micros()),
        });
        // The settings that functions receive.
        state.mark_start_execution();
        state.execution_props_mut().query_execution_start_time = Some(transaction_begun);
        let (transaction, database) = (transaction.clone(), self.database().clone());
        let (values, rule_parameters, routine_calls) = Default::default();
        Ok(StatementPlanner {
            state,
            names,
            transaction,
            database,
            workers,
            files,
            user,
            values,
            rule_parameters,
            routine_calls,
        })
    }

    /// The session's settings, for plans that run on these workers.
    fn state_on(&self, workers: &Workers) -> SessionState {
        let (state, database) = (self.context.state(), self.database());
        let all = database.pools().all();
        if workers.is(all) {
            return state;
        }
        let rules = atoll_sql_exec::rules::physical_rules(
            workers.primitives(),
            database.limit(),
            atoll_sql_files::physical_rules(),
        );
        let is_default = state.config().target_partitions() == all.runtime().worker_count();
        let mut state = SessionStateBuilder::new_from_existing(state)
            .with_physical_optimizer_rules(rules)
            .build();
        if is_default {
            let partitions = workers.runtime().worker_count();
            state.config_mut().options_mut().execution.target_partitions = partitions;
        }
        state
    }
}

impl StatementPlanner {
    pub(in crate::session) async fn plan(&self, statement: Parsed) -> Result<LogicalPlan> {
        let plan = self.plan_inner(statement).await?;
        self.labelled(plan)
    }

    /// Plans a statement whose rows stay in the database.
    pub(in crate::session) async fn plan_inner(&self, statement: Parsed) -> Result<LogicalPlan> {
        self.plan_by(&self.state, statement).await
    }

    /// The plan of a statement whose rows leave the database: ENUMs as their labels, ranges of times in the time zone.
    pub(in crate::session) fn labelled(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let types = UserTypes::in_options(self.state.config_options());
        match plan {
            LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Explain(_) => Ok(plan),
            LogicalPlan::Copy(mut copy) => {
                let input = self.labelled(Arc::unwrap_or_clone(copy.input))?;
                copy.input = Arc::new(input);
                Ok(LogicalPlan::Copy(copy))
            }
            LogicalPlan::Statement(PlanStatement::Prepare(mut prepare)) => {
                let input = self.labelled(Arc::unwrap_or_clone(prepare.input))?;
                prepare.input = Arc::new(input);
                Ok(LogicalPlan::Statement(PlanStatement::Prepare(prepare)))
            }
            plan => {
                let time_zone = self.state.config_options().execution.time_zone.as_deref();
                labelled(ranges_shown(plan, time_zone)?, types)
            }
        }
    }

    /// Plans a text that is not the statement's own: positions in it mean nothing to its reader.
    pub(in crate::session) async fn plan_other(&self, statement: Parsed) -> Result<LogicalPlan> {
        let mut state = self.state.clone();
        state.config_mut().options_mut().sql_parser.collect_spans = false;
        self.plan_by(&state, statement).await
    }

    async fn plan_by(&self, state: &SessionState, mut statement: Parsed) -> Result<LogicalPlan> {
        let made = match &statement {
            Parsed::Statement(ast) => view_made(state, ast)?,
            _ => None,
        };
        self.bind_frames(state, &mut statement, made.as_slice()).await?;
        let plan = self.plan_within(state, statement, made.as_slice()).await?;
        match UserTypes::in_options(state.config_options()) {
            Some(_) => cast_parameters(plan),
            None => Ok(plan),
        }
    }

    /// Plans a statement in the text of the views `within`.
    pub(in crate::session) async fn plan_within(
        &self,
        state: &SessionState,
        mut statement: Parsed,
        within: &[ResolvedTableReference],
    ) -> Result<LogicalPlan> {
        self.take_shown(state, &mut statement)?;
        let parts = self.take_parts(&mut statement)?;
        if !parts.is_empty() {
            return self.plan_parts(state, parts, statement, within).await;
        }
        self.expand(state, &mut statement, within).await?;
        type_arguments(&mut statement, state);
        let mut returning = Returning::take(&mut statement)?;
        if let Some(Ast::CreateTable(create)) = innermost(&mut statement) {
            DeclaredTable::take(create)?;
        }
        let others = match &mut returning {
            Some(returning) => returning.find_others(self, state).await?,
            None => Vec::new(),
        };
        let change = RowChange::take(&mut statement, self, state, others).await?;
        let merge = match change {
            None => Box::pin(RowMerge::take(&mut statement, self, state)).await?,
            Some(_) => None,
        };
        if change.is_none() && merge.is_none() {
            self.take_insert(state, &mut statement).await?;
        }
        let plan = self.plan_query(state, statement, within).await?;
        let mut plan = labels_in_containers(plan, UserTypes::in_options(state.config_options()))?;
        if let Some(change) = change {
            plan = change.plan(plan)?;
        }
        if let Some(merge) = merge {
            plan = merge.plan(plan)?;
        }
        if let Some(returning) = returning {
            self.check_right(Right::Select, &self.resolve_in(state, returning.table())?)?;
            plan = returning.plan(self, state, plan).await?;
        }
        match plan {
            LogicalPlan::Statement(PlanStatement::Prepare(prepare)) => {
                Ok(LogicalPlan::Statement(PlanStatement::Prepare(self.all_declared(prepare)?)))
            }
            plan => Ok(plan),
        }
    }

    /// A planner for another statement within this one, with the values of its own parameters.
    pub(in crate::session) fn of_another(&self, values: Option<ParamValues>) -> Self {
        Self { values, rule_parameters: RuleParameters::default(), ..self.clone() }
    }

    /// PREPARE with the types of all parameters, including those outside its plan.
    fn all_declared(&self, mut prepare: Prepare) -> Result<Prepare> {
        let all = self.rule_parameters.and_of(&prepare.input)?;
        if self.rule_parameters.is_empty() || prepare.fields.len() == all.len() {
            return Ok(prepare);
        }
        let types = (1..=all.len()).map(|number| all.get(&format!("${number}")).cloned().flatten());
        // If one type is unknown, all values are taken as they come.
        let types = types.collect::<Option<Vec<_>>>().unwrap_or_default();
        let fields = types.into_iter().map(|of| Arc::new(Field::new("", of, true)));
        prepare.fields = fields.collect();
        Ok(prepare)
    }

    /// The target of this statement's rows.
    pub(in crate::session) fn target(&self, rules: WriteRules) -> WriteTarget {
        let (database, transaction) = (self.database.clone(), &self.transaction.transaction);
        WriteTarget { database, transaction: transaction.clone(), rules }
    }

    /// Waits until no other transaction writes the table.
    pub(in crate::session) async fn lock_table(&self, table: &PlacedTable) -> Result<()> {
        let mut transaction = self.transaction.transaction.lock().await?;
        let locked = transaction.lock_table(table.id(), LockMode::Exclusive, LockWait::Wait).await;
        locked.map_err(transaction_error)
    }

    /// Changes names and definitions.
    pub(in crate::session) async fn define(&self, change: CatalogChange) -> Result<()> {
        check_reserved(&change, self.names.temporary_schema())?;
        self.check_definition(&change)?;
        self.check_type_names(&change)?;
        self.define_for(change).await
    }

    /// The same for any owner: for changes that follow from one that the user may make.
    pub(in crate::session) async fn define_for(&self, change: CatalogChange) -> Result<()> {
        self.define_any(change.clone()).await?;
        self.follow_definition(&change).await?;
        self.follow_with_comments(&change).await?;
        self.follow_with_queries(&change).await
    }

    /// The same, including the schema of roles.
    pub(crate) async fn define_any(&self, change: CatalogChange) -> Result<()> {
        let mut transaction = self.transaction.transaction.lock().await?;
        fresh(transaction.define(change).await.map_err(transaction_error)?)
    }

    /// Passes a change of rows to the transaction.
    pub(in crate::session) async fn write(
        &self,
        table: &PlacedTable,
        change: TableChange,
    ) -> Result<()> {
        self.target(WriteRules::default()).write(table, change).await
    }

    /// Passes the rewritten rows of an altered table to the transaction.
    pub(in crate::session) async fn rewrite(
        &self,
        table: &PlacedTable,
        change: TableChange,
    ) -> Result<()> {
        self.target(WriteRules::default()).rewrite(table, change).await
    }

    /// Makes the table of an INSERT the target of its rows, and takes out the clauses that DataFusion does not plan.
    async fn take_insert(&self, state: &SessionState, statement: &mut Parsed) -> Result<()> {
        let Some(ast) = innermost(statement) else { return Ok(()) };
        take_with(ast);
        let Ast::Insert(insert) = ast else { return Ok(()) };
        let TableObject::TableName(name) = &insert.table else { return Ok(()) };
        let at = self.resolve_in(state, name)?;
        let Some(found) = self.names.table(&at)? else {
            if insert.source.is_none() {
                // DEFAULT VALUES
                return Err(SqlState::missing_table(&plain(&at)));
            }
            // Report the missing table, not an unknown clause.
            insert.on = None;
            return Ok(());
        };
        self.check_insert(insert, &at)?;
        let Some(table) = found.downcast_ref::<PlacedTable>() else { return Ok(()) };
        table.check_changeable()?;
        let identities = match inserts_copied(insert) {
            true => GivenIdentities::Written,
            false => GivenIdentities::take(insert),
        };
        let alias = insert.table_alias.take().map(|alias| alias.alias);
        let name = alias.unwrap_or_else(|| quoted(&at.table));
        let normalize = |ident: &Ident| self.normalized(ident);
        self.name_columns(state, insert).await?;
        take_or(insert, table.definition(), &normalize)?;
        fill_defaults(insert, identities, table.definition(), &normalize)?;
        let conflict = take_conflict(insert, table.definition(), &normalize)?;
        let updates = conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
        let mut rules = self.write_rules(state, table, &name, conflict).await?;
        if updates {
            rules.actions = Box::pin(self.referential_actions(state, table.id())).await?;
        }
        Box::pin(self.plan_values_within(state, insert)).await?;
        let defaults = self.defaults(state, table)?;
        let target = table.as_target(self.target(rules), defaults);
        self.names.put(&at, |_| Ok(Arc::new(target)))
    }

    /// The columns of INSERT … BY NAME: those of its query.
    async fn name_columns(&self, state: &SessionState, insert: &mut Insert) -> Result<()> {
        let is_by_name = matches!(&insert.columns[..], [name] if name.to_string() == BY_NAME);
        let (true, Some(source)) = (is_by_name, &insert.source) else { return Ok(()) };
        let query = Parsed::Statement(Box::new(Ast::Query(source.clone())));
        let plan = self.plan_query(state, query, &[]).await?;
        let names = plan.schema().fields().iter().map(|field| quoted(field.name()));
        insert.columns = names.map(|name| ObjectName::from(vec![name])).collect();
        Ok(())
    }

    /// The default of each column for an INSERT that leaves it out.
    fn defaults(&self, state: &SessionState, table: &PlacedTable) -> Result<Vec<Option<Expr>>> {
        let default = |text: &Option<Arc<str>>| {
            let value = text.as_ref().filter(|text| !is_generated(text));
            value.map(|text| self.planned_default(state, text)).transpose()
        };
        table.definition().defaults.iter().map(default).collect()
    }

    pub(in crate::session) async fn plan_query(
        &self,
        state: &SessionState,
        mut statement: Parsed,
        within: &[ResolvedTableReference],
    ) -> Result<LogicalPlan> {
        let copies = copies(&statement);
        self.expand_domains(&mut statement)?;
        atoll_sql_files::read::expand(state, &self.names, self.files, &mut statement).await?;
        let normalize = state.config_options().sql_parser.enable_ident_normalization;
        let (tables, ctes) = resolve_table_references(&statement, normalize)?;
        let qualifiers = BareQualifiers::from_statement(&statement, &tables);
        if reads(&statement) {
            self.check_reads(state, (&statement, tables.as_slice()), within)?;
            self.plan_views(state, tables, within).await?;
        }
        if let Some(plan) = self.wide_insert(state, &statement).await? {
            return Ok(plan);
        }
        let list = self.take_list(state, &mut statement).await?;
        self.group_determined(state, &mut statement, &ctes)?;
        let mut plan = statement_to_plan(state, statement, &ctes).await?;
        if let Some(list) = list {
            plan = list.restored(plan)?;
        }
        if !copies {
            check_inserted(&plan)?;
        }
        let plan = atoll_sql_files::copy::settled(plan)?;
        // Including those that EXPLAIN ANALYZE would run.
        if plan.exists(|node| Ok(matches!(node, LogicalPlan::Copy(_))))? {
            self.check_files("COPY")?;
        }
        if let Some(qualifiers) = qualifiers {
            qualifiers.check(&plan)?;
        }
        Ok(plan)
    }

    /// The state after all ended transactions.
    pub(crate) fn published(&self) -> Arc<DatabaseVersion> {
        self.database.store().published()
    }

    /// Refuses statements that name files if the session may not.
    pub(in crate::session) fn check_files(&self, statement: &str) -> Result<()> {
        check_files(self.files, statement)
    }

    /// A name as it is looked up.
    pub(in crate::session) fn normalized(&self, ident: &Ident) -> String {
        IdentNormalizer::new(self.normalizes()).normalize(ident.clone())
    }

    /// The name of a table as it is looked up.
    pub(in crate::session) fn name(&self, name: &ObjectName) -> Result<TableReference> {
        object_name_to_table_reference(name.clone(), self.normalizes())
    }

    pub(in crate::session) fn normalizes(&self) -> bool {
        self.state.config_options().sql_parser.enable_ident_normalization
    }

    pub(in crate::session) fn resolve(&self, name: TableReference) -> ResolvedTableReference {
        resolve(&self.state, name)
    }

    /// The full name of a table under some settings.
    pub(in crate::session) fn resolve_in(
        &self,
        state: &SessionState,
        name: &ObjectName,
    ) -> Result<ResolvedTableReference> {
        let normalize = state.config_options().sql_parser.enable_ident_normalization;
        Ok(resolve(state, object_name_to_table_reference(name.clone(), normalize)?))
    }

    /// Plans the views among the tables that a statement reads, and puts the plans under their names.
    fn plan_views<'a>(
        &'a self,
        state: &'a SessionState,
        tables: Vec<TableReference>,
        within: &'a [ResolvedTableReference],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for name in tables {
                let name = resolve(state, name);
                if tells_columns_of_views(&name) {
                    // A view that reads the columns of all views is one of them.
                    if within.iter().any(tells_columns_of_views) {
                        continue;
                    }
                    let within = [within, std::slice::from_ref(&name)].concat();
                    for view in self.names.views().into_iter().filter(|view| !within.contains(view))
                    {
                        // A view that cannot be planned keeps the columns that it was created with.
                        let _ = self.plan_view(&view, &within).await;
                    }
                } else if within.contains(&name) {
                    return stated_err!(
                        INVALID_TABLE_DEFINITION,
                        "view '{}' refers to itself",
                        plain(&name)
                    );
                } else {
                    self.plan_view(&name, within).await?;
                }
            }
            Ok(())
        })
    }

    async fn plan_view(
        &self,
        name: &ResolvedTableReference,
        within: &[ResolvedTableReference],
    ) -> Result<()> {
        let Some(table) = self.names.table(name)? else { return Ok(()) };
        let Some(view) = table.downcast_ref::<UnplannedView>() else { return Ok(()) };
        let is_lasting = !self.names.is_own(name);
        let within = [within, std::slice::from_ref(name)].concat();
        let plan = self.view_plan(view, is_lasting, &within).await.map_err(|error| {
            let SqlError { state, message, .. } = SqlError::new(error, "");
            state.error(format!("view '{}': {message}", plain(name)))
        })?;
        let planned = ViewTable::new(plan, Some(view.sql.clone()));
        self.names.put(name, |_| Ok(Arc::new(planned)))
    }

    pub(in crate::session) async fn view_plan(
        &self,
        view: &UnplannedView,
        is_lasting: bool,
        within: &[ResolvedTableReference],
    ) -> Result<LogicalPlan> {
        let mut state = self.state.clone();
        view.set_options(state.config_mut().options_mut());
        // It keeps the meaning of its creation: independent of the session's own objects and search path.
        state.register_catalog_list(NameList::new(self.names_of_views(!is_lasting)));
        let statement =
            crate::session::statement::parsed_statement::parse(&view.sql, &state)?.statement;
        match self.plan_within(&state, statement, within).await? {
            LogicalPlan::Ddl(DdlStatement::CreateView(create)) => {
                coerced(&state, distinctly_named(Arc::unwrap_or_clone(create.input))?)
            }
            other => internal_err!("a view was made by another statement: {}", other.display()),
        }
    }
}

/// Whether a statement reads its tables: one that only drops or shows a view does not need it to be valid.
fn reads(statement: &Parsed) -> bool {
    let Parsed::Statement(ast) = statement else { return true };
    !matches!(ast.as_ref(), Ast::Drop { .. } | Ast::ShowCreate { .. })
}

/// The view that a statement creates.
fn view_made(state: &SessionState, statement: &Ast) -> Result<Option<ResolvedTableReference>> {
    let Ast::CreateView(create) = statement else { return Ok(None) };
    let normalize = state.config_options().sql_parser.enable_ident_normalization;
    Ok(Some(match object_name_to_table_reference(create.name.clone(), normalize)? {
        name @ TableReference::Bare { .. } => resolve_lasting(state, name),
        name => resolve(state, name),
    }))
}
