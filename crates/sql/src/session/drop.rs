//! Schemas, and DROP of what the store keeps.

use atoll_store::database::CatalogChange;
use datafusion::common::{ResolvedTableReference, Result, exec_err};
use datafusion::logical_expr::{DdlStatement, TableType};

use super::Session;
use super::planner::StatementPlanner;
use crate::catalog::{CATALOG, plain, relation_name};

impl Session {
    /// Carries out a statement about schemas, and DROP TABLE or VIEW; false for all others.
    pub(super) async fn drop_or_create(
        &self,
        planner: &StatementPlanner,
        ddl: &DdlStatement,
    ) -> Result<bool> {
        match ddl {
            DdlStatement::DropTable(drop) => {
                let at = planner.resolve(drop.name.clone());
                self.drop_named(planner, &at, TableType::Base, drop.if_exists).await?;
            }
            DdlStatement::DropView(drop) => {
                let at = planner.resolve(drop.name.clone());
                self.drop_named(planner, &at, TableType::View, drop.if_exists).await?;
            }
            DdlStatement::CreateCatalogSchema(create) => {
                let Some(name) = own_schema(&create.schema_name) else { return Ok(false) };
                if planner.names.has_schema(name) {
                    return match create.if_not_exists {
                        true => Ok(true),
                        false => exec_err!("Schema '{name}' already exists"),
                    };
                }
                planner.define(CatalogChange::CreateSchema { name: name.into() }).await?;
            }
            DdlStatement::DropCatalogSchema(drop) => {
                let name = drop.name.schema_name();
                return self.drop_schema(planner, name, drop.if_exists, drop.cascade).await;
            }
            _ => return Ok(false),
        }
        Ok(true)
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

    async fn drop_schema(
        &self,
        planner: &StatementPlanner,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<bool> {
        if !planner.names.has_schema(name) {
            return match if_exists {
                true => Ok(true),
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
        planner.define(CatalogChange::DropSchema { name: name.into() }).await?;
        Ok(true)
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
