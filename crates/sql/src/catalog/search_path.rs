//! The schemas in which names without one are looked up, as PostgreSQL's `search_path` lists them.

use std::sync::Arc;

use atoll_store::database::{DatabaseVersion, RelationName, is_temporary_schema};

use super::TEMPORARY;

/// Schemas in the order in which they are looked through.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchPath {
    listed: Arc<[Arc<str>]>,
    /// The schema of the session's temporary tables, where names may mean those: it is before all others unless it is
    /// listed.
    temporary: Option<Arc<str>>,
}

impl SearchPath {
    /// The path of these schemas, of which `pg_temp` is that of the session's temporary tables.
    pub(crate) fn new(listed: Vec<Arc<str>>, temporary: Option<Arc<str>>) -> Self {
        let named = |schema: Arc<str>| match &temporary {
            Some(own) if &*schema == TEMPORARY => Arc::clone(own),
            _ => schema,
        };
        Self { listed: listed.into_iter().map(named).collect(), temporary }
    }

    /// The schema of temporary tables.
    pub(crate) fn temporary(&self) -> Option<&Arc<str>> {
        self.temporary.as_ref()
    }

    /// The schemas that are listed.
    pub(crate) fn listed(&self) -> &[Arc<str>] {
        &self.listed
    }

    /// The schema of temporary tables, where it is not listed.
    pub(crate) fn before_listed(&self) -> Option<&Arc<str>> {
        self.temporary.as_ref().filter(|own| !self.listed.contains(own))
    }

    /// All schemas in their order.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Arc<str>> {
        self.before_listed().into_iter().chain(self.listed.iter())
    }

    /// The schema of what is made under a name without one.
    pub(crate) fn created_in(&self) -> Option<&Arc<str>> {
        self.listed.iter().find(|schema| !is_temporary_schema(schema))
    }

    /// What the store keeps under a name without a schema.
    pub(crate) fn relation(&self, version: &DatabaseVersion, name: &str) -> Option<RelationName> {
        let mut names = self.schemas().map(|schema| RelationName::new(Arc::clone(schema), name));
        names.find(|name| version.relation(name).is_some())
    }
}
