//! What schemas are called, and what a name in a statement means.
//!
//! The planner and the readers of files ask for the meaning of a name through [`TableNames`], which the
//! catalog answers: [`NameList`] is how DataFusion's state carries it.

mod search_path;

use std::sync::Arc;

use atoll_store::database::RelationName;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, TableProvider};
use datafusion::common::config::CatalogOptions;
use datafusion::common::{ResolvedTableReference, Result, TableReference};
use datafusion::execution::SessionState;

pub use crate::settings::SCHEMA;
pub use search_path::{SearchPath, USER, first_schema, schemas_in};

/// The catalog of a session's own tables.
pub const CATALOG: &str = "atoll";

/// What the schema of a session's temporary tables is called in its statements.
pub const TEMPORARY: &str = "pg_temp";

/// The schema of what PostgreSQL's clients read.
pub const PG_CATALOG_SCHEMA: &str = "pg_catalog";

/// The schema that tells of all others.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// The schema that keeps the comments, listed nowhere.
pub const COMMENTS: &str = "pg_comments";

/// The tables of a statement by their names.
pub trait TableNames: CatalogProviderList {
    /// The full name of a table or view; `defaults` has the catalog and the schema of names without one.
    fn resolve(&self, name: TableReference, defaults: &CatalogOptions) -> ResolvedTableReference;

    /// The table or view of a name.
    ///
    /// # Errors
    /// When a table that is there cannot be made.
    fn table(&self, name: &ResolvedTableReference) -> Result<Option<Arc<dyn TableProvider>>>;

    /// Whether a table or view of the default schema has this name.
    fn is_table(&self, name: &str) -> bool;

    /// Puts a table under a name that is listed nowhere.
    fn hide(&self, name: &str, table: Arc<dyn TableProvider>);
}

/// The names of a statement, as a state of DataFusion has them.
#[derive(Debug)]
pub struct NameList(Arc<dyn TableNames>);

impl NameList {
    /// A list of these names.
    pub fn of(names: impl TableNames) -> Arc<Self> {
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

/// The full name of a table or view under the settings of a session.
pub fn resolve(state: &SessionState, name: TableReference) -> ResolvedTableReference {
    match state.catalog_list().downcast_ref::<NameList>() {
        Some(NameList(names)) => names.resolve(name, &state.config_options().catalog),
        None => resolve_lasting(state, name),
    }
}

/// Likewise, temporary tables aside.
pub fn resolve_lasting(state: &SessionState, name: TableReference) -> ResolvedTableReference {
    let defaults = &state.config_options().catalog;
    name.resolve(&defaults.default_catalog, &defaults.default_schema)
}

/// The name of a table as the store has it.
pub fn relation_name(at: &ResolvedTableReference) -> RelationName {
    RelationName::new(&*at.schema, &*at.table)
}

/// A name as a person writes it: without the parts that are the defaults.
pub fn plain(name: &ResolvedTableReference) -> String {
    match (&*name.catalog, &*name.schema) {
        (CATALOG, SCHEMA | "") => name.table.to_string(),
        (CATALOG, schema) => format!("{schema}.{}", name.table),
        (catalog, schema) => format!("{catalog}.{schema}.{}", name.table),
    }
}
