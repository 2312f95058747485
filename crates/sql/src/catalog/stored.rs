//! The names of a version of the database, as one statement sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_runtime::Runtime;
use atoll_store::database::{
    DatabaseVersion, Relation, RelationName, StoredStatement, TransactionReads,
};
use atoll_store::{SequenceId, TableId};
use datafusion::catalog::TableProvider;
use datafusion::common::{ResolvedTableReference, Result};
use parking_lot::Mutex;

use super::{MaterializedView, UnplannedView};
use crate::table::PlacedTable;
use atoll_sql_common::names::CATALOG;

/// The relations of the store. Clones share the tables that were looked up.
#[derive(Clone)]
pub(crate) struct StoredNames(Arc<StoredParts>);

struct StoredParts {
    version: Arc<DatabaseVersion>,
    runtime: Runtime,
    /// What takes notes of what is read.
    reads: Option<TransactionReads>,
    /// Tables and views that were looked up: a statement sees one instance of each.
    found: Mutex<BTreeMap<RelationName, Arc<dyn TableProvider>>>,
}

impl StoredNames {
    /// The names of a version; these workers fill its tables.
    pub(crate) fn new(version: Arc<DatabaseVersion>, runtime: Runtime) -> Self {
        let (reads, found) = Default::default();
        Self(Arc::new(StoredParts { version, runtime, reads, found }))
    }

    /// The same names, whose tables note there what is read of them.
    pub(crate) fn noting(self, reads: Option<TransactionReads>) -> Self {
        let StoredParts { version, runtime, .. } = &*self.0;
        let (version, runtime) = (Arc::clone(version), runtime.clone());
        Self(Arc::new(StoredParts { version, runtime, reads, found: Mutex::default() }))
    }

    pub(crate) fn version(&self) -> &Arc<DatabaseVersion> {
        &self.0.version
    }

    /// Names of tables and views in a schema.
    pub(super) fn tables_of(&self, schema: &str) -> Vec<String> {
        let relations = self.0.version.relations_of(schema);
        let tables = relations
            .filter(|(_, relation)| matches!(relation, Relation::Table(_) | Relation::View(_)));
        tables.map(|(name, _)| name.name.to_string()).collect()
    }

    /// Names of views.
    pub(super) fn views(&self) -> impl Iterator<Item = ResolvedTableReference> {
        let relations = self.0.version.relations();
        let views = relations.filter(|(_, relation)| matches!(relation, Relation::View(_)));
        views.map(|(name, _)| ResolvedTableReference {
            catalog: CATALOG.into(),
            schema: name.schema.as_ref().into(),
            table: name.name.as_ref().into(),
        })
    }

    /// The sequences that number columns of a table.
    pub(super) fn sequences_of(&self, table: &RelationName) -> Vec<RelationName> {
        let version = &self.0.version;
        let Some((_, table)) = version.table_named(table) else { return Vec::new() };
        let identities = table.definition().identities.iter().flatten();
        let owned: Vec<SequenceId> = identities.map(|identity| identity.sequence).collect();
        let is_owned = |relation: &Relation| match relation {
            Relation::Sequence(id) => owned.contains(id),
            _ => false,
        };
        let relations = version.relations().filter(|(_, relation)| is_owned(relation));
        relations.map(|(name, _)| name.clone()).collect()
    }

    /// The table or view of a name.
    pub(super) fn get(&self, schema: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let name = RelationName::new(schema, name);
        let Some(relation) = self.0.version.relation(&name) else { return Ok(None) };
        if let Some(found) = self.0.found.lock().get(&name) {
            return Ok(Some(Arc::clone(found)));
        }
        let made: Arc<dyn TableProvider> = match relation {
            Relation::Table(id) => match self.table(&name, *id)? {
                Some(table) => Arc::new(table),
                None => return Ok(None),
            },
            Relation::View(view) => Arc::new(self.view(view)?),
            Relation::Sequence(_) | Relation::External(_) => return Ok(None),
        };
        self.0.found.lock().insert(name, Arc::clone(&made));
        Ok(Some(made))
    }

    fn table(&self, name: &RelationName, id: TableId) -> Result<Option<PlacedTable>> {
        let Some(version) = self.0.version.table(id).cloned() else { return Ok(None) };
        let (schema, table) = (name.schema.as_ref().into(), name.name.as_ref().into());
        let at = ResolvedTableReference { catalog: CATALOG.into(), schema, table };
        let table = PlacedTable::new(at, id, version, self.0.runtime.clone());
        let table = table.noting(self.0.reads.clone());
        Ok(Some(match MaterializedView::find(&self.0.version, name)? {
            Some(made) => table.materialized(made.is_populated),
            None => table,
        }))
    }

    fn view(&self, view: &StoredStatement) -> Result<UnplannedView> {
        UnplannedView::from_stored(view)
    }
}
