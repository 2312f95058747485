//! CREATE SCHEMA; DROP of tables, views and schemas; TRUNCATE of several tables.

use atoll_store::database::CatalogChange;
use datafusion::common::{ResolvedTableReference, Result, exec_err};
use datafusion::logical_expr::{DdlStatement, TableType};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{ObjectType, Statement as Ast, Truncate};

use super::Session;
use super::planner::StatementPlanner;
use super::statement::ParsedStatement;
use super::transaction::StatementTransaction;
use crate::catalog::{CATALOG, plain, relation_name};

impl Session {
    /// Carries out CREATE SCHEMA in our own catalog; false for all other statements.
    pub(super) async fn create_schema(
        &self,
        planner: &StatementPlanner,
        ddl: &DdlStatement,
    ) -> Result<bool> {
        let DdlStatement::CreateCatalogSchema(create) = ddl else { return Ok(false) };
        let Some(name) = own_schema(&create.schema_name) else { return Ok(false) };
        if planner.names.has_schema(name) {
            return match create.if_not_exists {
                true => Ok(true),
                false => exec_err!("Schema '{name}' already exists"),
            };
        }
        planner.define(CatalogChange::CreateSchema { name: name.into() }).await?;
        Ok(true)
    }

    /// Carries out DROP of tables, views or schemas, of one or several; none for DROP of anything else.
    pub(super) async fn drop_all(
        &self,
        planner: &StatementPlanner,
        ast: &Ast,
    ) -> Result<Option<&'static str>> {
        let Ast::Drop { object_type, if_exists, names, cascade, .. } = ast else { return Ok(None) };
        let (kind, tag) = match object_type {
            ObjectType::Table => (TableType::Base, "DROP TABLE"),
            ObjectType::View => (TableType::View, "DROP VIEW"),
            ObjectType::Schema => {
                for name in names {
                    let schema = planner.schema_name(name)?;
                    self.drop_schema(planner, &schema, *if_exists, *cascade).await?;
                }
                return Ok(Some("DROP SCHEMA"));
            }
            _ => return Ok(None),
        };
        let mut dropped = Vec::with_capacity(names.len());
        for name in names {
            let at = planner.resolve(planner.name(name)?);
            if dropped.contains(&at) {
                // The names are those from before the statement.
                return exec_err!("'{}' is named twice", plain(&at));
            }
            self.drop_named(planner, &at, kind, *if_exists).await?;
            dropped.push(at);
        }
        Ok(Some(tag))
    }

    async fn drop_named(
        &self,
        planner: &StatementPlanner,
        at: &ResolvedTableReference,
        kind: TableType,
        if_exists: bool,
    ) -> Result<()> {
        let (word, other) = match kind {
            TableType::View => ("view", "table"),
            _ => ("table", "view"),
        };
        let Some(found) = planner.names.table(at)? else {
            return match if_exists {
                true => Ok(()),
                false => exec_err!("{word} '{}' does not exist", plain(at)),
            };
        };
        if found.table_type() != kind {
            let (name, command) = (plain(at), other.to_uppercase());
            return exec_err!("'{name}' is a {other}; remove it with DROP {command} {name}");
        }
        match self.catalogs.remove(at) {
            true => Ok(()),
            false => planner.drop_relation(at).await,
        }
    }

    pub(super) async fn drop_schema(
        &self,
        planner: &StatementPlanner,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        if !planner.names.has_schema(name) {
            return match if_exists {
                true => Ok(()),
                false => exec_err!("schema '{name}' does not exist"),
            };
        }
        let relations = planner.names.stored_relations(name);
        if let (Some(first), false) = (relations.first(), cascade) {
            return exec_err!(
                "schema '{name}' is not empty: it holds '{}'; use DROP SCHEMA {name} CASCADE to drop its \
                 tables and views too",
                first.name
            );
        }
        for name in relations {
            planner.define(CatalogChange::Drop { name }).await?;
        }
        planner.define(CatalogChange::DropSchema { name: name.into() }).await
    }

    /// Carries out TRUNCATE of several tables, one after the other; none for that of one.
    pub(super) async fn truncate_all(
        &self,
        planner: &StatementPlanner,
        truncate: &Truncate,
        sql: &str,
    ) -> Result<Option<&'static str>> {
        if truncate.table_names.len() < 2 {
            return Ok(None);
        }
        // Its end is that of the whole statement.
        let within = StatementTransaction { is_own: false, ..planner.transaction.clone() };
        for table in &truncate.table_names {
            let one = Truncate { table_names: vec![table.clone()], ..truncate.clone() };
            let statement = Parsed::Statement(Box::new(Ast::Truncate(one)));
            let statement = ParsedStatement { statement, placement: None };
            Box::pin(self.run_in(&within, &statement, None, sql)).await?;
        }
        Ok(Some("TRUNCATE TABLE"))
    }
}

impl StatementPlanner {
    /// Drops what the store keeps under a name, and the sequences of its identities.
    pub(super) async fn drop_relation(&self, at: &ResolvedTableReference) -> Result<()> {
        let name = relation_name(at);
        let sequences = self.names.sequences_of(&name);
        self.define(CatalogChange::Drop { name }).await?;
        for name in sequences {
            self.define(CatalogChange::Drop { name }).await?;
        }
        Ok(())
    }
}

/// The schema of our own catalog that a name means.
fn own_schema(name: &str) -> Option<&str> {
    match name.split_once('.') {
        None => Some(name),
        Some((CATALOG, name)) => Some(name),
        Some(_) => None,
    }
}
