//! CREATE TABLE, CREATE VIEW, CREATE EXTERNAL TABLE: what a name stands for is made first, then put in
//! place of what it stood for, in one step.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_placement::Strategy;
use atoll_store::table::{declared_schema, stored_schema};
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, TableReference, exec_datafusion_err, exec_err, not_impl_err};
use datafusion::logical_expr::{
    CreateExternalTable, CreateMemoryTable, CreateView, LogicalPlan, TableType,
};
use datafusion::sql::sqlparser::ast::Statement as Ast;

use super::Session;
use super::planner::{StatementPlanner, coerced, plan_physical};
use crate::catalog::UnplannedView;
use crate::table::load::load;

impl Session {
    /// Creates the table; the number of rows it has, or none where it existed already and the
    /// statement allows that.
    pub(super) async fn create_table(
        &self,
        planner: StatementPlanner,
        create: CreateMemoryTable,
        not_null: &[bool],
        strategy: Strategy,
    ) -> Result<Option<usize>> {
        let CreateMemoryTable { name, input, if_not_exists, or_replace, .. } = create;
        if create.temporary {
            return not_impl_err!(
                "CREATE TEMPORARY TABLE; every table lives as long as its session"
            );
        }
        if !create.constraints.is_empty() || !create.column_defaults.is_empty() {
            return not_impl_err!("constraints and defaults of columns; leave them out");
        }
        let at = planner.resolve(name.clone());
        let before = planner.names.table(&at);
        if before.is_some() && if_not_exists && !or_replace {
            return Ok(None);
        }
        let rule =
            NameReplacement { name: &name, kind: TableType::Base, if_not_exists, or_replace };
        rule.check(before.as_ref())?;
        unique_names(input.schema().as_arrow())?;
        let plan = plan_physical(&planner.state, &input).await?;
        let schema = declared_schema(&stored_schema(&plan.schema()), not_null);
        let table = self.new_table(at.clone(), strategy, schema);
        let chunks = load(plan, planner.state.task_ctx(), &table).await?;
        let table = table.with(chunks);
        let rows = table.snapshot().rows;
        let was_read = before.as_ref().map(|before| reads(&input, before)).transpose()?;
        self.catalogs.put(&at, |current| {
            rule.check(current)?;
            let unchanged = match (&before, current) {
                (Some(before), Some(current)) => Arc::ptr_eq(before, current),
                _ => false,
            };
            if was_read == Some(true) && !unchanged {
                return exec_err!(
                    "table '{name}' was changed while the statement that replaces it was reading \
                     it; run the statement again"
                );
            }
            Ok(Arc::new(table))
        })?;
        Ok(Some(rows))
    }

    /// Creates a view of the planned query; `statement` is what made the plan.
    pub(super) fn create_view(
        &self,
        planner: &StatementPlanner,
        create: CreateView,
        statement: Ast,
    ) -> Result<()> {
        let CreateView { name, input, or_replace, definition, temporary } = create;
        if temporary {
            return not_impl_err!("CREATE TEMPORARY VIEW; every view lives as long as its session");
        }
        let plan = coerced(&planner.state, Arc::unwrap_or_clone(input))?;
        unique_names(plan.schema().as_arrow())?;
        let schema = Arc::clone(plan.schema().inner());
        let view =
            UnplannedView::new(statement, definition, schema, planner.state.config_options());
        let kind = TableType::View;
        let rule = NameReplacement { name: &name, kind, if_not_exists: false, or_replace };
        self.catalogs.put(&planner.resolve(name.clone()), |current| {
            rule.check(current)?;
            Ok(Arc::new(view))
        })
    }

    /// Creates a table over files, which are not read yet.
    pub(super) async fn create_external_table(
        &self,
        planner: &StatementPlanner,
        create: CreateExternalTable,
    ) -> Result<()> {
        if create.temporary {
            return not_impl_err!("CREATE TEMPORARY EXTERNAL TABLE; leave out TEMPORARY");
        }
        let CreateExternalTable { name, if_not_exists, or_replace, .. } = &create;
        let (at, kind) = (planner.resolve(name.clone()), TableType::Base);
        let (if_not_exists, or_replace) = (*if_not_exists, *or_replace);
        let before = planner.names.table(&at);
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

    /// Forgets which files a table had, and what is known of them.
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

/// What a statement that makes `name` may replace.
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
                true => exec_err!("'{name}' is a view; remove it with DROP VIEW {name}"),
                false => exec_err!("View '{name}' already exists"),
            },
            _ => match or_replace {
                true => exec_err!("'{name}' is a table; remove it with DROP TABLE {name}"),
                false => exec_err!("Table '{name}' already exists"),
            },
        }
    }
}

/// Whether a plan scans this table.
fn reads(plan: &LogicalPlan, table: &Arc<dyn TableProvider>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found |= Arc::ptr_eq(&source_as_provider(&scan.source)?, table);
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn unique_names(schema: &Schema) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(Arc::clone(field).name().clone())) {
        Some(twice) => {
            exec_err!("duplicate column name '{}'; rename one of the two with AS", twice.name())
        }
        None => Ok(()),
    }
}
