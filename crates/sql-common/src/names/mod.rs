//! Names of schemas, and name resolution in statements.
//!
//! The planner and the file readers resolve names through [`TableNames`], which the catalog implements;
//! [`NameList`] carries it in DataFusion's session state.

mod quote;
mod search_path;

use std::sync::Arc;

use atoll_store::database::RelationName;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, TableProvider};
use datafusion::common::config::CatalogOptions;
use datafusion::common::{ResolvedTableReference, Result, TableReference};
use datafusion::execution::SessionState;

pub use crate::settings::SCHEMA;
pub use quote::quote_identifier;
pub use search_path::{SearchPath, USER, first_schema, schemas_in};

/// The catalog of a session's own tables.
pub const CATALOG: &str = "atoll";

/// The schema of the system tables.
pub const SYSTEM_SCHEMA: &str = "atoll";

/// The name of the temporary schema in the session's statements.
pub const TEMPORARY: &str = "pg_temp";

/// The mark of a column of row ids.
const ROW_ID: &str = "atoll.row_id";

/// The column of row ids that the query of a change reads beside the columns of its table.
pub fn row_id_field(name: &str) -> Field {
    let mark = [(ROW_ID.to_owned(), String::new())].into();
    Field::new(name, DataType::UInt64, false).with_metadata(mark)
}

/// Whether a column has row ids and does not belong to its table.
pub fn is_row_id(field: &Field) -> bool {
    field.metadata().contains_key(ROW_ID)
}

/// The schema that PostgreSQL's clients read.
pub const PG_CATALOG_SCHEMA: &str = "pg_catalog";

/// The information schema.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// The schema that keeps the comments; it is not listed.
pub const COMMENTS: &str = "pg_comments";

/// The schema that keeps the types that users created; it is not listed.
pub const TYPES: &str = "pg_types";

/// The schema that keeps the queries of materialized views; it is not listed.
pub const MATERIALIZED: &str = "pg_materialized";

/// The tables of a statement by name.
pub trait TableNames: CatalogProviderList {
    /// Returns the full name of a table or view; `defaults` has the catalog and schema of unqualified names.
    fn resolve(&self, name: TableReference, defaults: &CatalogOptions) -> ResolvedTableReference;

    /// Returns the table or view of a name.
    ///
    /// # Errors
    /// If an existing table cannot be opened.
    fn table(&self, name: &ResolvedTableReference) -> Result<Option<Arc<dyn TableProvider>>>;

    /// Whether a table or view of the default schema has this name.
    fn is_table(&self, name: &str) -> bool;

    /// Registers a table under a name that is not listed.
    fn hide(&self, name: &str, table: Arc<dyn TableProvider>);
}

/// The names of a statement, in the form that DataFusion's session state takes.
#[derive(Debug)]
pub struct NameList(Arc<dyn TableNames>);

impl NameList {
    /// Creates a list of these names.
    pub fn new(names: impl TableNames) -> Arc<Self> {
        Arc::new(Self(Arc::new(names)))
    }
}

impl CatalogProviderList for NameList {
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        self.0.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.0.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        self.0.catalog(name)
    }
}

/// Returns the full name of a table or view under a session's settings.
pub fn resolve(state: &SessionState, name: TableReference) -> ResolvedTableReference {
    match state.catalog_list().downcast_ref::<NameList>() {
        Some(NameList(names)) => names.resolve(name, &state.config_options().catalog),
        None => resolve_lasting(state, name),
    }
}

/// Like [`resolve`], without temporary tables.
pub fn resolve_lasting(state: &SessionState, name: TableReference) -> ResolvedTableReference {
    let defaults = &state.config_options().catalog;
    name.resolve(&defaults.default_catalog, &defaults.default_schema)
}

/// Returns a table's name in the store.
pub fn relation_name(at: &ResolvedTableReference) -> RelationName {
    RelationName::new(&*at.schema, &*at.table)
}

/// Returns the name as a person writes it: without the parts that are defaults.
pub fn plain(name: &ResolvedTableReference) -> String {
    match (&*name.catalog, &*name.schema) {
        (CATALOG, SCHEMA | "") => name.table.to_string(),
        (CATALOG, schema) => format!("{schema}.{}", name.table),
        (catalog, schema) => format!("{catalog}.{schema}.{}", name.table),
    }
}
