//! Temporary tables: stored tables in a schema of the session, which comes before all others for unqualified names.
//! Other sessions do not see them, the log and checkpoints exclude them, and they end with the session.

use std::sync::Arc;

use atoll_store::database::{CatalogChange, is_temporary_schema};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ResolvedTableReference, Result, TableReference, internal_datafusion_err};
use datafusion::logical_expr::LogicalPlan;

use crate::database::Database;
use crate::role::rights::Owned;
use crate::session::Session;
use crate::session::plan::planner::StatementPlanner;
use crate::table::PlacedTable;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::{CATALOG, TEMPORARY, resolve_lasting};

/// Drops the temporary objects of a session with the last of its clones.
#[derive(Debug)]
pub(in crate::session) struct TemporaryTables {
    database: Database,
    pub(in crate::session) schema: Arc<str>,
}

impl TemporaryTables {
    /// The temporary tables of a new session.
    pub(in crate::session) fn new(database: &Database) -> Self {
        Self { database: database.clone(), schema: database.store().new_temporary_schema() }
    }
}

impl Drop for TemporaryTables {
    fn drop(&mut self) {
        self.database.store().forget_schema(&self.schema);
    }
}

impl Session {
    /// DISCARD TEMP: drops the session's temporary tables and views.
    pub(in crate::session) async fn discard_temporary(&self) -> Result<()> {
        let transaction = self.statement_transaction()?;
        let planner = self.planner(&transaction, true).await?;
        if let Some(schema) = planner.names.temporary_schema() {
            self.drop_schema(&planner, schema, true, true).await?;
        }
        self.catalogs.remove_views();
        transaction.finish(self.database()).await
    }
}

impl StatementPlanner {
    /// The full name of the temporary table with this name.
    pub(in crate::session) fn temporary(
        &self,
        name: &TableReference,
    ) -> Result<ResolvedTableReference> {
        let schema = self.names.temporary_schema();
        let schema = schema
            .ok_or_else(|| internal_datafusion_err!("the session has no temporary schema"))?;
        if name.schema().is_some_and(|named| named != TEMPORARY && named != &**schema) {
            return stated_err!(
                INVALID_TABLE_DEFINITION,
                "cannot create temporary table '{name}' in a schema that is not temporary; leave out the schema"
            );
        }
        let (catalog, schema) = (CATALOG.into(), Arc::clone(schema));
        let at = ResolvedTableReference { catalog, schema, table: name.table().into() };
        let view = resolve_lasting(&self.state, TableReference::bare(name.table()));
        match self.names.is_own(&view) {
            true => stated_err!(DUPLICATE_TABLE, "View '{}' already exists", name.table()),
            false => Ok(at),
        }
    }

    /// The full name of a new relation: one with that name in another schema of the search path is not in the way.
    ///
    /// # Errors
    /// If no schema of the search path exists.
    pub(in crate::session) fn resolve_new(
        &self,
        name: TableReference,
    ) -> Result<ResolvedTableReference> {
        let at = match name {
            TableReference::Bare { .. } => resolve_lasting(&self.state, name),
            name => self.resolve(name),
        };
        match at.schema.is_empty() {
            true => stated_err!(
                UNDEFINED_SCHEMA,
                "no schema has been selected to create in; SET search_path to one that exists"
            ),
            false => Ok(at),
        }
    }

    /// Creates the schema of temporary tables for the first one.
    pub(in crate::session) async fn make_temporary_schema(&self, schema: &Arc<str>) -> Result<()> {
        let is_missing = is_temporary_schema(schema)
            && !self.transaction.statement(true).await?.has_schema(schema);
        match is_missing {
            true => self.define_any(CatalogChange::CreateSchema { name: Arc::clone(schema) }).await,
            false => Ok(()),
        }
    }

    /// Whether an object is a temporary one of the session, and so belongs to it.
    pub(in crate::session) fn is_temporary(&self, object: &Owned) -> bool {
        let own = self.names.temporary_schema();
        matches!(object, Owned::Relation(name) if own.is_some_and(|own| *own == name.schema))
    }

    /// Refuses a temporary view with the name of a temporary table.
    pub(in crate::session) fn check_no_temporary(&self, name: &TableReference) -> Result<()> {
        match is_temporary_schema(&self.resolve(name.clone()).schema) {
            true => stated_err!(DUPLICATE_TABLE, "Table '{}' already exists", name.table()),
            false => Ok(()),
        }
    }
}

/// Whether a plan reads a temporary table.
pub(in crate::session) fn reads_temporary(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source)?;
            let table = provider.downcast_ref::<PlacedTable>();
            found |= table.is_some_and(|table| table.id().is_temporary());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
