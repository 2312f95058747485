//! `pg_catalog`: the tables and functions that PostgreSQL's clients query for the objects of a database.
//!
//! ```text
//! names of a statement ─▶ objects: what there is, with OIDs ─▶ contents: rows of pg_class, pg_attribute, …
//!                                                           └▶ functions: 't'::regclass, format_type(…)
//! ```
//!
//! All tables of PostgreSQL exist with their columns (`columns.txt`); those that `contents` does not fill are empty.
//! Nothing is cached: a table is computed when a statement reads it.

mod contents;
mod declared;
mod default_text;
mod definition;
mod functions;
mod listed_functions;
mod objects;
mod oid;
mod rewritten_functions;
mod routine_texts;
mod rows;
mod sequence;
mod table;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{ResolvedTableReference, Result};

pub(crate) use contents::OWNER_NAME;
pub use functions::shown_function;
pub(crate) use functions::{is_catalog_function, register};
pub(crate) use listed_functions::{FunctionRow, listed_functions};

use atoll_store::TableId;
use atoll_store::database::{Relation, RelationName};

use crate::catalog::{Catalogs, SystemSchemas};
use crate::client_settings::ClientSettings;
use crate::database::Database;
use crate::role::Identity;
use atoll_sql_common::names::INFORMATION_SCHEMA;
use declared::{DeclaredTable, INFORMATION_TABLES, PG_TABLES};
use oid::OidSpace;
use table::PgTable;

/// The OID of a table in `pg_class`.
pub(crate) fn table_oid(table: TableId) -> u32 {
    OidSpace::Table.numbered(table.get()) as u32
}

/// The source of the facts that the tables show besides names: the database, and the session that reads them.
pub(crate) struct SystemCatalog {
    pub(crate) database: Database,
    pub(crate) identity: Arc<Identity>,
    pub(crate) settings: ClientSettings,
    pub(crate) prepared: Arc<dyn PreparedRows>,
}

/// The statements that a session has prepared.
pub(crate) trait PreparedRows: Send + Sync {
    /// Returns the rows of `pg_prepared_statements`.
    fn rows(&self) -> Vec<PreparedRow>;
}

/// A statement that PREPARE or the client named.
pub(crate) struct PreparedRow {
    pub(crate) name: String,
    /// The whole PREPARE as it was written, or the statement of the client.
    pub(crate) statement: String,
    pub(crate) since: SystemTime,
    /// The OIDs of the types of its parameters.
    pub(crate) types: Vec<i64>,
    /// Whether PREPARE named it, and not the client's protocol.
    pub(crate) from_sql: bool,
}

/// The session's system catalog in its settings, weak since plans that the database keeps have these settings, and must
/// not keep the database alive.
#[derive(Debug)]
pub(crate) struct SystemHandle(Weak<SystemCatalog>);

impl SystemHandle {
    pub(crate) fn new(system: &Arc<SystemCatalog>) -> Self {
        Self(Arc::downgrade(system))
    }

    /// `None` after the end of the session.
    pub(crate) fn get(&self) -> Option<Arc<SystemCatalog>> {
        self.0.upgrade()
    }
}

impl fmt::Debug for SystemCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemCatalog")
    }
}

impl SystemSchemas for SystemCatalog {
    fn owner(&self) -> Option<&str> {
        self.identity.is_owner.then(|| &*self.identity.user)
    }

    fn pg_catalog(self: Arc<Self>, names: &Catalogs) -> Arc<dyn SchemaProvider> {
        Arc::new(PgCatalog { names: names.clone(), system: self })
    }

    fn pg_table(self: Arc<Self>, names: &Catalogs, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.declared(&PG_TABLES, names, name)
    }

    fn sequence_table(
        &self,
        names: &Catalogs,
        name: &RelationName,
    ) -> Option<Arc<dyn TableProvider>> {
        let version = names.stored_version();
        let Some(Relation::Sequence(id)) = version.relation(name) else { return None };
        let state = version.sequence(*id)?;
        let last = self.database.store().last_value(*id, state);
        sequence::table(&state.definition, last).ok()
    }

    fn information_tables(&self) -> Vec<&'static str> {
        INFORMATION_TABLES.iter().map(|table| table.name).collect()
    }

    fn information_columns(&self, name: &str) -> Option<SchemaRef> {
        let fields = declared::find(&INFORMATION_TABLES, name)?.schema.fields();
        let fields = fields.iter().map(|field| field.as_ref().clone().with_nullable(true));
        Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    fn default_text(&self, names: &Catalogs, default: &str, column: &Field) -> String {
        default_text::shown(&names.objects(), default, column)
    }

    fn information_table(
        self: Arc<Self>,
        names: &Catalogs,
        name: &str,
    ) -> Option<Arc<dyn TableProvider>> {
        self.declared(&INFORMATION_TABLES, names, name)
    }
}

impl SystemCatalog {
    fn declared(
        self: Arc<Self>,
        tables: &'static [DeclaredTable],
        names: &Catalogs,
        name: &str,
    ) -> Option<Arc<dyn TableProvider>> {
        let declared = declared::find(tables, name)?;
        Some(Arc::new(PgTable { declared, names: names.clone(), system: self }))
    }
}

/// Whether a table shows the columns of views, which are planned before it is read.
pub(crate) fn tells_columns_of_views(name: &ResolvedTableReference) -> bool {
    &*name.schema == INFORMATION_SCHEMA || &*name.table == "pg_attribute"
}

/// The schema `pg_catalog`.
#[derive(Debug)]
struct PgCatalog {
    names: Catalogs,
    system: Arc<SystemCatalog>,
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        PG_TABLES.iter().map(|table| table.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(Arc::clone(&self.system).pg_table(&self.names, name))
    }

    fn table_exist(&self, name: &str) -> bool {
        declared::find(&PG_TABLES, name).is_some()
    }
}
