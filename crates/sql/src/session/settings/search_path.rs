//! `search_path`: the schemas in which unqualified names are looked up, in turn; new objects with unqualified names go
//! to the first of them that exists.

use std::sync::Arc;

use datafusion::common::config::CatalogOptions;

use crate::catalog::Catalogs;
use crate::client_settings::SEARCH_PATH;
use crate::session::Session;
use atoll_sql_common::names::{CATALOG, SearchPath, USER, first_schema, schemas_in};

impl Session {
    /// The search path, including schemas that do not exist.
    pub(in crate::session) fn search_path(&self) -> SearchPath {
        let listed = self.listed_schemas(&self.catalog_options());
        SearchPath::new(listed, self.catalogs.temporary_schema().cloned())
    }

    /// The settings that determine the meaning of unqualified names.
    pub(in crate::session) fn catalog_options(&self) -> CatalogOptions {
        let state = self.context.state_ref();
        let state = state.read();
        state.config_options().catalog.clone()
    }

    /// Applies the search path to these names and settings.
    pub(in crate::session) fn follow_search_path(
        &self,
        names: &mut Catalogs,
        options: &mut CatalogOptions,
    ) {
        names.set_path(self.listed_schemas(options));
        if options.default_catalog == CATALOG {
            let schema = names.path().created_in();
            options.default_schema = schema.map(ToString::to_string).unwrap_or_default();
        }
    }

    fn listed_schemas(&self, options: &CatalogOptions) -> Vec<Arc<str>> {
        if options.default_catalog != CATALOG {
            return Vec::new();
        }
        let path = self.parameters.get(SEARCH_PATH).unwrap_or_default();
        // The engine's own setting may have been set since.
        if options.default_schema != first_schema(&path) {
            return vec![options.default_schema.as_str().into()];
        }
        let user = &self.identity().user;
        let named = |schema: String| -> Arc<str> {
            if schema == USER { Arc::from(&**user) } else { schema.into() }
        };
        schemas_in(&path).map(named).collect()
    }
}
