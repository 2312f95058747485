//! Schemas whose tables are computed from the names of a statement.

use std::fmt;
use std::sync::Arc;

use datafusion::catalog::{SchemaProvider, TableProvider};

use super::Catalogs;

/// `pg_catalog`, and the tables of `information_schema` that DataFusion lacks.
pub(crate) trait SystemSchemas: fmt::Debug + Send + Sync {
    /// The user of the session, where it is that of the process.
    fn owner(&self) -> Option<&str>;

    /// `pg_catalog` over these names.
    fn pg_catalog(self: Arc<Self>, names: &Catalogs) -> Arc<dyn SchemaProvider>;

    /// A table of `pg_catalog` over these names.
    fn pg_table(self: Arc<Self>, names: &Catalogs, name: &str) -> Option<Arc<dyn TableProvider>>;

    /// Names of the tables of `information_schema`.
    fn information_tables(&self) -> Vec<&'static str>;

    /// A table of `information_schema` over these names.
    fn information_table(
        self: Arc<Self>,
        names: &Catalogs,
        name: &str,
    ) -> Option<Arc<dyn TableProvider>>;
}
