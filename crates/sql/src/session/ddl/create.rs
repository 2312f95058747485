//! CREATE TABLE, CREATE VIEW, CREATE EXTERNAL TABLE: the new object is made first, then replaces the old one in one
//! step.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_placement::Strategy;
use atoll_store::TableId;
use atoll_store::database::{CatalogChange, RelationName};
use atoll_store::table::{Chunk, Identity, IdentityKind, TableDefinition};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{
    ResolvedTableReference, Result, TableReference, exec_datafusion_err, exec_err, internal_err,
    not_impl_err,
};
use datafusion::logical_expr::{
    CreateExternalTable, CreateMemoryTable, CreateView, Expr, LogicalPlan, LogicalPlanBuilder,
    TableType,
};

use crate::catalog::UnplannedView;
use crate::session::Session;
use crate::session::ddl::declared_table::{DeclaredIdentity, DeclaredTable};
use crate::session::ddl::sequence::dependents::full_name;
use crate::session::ddl::sequence::sequence_definition;
use crate::session::ddl::temporary::reads_temporary;
use crate::session::dml::change::quoted;
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::{coerced, plan_physical};
use crate::table::insert::inserted;
use crate::table::load::{LoadedRows, load};
use crate::table::{PlacedTable, StaleStatement, stored_columns};
use atoll_sql_common::error::{stated_err, transaction_error};
use atoll_sql_common::names::relation_name;
use atoll_sql_exec::scan::ScanProgress;

impl Session {
    /// Creates the table; the number of its rows, or `None` if it existed already and the statement allows that.
    pub(in crate::session) async fn create_table(
        &self,
        planner: &StatementPlanner,
        create: CreateMemoryTable,
        mut declared: DeclaredTable,
        strategy: Strategy,
    ) -> Result<Option<usize>> {
        let CreateMemoryTable { name, input, if_not_exists, or_replace, .. } = create;
        let at = match declared.temporary {
            Some(_) => planner.temporary(&name)?,
            None => planner.resolve_new(name.clone())?,
        };
        let before = planner.names.table(&at)?;
        if before.is_some() && if_not_exists && !or_replace {
            return Ok(None);
        }
        let rule =
            NameReplacement { name: &name, kind: TableType::Base, if_not_exists, or_replace };
        rule.check(before.as_ref())?;
        let replaced = before.as_ref().and_then(|before| before.downcast_ref::<PlacedTable>());
        if replaced.is_some_and(PlacedTable::is_materialized) {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "'{name}' is a materialized view; remove it with DROP MATERIALIZED VIEW {name}"
            );
        }
        let input = match declared.columns.is_empty() {
            true => distinctly_named(Arc::unwrap_or_clone(input))?,
            false => Arc::unwrap_or_clone(input),
        };
        check_names(input.schema().as_arrow())?;
        let plan = plan_physical(&planner.state, &input).await?;
        let progress = ScanProgress::for_plan(&plan);
        self.watch.follow(&progress);
        let _admitted = self.admit(&planner.transaction, &progress).await?;
        let columns = stored_columns(&plan.schema());
        let identities = declared.columns.iter_mut().map(|column| column.identity.take());
        let identities: Vec<_> = identities.collect();
        let on_commit = declared.temporary.unwrap_or_default();
        let foreign_keys = std::mem::take(&mut declared.foreign_keys);
        let copied_indexes = std::mem::take(&mut declared.copied_indexes);
        if declared.columns.is_empty() {
            declared.declare_types(input.schema().as_arrow());
        }
        let mut definition = declared.definition(planner, &at.table, columns, strategy)?;
        copied_indexes.add_to(planner, &relation_name(&at), &mut definition)?;
        definition.on_commit = on_commit;
        let id = planner.database.store().new_table_id(&at.schema);
        planner.add_foreign_keys((id, &at), &mut definition, foreign_keys)?;
        if let Some(before) = &before {
            if let Some(before) = before.downcast_ref::<PlacedTable>() {
                unchanged(planner, before).await?;
            }
            planner.drop_relation(&at).await?;
        }
        let relation = relation_name(&at);
        planner.make_temporary_schema(&relation.schema).await?;
        for (column, identity) in identities.into_iter().enumerate() {
            if let Some(identity) = identity {
                identify(planner, &relation, &mut definition, column, identity).await?;
            }
        }
        let (created, table) = self.add_table(planner, (id, &at), definition).await?;
        let rules = created.write_rules(&created.state, &table, &quoted(&at.table), None).await?;
        let target = Arc::new(planner.target(rules));
        let loaded = load(plan, planner.state.task_ctx(), &table, &target, false).await?;
        let rows = loaded.rows();
        planner.write(&table, inserted(&table, loaded)?).await?;
        Ok(Some(rows))
    }

    /// Adds a table without rows under a free name; a planner that sees it, and the table.
    async fn add_table(
        &self,
        planner: &StatementPlanner,
        (id, at): (TableId, &ResolvedTableReference),
        definition: TableDefinition,
    ) -> Result<(StatementPlanner, PlacedTable)> {
        let name = relation_name(at);
        let definition = Arc::new(definition);
        planner.define(CatalogChange::CreateTable { name, id, definition }).await?;
        let planner = self.planner(&planner.transaction, true).await?;
        match planner.names.table(at)?.as_deref().and_then(|table| table.downcast_ref()) {
            Some(table) => Ok((planner.clone(), PlacedTable::clone(table))),
            None => internal_err!("a table that was created is not there"),
        }
    }

    /// Replaces the object with this name by a table without rows, in its own transaction, which ends with
    /// [`fill`](NewTable::fill).
    pub(crate) async fn new_table(&self, name: &str, columns: SchemaRef) -> Result<NewTable> {
        let transaction = self.statement_transaction()?;
        let planner = self.planner(&transaction, true).await?;
        let at = planner.resolve_new(name.into())?;
        if planner.names.table(&at)?.is_some() {
            planner.drop_relation(&at).await?;
        }
        let definition = TableDefinition::new(stored_columns(&columns), self.placement());
        let id = planner.database.store().new_table_id(&at.schema);
        let (planner, table) = self.add_table(&planner, (id, &at), definition).await?;
        Ok(NewTable { planner, table })
    }

    /// Creates a view of the planned query; `sql` is the statement. A temporary one is the
    /// session's own.
    pub(in crate::session) async fn create_view(
        &self,
        planner: &StatementPlanner,
        create: CreateView,
        sql: String,
    ) -> Result<()> {
        let CreateView { name, input, or_replace, temporary, .. } = create;
        let plan = coerced(&planner.state, distinctly_named(Arc::unwrap_or_clone(input))?)?;
        let schema = Arc::clone(plan.schema().inner());
        let kind = TableType::View;
        let rule = NameReplacement { name: &name, kind, if_not_exists: false, or_replace };
        let at = planner.resolve_new(name.clone())?;
        let options = planner.state.config_options();
        if temporary {
            planner.check_no_temporary(&name)?;
            let view = UnplannedView::new(planner.bound_view(&sql, true)?, schema, options);
            return self.catalogs.put(&at, |current| {
                rule.check(current)?;
                Ok(Arc::new(view))
            });
        }
        rule.check(planner.names.table(&at)?.as_ref())?;
        if reads_temporary(&plan)? {
            return exec_err!(
                "view '{name}' reads a temporary table, which ends with the session; write CREATE TEMP VIEW"
            );
        }
        let view = UnplannedView::new(planner.bound_view(&sql, false)?, schema, options);
        let (name, statement) = (relation_name(&at), Arc::new(view.stored()));
        planner.define(CatalogChange::CreateView { name, statement }).await
    }

    /// Creates a table over files, which are not read yet.
    pub(in crate::session) async fn create_external_table(
        &self,
        planner: &StatementPlanner,
        create: CreateExternalTable,
    ) -> Result<()> {
        if create.temporary {
            return not_impl_err!("CREATE TEMPORARY EXTERNAL TABLE; leave out TEMPORARY");
        }
        let CreateExternalTable { name, if_not_exists, or_replace, .. } = &create;
        let (at, kind) = (planner.resolve_new(name.clone())?, TableType::Base);
        let (if_not_exists, or_replace) = (*if_not_exists, *or_replace);
        let before = planner.names.table(&at)?;
        if before.is_some() && if_not_exists && !or_replace {
            return Ok(());
        }
        let rule = NameReplacement { name, kind, if_not_exists, or_replace };
        rule.check(before.as_ref())?;
        let kind = create.file_type.to_uppercase();
        let factory = planner.state.table_factories().get(&kind).ok_or_else(|| {
            exec_datafusion_err!("unknown file format '{}' in STORED AS", create.file_type)
        })?;
        self.forget_files(name)?;
        let table = factory.create(&planner.state, &create).await?;
        self.catalogs.put(&at, |current| {
            rule.check(current)?;
            Ok(table)
        })
    }

    /// Forgets the files of a table and the facts about them.
    fn forget_files(&self, table: &TableReference) -> Result<()> {
        let environment = self.context.runtime_env();
        if let Some(files) = environment.cache_manager.get_list_files_cache() {
            files.drop_table_entries(table)?;
        }
        if let Some(statistics) = environment.cache_manager.get_file_statistic_cache() {
            statistics.drop_table_entries(table)?;
        }
        Ok(())
    }
}

/// A table that is being filled.
pub(crate) struct NewTable {
    planner: StatementPlanner,
    pub(crate) table: PlacedTable,
}

impl NewTable {
    /// Fills the table and commits.
    pub(crate) async fn fill(self, session: &Session, chunks: Vec<Arc<Chunk>>) -> Result<()> {
        let chunks = chunks.into_iter().map(|chunk| (chunk, None)).collect();
        let change = inserted(&self.table, LoadedRows::Chunks(chunks))?;
        self.planner.write(&self.table, change).await?;
        self.planner.transaction.finish(session.database()).await
    }
}

/// What a statement that creates `name` may replace.
struct NameReplacement<'a> {
    name: &'a TableReference,
    kind: TableType,
    if_not_exists: bool,
    or_replace: bool,
}

impl NameReplacement<'_> {
    fn check(&self, current: Option<&Arc<dyn TableProvider>>) -> Result<()> {
        let Self { name, kind, if_not_exists, or_replace } = self;
        if *if_not_exists && *or_replace {
            return exec_err!("IF NOT EXISTS and OR REPLACE exclude each other");
        }
        let Some(current) = current.map(|current| current.table_type()) else { return Ok(()) };
        match (current == *kind, current) {
            (true, _) if *or_replace => Ok(()),
            (_, TableType::View) => match or_replace {
                true => stated_err!(
                    WRONG_OBJECT_TYPE,
                    "'{name}' is a view; remove it with DROP VIEW {name}"
                ),
                false => stated_err!(DUPLICATE_TABLE, "View '{name}' already exists"),
            },
            _ => match or_replace {
                true => stated_err!(
                    WRONG_OBJECT_TYPE,
                    "'{name}' is a table; remove it with DROP TABLE {name}"
                ),
                false => stated_err!(DUPLICATE_TABLE, "Table '{name}' already exists"),
            },
        }
    }
}

/// Locks a table that is about to be replaced, by rows that may have been read from it.
///
/// # Errors
/// [`StaleStatement`] if it was changed since the statement began.
pub(in crate::session) async fn unchanged(
    planner: &StatementPlanner,
    table: &PlacedTable,
) -> Result<()> {
    planner.lock_table(table).await?;
    let now = planner.transaction.transaction.lock().await?.statement(true);
    let now = now.map_err(transaction_error)?;
    match now.table(table.id()).is_some_and(|now| Arc::ptr_eq(now, table.version())) {
        true => Ok(()),
        false => Err(StaleStatement::error()),
    }
}

/// Creates the sequence of an identity column.
async fn identify(
    planner: &StatementPlanner,
    table: &RelationName,
    definition: &mut TableDefinition,
    column: usize,
    identity: DeclaredIdentity,
) -> Result<()> {
    let field = definition.columns.field(column);
    let (identity, default) = new_identity(planner, table, field, identity).await?;
    definition.defaults[column] = Some(default.into());
    definition.identities[column] = Some(identity);
    Ok(())
}

/// Creates the sequence of an identity or a serial column; also returns the column's default.
pub(in crate::session) async fn new_identity(
    planner: &StatementPlanner,
    table: &RelationName,
    field: &Field,
    identity: DeclaredIdentity,
) -> Result<(Identity, String)> {
    if !matches!(field.data_type(), DataType::Int16 | DataType::Int32 | DataType::Int64) {
        return stated_err!(
            INVALID_PARAMETER,
            "identity column '{}' must be SMALLINT, INTEGER or BIGINT",
            field.name()
        );
    }
    let definition = Arc::new(sequence_definition(&identity.options, field.data_type())?);
    let version = planner.transaction.statement(true).await?;
    let name = match planner.name_in_options(&identity.options, table)? {
        Some(name) => name,
        None => sequence_of(table, field.name(), |name| version.relation(name).is_some()),
    };
    let sequence = planner.database.store().new_sequence_id(&name.schema);
    let default = match identity.kind {
        // An identity follows its sequence under any name.
        IdentityKind::Always | IdentityKind::ByDefault => format!("nextval({sequence})"),
        IdentityKind::Serial => format!("nextval('{}')", full_name(&name).replace('\'', "''")),
    };
    planner.define(CatalogChange::CreateSequence { name, id: sequence, definition }).await?;
    Ok((Identity { kind: identity.kind, sequence }, default))
}

/// The name of a column's sequence, with a numeric suffix if it is taken.
pub(in crate::session) fn sequence_of(
    table: &RelationName,
    column: &str,
    is_taken: impl Fn(&RelationName) -> bool,
) -> RelationName {
    let name = format!("{}_{column}_seq", table.name);
    let of = |name: String| RelationName::new(Arc::clone(&table.schema), name);
    let mut names =
        std::iter::once(name.clone()).chain((1..).map(|n| format!("{name}{n}"))).map(of);
    names.find(|name| !is_taken(name)).unwrap_or_else(|| of(name.clone()))
}

/// The plan with a unique name for each column: of several `a` the others are `a_1`, `a_2`, as in DuckDB.
pub(in crate::session) fn distinctly_named(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let names: HashSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    if names.len() == columns.len() {
        return Ok(plan);
    }
    let (mut seen, mut numbered) = (HashSet::new(), HashSet::new());
    let mut named = Vec::with_capacity(columns.len());
    for column in &columns {
        let name = if seen.insert(column.name.as_str()) {
            column.name.clone()
        } else {
            let mut others = (1..).map(|number| format!("{}_{number}", column.name));
            let is_free =
                |other: &String| !names.contains(other.as_str()) && numbered.insert(other.clone());
            others.find(is_free).unwrap_or_default()
        };
        named.push(Expr::Column(column.clone()).alias(name));
    }
    LogicalPlanBuilder::from(plan).project(named)?.build()
}

/// Refuses two columns of one name.
fn check_names(schema: &Schema) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name().as_str())) {
        Some(twice) => stated_err!(DUPLICATE_COLUMN, "duplicate column name '{}'", twice.name()),
        None => Ok(()),
    }
}
