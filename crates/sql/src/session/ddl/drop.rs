//! CREATE SCHEMA; DROP of tables, views and schemas; TRUNCATE of several tables.

use std::borrow::Cow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName};
use datafusion::catalog::TableProvider;
use datafusion::common::{ResolvedTableReference, Result, exec_err};
use datafusion::logical_expr::{DdlStatement, TableType};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectType, Statement as Ast, Truncate};

use crate::role::rights::is_temporary_entry;
use crate::session::Session;
use crate::session::ddl::foreign_key::WholeTruncate;
use crate::session::plan::planner::StatementPlanner;
use crate::session::statement::command_tag::{missing, there, with_notices};
use crate::session::statement::parsed_statement::ParsedStatement;
use crate::session::transaction::StatementTransaction;
use crate::table::PlacedTable;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::{CATALOG, plain, relation_name};

impl Session {
    /// Runs CREATE SCHEMA in our own catalog; its notices, and `None` for other statements.
    pub(in crate::session) async fn create_schema(
        &self,
        planner: &StatementPlanner,
        ddl: &DdlStatement,
    ) -> Result<Option<Vec<String>>> {
        let DdlStatement::CreateCatalogSchema(create) = ddl else { return Ok(None) };
        let Some(name) = own_schema(&create.schema_name) else { return Ok(None) };
        if planner.names.has_schema(name) {
            return match create.if_not_exists {
                true => Ok(Some(vec![there("schema", name)])),
                false => stated_err!(DUPLICATE_SCHEMA, "Schema '{name}' already exists"),
            };
        }
        planner.define(CatalogChange::CreateSchema { name: name.into() }).await?;
        Ok(Some(Vec::new()))
    }

    /// Runs DROP of one or several tables, views or schemas; `None` for DROP of anything else.
    pub(in crate::session) async fn drop_all(
        &self,
        planner: &StatementPlanner,
        ast: &Ast,
    ) -> Result<Option<Cow<'static, str>>> {
        let Ast::Drop { object_type, if_exists, names, cascade, .. } = ast else { return Ok(None) };
        let mut passed = Vec::new();
        let (kind, tag) = match object_type {
            ObjectType::Table => (DroppedKind::Table, "DROP TABLE"),
            ObjectType::View => (DroppedKind::View, "DROP VIEW"),
            ObjectType::MaterializedView => {
                (DroppedKind::MaterializedView, "DROP MATERIALIZED VIEW")
            }
            ObjectType::Schema => {
                for name in names {
                    let schema = planner.schema_name(name)?;
                    if *if_exists && !planner.names.has_schema(&schema) {
                        passed.push(missing("schema", &schema));
                    }
                    passed.extend(self.drop_schema(planner, &schema, *if_exists, *cascade).await?);
                }
                return Ok(Some(with_notices("DROP SCHEMA", &passed)));
            }
            _ => return Ok(None),
        };
        let mut dropped: Vec<ResolvedTableReference> = Vec::with_capacity(names.len());
        for name in names {
            let at = planner.resolve(planner.name(name)?);
            if dropped.contains(&at) {
                // The names are those from before the statement.
                return exec_err!("'{}' is named twice", plain(&at));
            }
            match is_there(planner, &at, kind, *if_exists)? {
                true => dropped.push(at),
                false => passed.push(missing(kind.word(), &at.table)),
            }
        }
        let relations: Vec<RelationName> = dropped.iter().map(relation_name).collect();
        check_owner(planner, &relations)?;
        if kind == DroppedKind::Table {
            planner.release_tables(&planner.tables_named(names)?, *cascade).await?;
        }
        passed.extend(self.drop_readers(planner, &relations, *cascade).await?);
        for at in &dropped {
            if !self.catalogs.remove(at) {
                planner.drop_relation(at).await?;
            }
        }
        Ok(Some(with_notices(tag, &passed)))
    }

    /// Drops a schema; the notices about dependent objects that were dropped.
    pub(in crate::session) async fn drop_schema(
        &self,
        planner: &StatementPlanner,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<Vec<String>> {
        if !planner.names.has_schema(name) {
            return match if_exists {
                true => Ok(Vec::new()),
                false => stated_err!(UNDEFINED_SCHEMA, "schema \"{name}\" does not exist"),
            };
        }
        let mut relations = planner.names.stored_relations(name);
        // They are dropped with their objects.
        relations.retain(|name| !is_temporary_entry(name));
        let types = planner.names.user_types();
        let enums = types.enums().iter().map(|of| (&of.schema, &of.name));
        let domains = types.domains().iter().map(|of| (&of.schema, &of.name));
        let mut within = enums.chain(domains).filter(|(schema, _)| &***schema == name);
        if let (Some((_, first)), false) = (within.next(), cascade) {
            return stated_err!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "schema '{name}' is not empty: it holds type '{}'; use DROP SCHEMA {name} CASCADE to drop it too",
                first
            );
        }
        if let (Some(first), false) = (relations.first(), cascade) {
            return stated_err!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "schema '{name}' is not empty: it holds '{}'; use DROP SCHEMA {name} CASCADE to drop its \
                 tables and views too",
                first.name
            );
        }
        planner.check_definition(&CatalogChange::DropSchema { name: name.into() })?;
        check_owner(planner, &relations)?;
        let mut passed = self.drop_readers(planner, &relations, cascade).await?;
        let version = planner.names.stored_version();
        let tables = relations.iter().filter_map(|name| Some(version.table_named(name)?.0));
        planner.release_tables(&tables.collect::<Vec<_>>(), true).await?;
        for name in relations {
            planner.define(CatalogChange::Drop { name }).await?;
        }
        passed.extend(self.drop_types_of_schema(planner, name).await?);
        planner.define(CatalogChange::DropSchema { name: name.into() }).await?;
        Ok(passed)
    }

    /// Runs TRUNCATE of several tables, one after the other; `None` for a single one.
    pub(in crate::session) async fn truncate_all(
        &self,
        planner: &StatementPlanner,
        truncate: &Truncate,
        sql: &str,
    ) -> Result<Option<&'static str>> {
        let transaction = &planner.transaction.transaction;
        if transaction.lock().await?.is_truncating() {
            return Ok(None);
        }
        let WholeTruncate { truncate, tables } = planner.whole_truncate(truncate)?;
        if truncate.table_names.len() < 2 {
            return Ok(None);
        }
        transaction.lock().await?.set_truncated(tables);
        let done = self.truncate_each(planner, &truncate, sql).await;
        transaction.lock().await?.set_truncated(Vec::new());
        done.map(|()| Some("TRUNCATE TABLE"))
    }

    async fn truncate_each(
        &self,
        planner: &StatementPlanner,
        truncate: &Truncate,
        sql: &str,
    ) -> Result<()> {
        // The whole statement ends the transaction.
        let within = StatementTransaction { is_own: false, ..planner.transaction.clone() };
        for table in &truncate.table_names {
            let one = Truncate { table_names: vec![table.clone()], ..truncate.clone() };
            let statement = Parsed::Statement(Box::new(Ast::Truncate(one)));
            let statement =
                ParsedStatement { statement, placement: None, relations: Arc::default() };
            Box::pin(self.run_in(&within, &statement, None, sql)).await?;
        }
        Ok(())
    }
}

impl StatementPlanner {
    /// Drops a stored relation, and the sequences that it owns, but for those from which other tables take numbers.
    pub(in crate::session) async fn drop_relation(
        &self,
        at: &ResolvedTableReference,
    ) -> Result<()> {
        let name = relation_name(at);
        let mut sequences = Vec::new();
        for sequence in self.names.sequences_of(&name) {
            if !self.is_used_by_others(&sequence, &name).await? {
                sequences.push(sequence);
            }
        }
        self.define(CatalogChange::Drop { name }).await?;
        for name in sequences {
            self.define(CatalogChange::Drop { name }).await?;
        }
        Ok(())
    }
}

/// A kind of relations with a DROP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DroppedKind {
    Table,
    View,
    MaterializedView,
}

impl DroppedKind {
    fn of(found: &dyn TableProvider) -> Self {
        let table = found.downcast_ref::<PlacedTable>();
        match found.table_type() {
            TableType::View => Self::View,
            _ if table.is_some_and(PlacedTable::is_materialized) => Self::MaterializedView,
            _ => Self::Table,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
        }
    }
}

/// Refuses to drop objects that the user does not own, before their dependents are checked.
fn check_owner(planner: &StatementPlanner, relations: &[RelationName]) -> Result<()> {
    let mut drops = relations.iter().map(|name| CatalogChange::Drop { name: name.clone() });
    drops.try_for_each(|drop| planner.check_definition(&drop))
}

/// Whether the object of a DROP exists, which has to be of this kind.
///
/// # Errors
/// If it is of another kind, or missing without IF EXISTS.
fn is_there(
    planner: &StatementPlanner,
    at: &ResolvedTableReference,
    kind: DroppedKind,
    if_exists: bool,
) -> Result<bool> {
    let word = kind.word();
    match planner.names.table(at)? {
        Some(found) if DroppedKind::of(&*found) == kind => Ok(true),
        Some(found) => {
            let other = DroppedKind::of(&*found).word();
            let (name, command) = (plain(at), other.to_uppercase());
            stated_err!(
                WRONG_OBJECT_TYPE,
                "'{name}' is a {other}; remove it with DROP {command} {name}"
            )
        }
        None if if_exists => Ok(false),
        None => stated_err!(UNDEFINED_TABLE, "{word} \"{}\" does not exist", plain(at)),
    }
}

/// The schema of our own catalog with a name.
fn own_schema(name: &str) -> Option<&str> {
    match name.split_once('.') {
        None => Some(name),
        Some((CATALOG, name)) => Some(name),
        Some(_) => None,
    }
}
