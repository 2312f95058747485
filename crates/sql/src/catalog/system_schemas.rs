//! Schemas whose tables are computed from the names of a statement.

use std::fmt;
use std::sync::Arc;

use atoll_store::database::RelationName;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::catalog::{SchemaProvider, TableProvider};

use super::Catalogs;

/// `pg_catalog`, and what is computed in the same way of `information_schema`.
pub(crate) trait SystemSchemas: fmt::Debug + Send + Sync {
    /// The user of the session, where it is that of the process.
    fn owner(&self) -> Option<&str>;

    /// `pg_catalog` over these names.
    fn pg_catalog(self: Arc<Self>, names: &Catalogs) -> Arc<dyn SchemaProvider>;

    /// A table of `pg_catalog` over these names.
    fn pg_table(self: Arc<Self>, names: &Catalogs, name: &str) -> Option<Arc<dyn TableProvider>>;

    /// A sequence as a table of one row.
    fn sequence_table(
        &self,
        names: &Catalogs,
        name: &RelationName,
    ) -> Option<Arc<dyn TableProvider>>;

    /// Names of the tables of `information_schema`.
    fn information_tables(&self) -> Vec<&'static str>;

    /// The columns of a table of `information_schema`.
    fn information_columns(&self, name: &str) -> Option<SchemaRef>;

    /// The text of a column's default, as the catalog shows it.
    fn default_text(&self, names: &Catalogs, default: &str, column: &Field) -> String;

    /// A table of `information_schema` over these names.
    fn information_table(
        self: Arc<Self>,
        names: &Catalogs,
        name: &str,
    ) -> Option<Arc<dyn TableProvider>>;
}
