//! Name lookup: one immutable map behind one pointer.
//!
//! Every change makes a new map and puts it in place of the old one in a single step, so a table is
//! replaced without a moment at which its name is missing. A statement is planned against a
//! [fork](Catalogs::fork), which costs a pointer: all of its scans see the names and the rows that
//! were current when its planning began, whatever others publish meanwhile.
//!
//! ```text
//! session ──▶ names 7 { t: table (snapshot), v: view (its text) }     changed by CREATE, INSERT, DROP
//!                │ fork
//! statement ──▶ names 7 { t: table (snapshot), v: view (its plan) }   views it reads are planned here
//! ```

mod comments;
mod information;
mod materialized;
mod provider;
mod stored;
mod system_schemas;
mod user_types;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use atoll_store::SequenceId;
use atoll_store::database::{DatabaseVersion, Relation, RelationName, is_temporary_schema};
use datafusion::catalog::{CatalogProviderList, SchemaProvider, TableProvider, UrlTableFactory};
use datafusion::common::config::CatalogOptions;
use datafusion::common::{DataFusionError, ResolvedTableReference, Result, TableReference};
use parking_lot::RwLock;

use information::InformationSchema;

pub(crate) use comments::{CommentedPart, ObjectComments};
pub(crate) use materialized::MaterializedView;
pub(crate) use stored::StoredNames;
pub(crate) use system_schemas::SystemSchemas;
pub(crate) use user_types::{domains, user_types};
pub(crate) use view::UnplannedView;

use crate::role::is_hidden;
use atoll_sql_common::error::SqlState;
use atoll_sql_common::extensions::Extensions;
use atoll_sql_common::names::{
    CATALOG, INFORMATION_SCHEMA, PG_CATALOG_SCHEMA, SCHEMA, SearchPath, TEMPORARY, TableNames,
};

/// Schema and name of a table of the session's own, and the table.
pub(crate) type OwnTable = (Arc<str>, Arc<str>, Arc<dyn TableProvider>);

/// The tables of a schema by name.
type SchemaTables = BTreeMap<String, Arc<dyn TableProvider>>;

/// The names of all tables at one moment: catalogs, schemas, tables. A copy shares the tables of all
/// schemas until it changes them.
#[derive(Clone, Default)]
struct NameMap(BTreeMap<String, BTreeMap<String, Arc<SchemaTables>>>);

impl NameMap {
    fn tables(&self, catalog: &str, schema: &str) -> Option<&Arc<SchemaTables>> {
        self.0.get(catalog)?.get(schema)
    }

    fn tables_mut(&mut self, catalog: &str, schema: &str) -> Result<&mut SchemaTables> {
        let found = self.0.get_mut(catalog).and_then(|schemas| schemas.get_mut(schema));
        found.map(Arc::make_mut).ok_or_else(|| no_schema(catalog, schema))
    }
}

fn no_schema(catalog: &str, schema: &str) -> DataFusionError {
    match catalog {
        CATALOG => SqlState::UNDEFINED_SCHEMA
            .error(format!("schema \"{schema}\" does not exist; create it with CREATE SCHEMA")),
        _ => {
            SqlState::UNDEFINED_SCHEMA.error(format!("schema '{catalog}.{schema}' does not exist"))
        }
    }
}

/// A session's own names at one moment.
#[derive(Clone)]
pub(crate) struct KeptNames(Arc<NameMap>);

impl KeptNames {
    /// Whether no name was changed between the two moments.
    pub(crate) fn are_those_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for KeptNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptNames")
    }
}

/// All catalogs of a session, or of one statement. Clones share them; a fork does not.
#[derive(Clone)]
pub(crate) struct Catalogs {
    current: Arc<RwLock<Arc<NameMap>>>,
    /// Tables that a statement names internally: found by name, listed nowhere.
    hidden: Arc<RwLock<SchemaTables>>,
    /// What the store keeps, as the statement sees it.
    stored: Option<StoredNames>,
    /// Makes a table from a file that is named like one, if SQL may name files.
    files: Option<Arc<dyn UrlTableFactory>>,
    /// The facts that system tables show besides names.
    system: Option<Arc<dyn SystemSchemas>>,
    /// The schemas in which unqualified names are looked up; a name that is in none of them is in the default schema.
    path: SearchPath,
    /// Values computed from the names on first use.
    computed: Arc<Extensions>,
}

impl Catalogs {
    /// The default catalog with the default schema.
    pub(crate) fn new(files: Option<Arc<dyn UrlTableFactory>>) -> Self {
        let schemas = BTreeMap::from([(SCHEMA.to_owned(), Arc::default())]);
        let names = NameMap(BTreeMap::from([(CATALOG.to_owned(), schemas)]));
        let current = Arc::new(RwLock::new(Arc::new(names)));
        let (hidden, path, computed) = Default::default();
        Self { current, hidden, stored: None, files, system: None, path, computed }
    }

    /// A copy of the names as they are now, together with those of the store; later changes to either do not affect the
    /// other.
    pub(crate) fn fork(&self, stored: StoredNames) -> Self {
        let names = self.names();
        let current = Arc::new(RwLock::new(names));
        let (hidden, computed) = Default::default();
        let (stored, files, system) = (Some(stored), self.files.clone(), self.system.clone());
        let path = self.path.clone();
        Self { current, hidden, stored, files, system, path, computed }
    }

    /// The same names, where unqualified ones are in the default schema, and none is a temporary table.
    pub(crate) fn without_temporary(&self) -> Self {
        Self { path: SearchPath::default(), computed: Arc::default(), ..self.clone() }
    }

    /// The same names, where unqualified ones are temporary tables or in the default schema.
    pub(crate) fn without_path(&self) -> Self {
        let path = SearchPath::new(Vec::new(), self.temporary_schema().cloned());
        Self { path, computed: Arc::default(), ..self.clone() }
    }

    /// The schema of the session's temporary tables; it exists once there is one.
    pub(crate) fn temporary_schema(&self) -> Option<&Arc<str>> {
        self.path.temporary()
    }

    /// The schemas in which unqualified names are looked up.
    pub(crate) fn path(&self) -> &SearchPath {
        &self.path
    }

    /// Looks unqualified names up in those of these schemas that exist.
    pub(crate) fn set_path(&mut self, mut listed: Vec<Arc<str>>) {
        let of_system = [INFORMATION_SCHEMA, PG_CATALOG_SCHEMA, TEMPORARY];
        listed.retain(|schema| of_system.contains(&&**schema) || self.has_schema(schema));
        self.path = SearchPath::new(listed, self.temporary_schema().cloned());
    }

    /// Whether the session sees a schema: it does not see those of other sessions' temporary tables.
    pub(crate) fn lists(&self, schema: &str) -> bool {
        self.is_own_schema(schema) && !is_hidden(schema)
    }

    fn is_own_schema(&self, schema: &str) -> bool {
        !is_temporary_schema(schema) || self.temporary_schema().is_some_and(|own| **own == *schema)
    }

    /// The full name of a table or view: an unqualified name is in the first schema of the path that has it.
    pub(crate) fn resolve(
        &self,
        name: TableReference,
        defaults: &CatalogOptions,
    ) -> ResolvedTableReference {
        let schema = match &name {
            TableReference::Bare { table } => {
                self.path.schemas().find(|schema| self.has_relation(schema, table))
            }
            TableReference::Partial { schema, .. } if &**schema == TEMPORARY => {
                self.temporary_schema()
            }
            _ => None,
        };
        match schema {
            Some(schema) => ResolvedTableReference {
                catalog: CATALOG.into(),
                schema: Arc::clone(schema),
                table: name.table().into(),
            },
            None => name.resolve(&defaults.default_catalog, &defaults.default_schema),
        }
    }

    /// Whether a schema has a relation of this name.
    fn has_relation(&self, schema: &str, name: &str) -> bool {
        let stored = self.stored.as_ref().map(StoredNames::version);
        stored.is_some_and(|it| it.relation(&RelationName::new(schema, name)).is_some())
            || self.names().tables(CATALOG, schema).is_some_and(|own| own.contains_key(name))
            || (schema == INFORMATION_SCHEMA
                && InformationSchema::new(self.clone()).table_exist(name))
    }

    /// Sets the facts that system tables show besides names.
    pub(crate) fn set_system(&mut self, system: Arc<dyn SystemSchemas>) {
        self.system = Some(system);
    }

    /// Gives the temporary tables in this schema precedence over all others.
    pub(crate) fn set_temporary(&mut self, schema: &Arc<str>) {
        self.path = SearchPath::new(Vec::new(), Some(Arc::clone(schema)));
    }

    /// The facts that system tables show besides names.
    pub(crate) fn system(&self) -> Option<&Arc<dyn SystemSchemas>> {
        self.system.as_ref()
    }

    /// A value computed once from these names, one of each type.
    pub(crate) fn computed<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce(&Self) -> T,
    ) -> Arc<T> {
        let Ok(value) = self.computed.get_or_try_init(|| Ok::<_, Infallible>(make(self)));
        value
    }

    /// Names of the schemas of our own catalog.
    pub(crate) fn schemas(&self) -> Vec<Arc<str>> {
        let names = self.names();
        let own = names.0.get(CATALOG).into_iter().flat_map(|schemas| schemas.keys());
        let stored = self.stored.iter().flat_map(|stored| stored.version().schemas().cloned());
        let all: BTreeSet<Arc<str>> = own.map(|name| name.as_str().into()).chain(stored).collect();
        all.into_iter().collect()
    }

    /// Schema, name and table of each of the session's own.
    pub(crate) fn own_tables(&self) -> Vec<OwnTable> {
        let (names, version) = (self.names(), self.stored_version());
        let mut tables = Vec::new();
        for (schema, own) in names.0.get(CATALOG).into_iter().flatten() {
            // Views of the store that a statement reads are among them with their plans.
            let is_own =
                |name: &str| version.relation(&RelationName::new(schema.as_str(), name)).is_none();
            for (name, table) in own.iter().filter(|(name, _)| is_own(name)) {
                tables.push((schema.as_str().into(), name.as_str().into(), Arc::clone(table)));
            }
        }
        tables
    }

    /// Stops names from meaning files.
    pub(crate) fn leave_files_out(&mut self) {
        self.files = None;
    }

    /// What the store keeps under names of this catalog.
    fn stored_in(&self, catalog: &str) -> Option<&StoredNames> {
        self.stored.as_ref().filter(|_| catalog == CATALOG)
    }

    /// The database version of the names; an empty one for names without a database.
    pub(crate) fn stored_version(&self) -> Arc<DatabaseVersion> {
        self.stored.as_ref().map(|stored| Arc::clone(stored.version())).unwrap_or_default()
    }

    /// Creates a schema if it does not exist yet.
    pub(crate) fn create_schema(&self, catalog: &str, schema: &str) {
        let Ok(()) = self.change(|names| {
            let schemas = names.0.entry(catalog.to_owned()).or_default();
            schemas.entry(schema.to_owned()).or_default();
            Ok::<_, Infallible>(())
        });
    }

    /// The table or view of a name: the session's own, then the store's.
    pub(crate) fn table(
        &self,
        name: &ResolvedTableReference,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.is_own_schema(&name.schema) {
            return Ok(None);
        }
        let names = self.names();
        let own = names.tables(&name.catalog, &name.schema).and_then(|own| own.get(&*name.table));
        match (own, self.stored_in(&name.catalog)) {
            (Some(own), _) => Ok(Some(Arc::clone(own))),
            (None, Some(stored)) => stored.get(&name.schema, &name.table),
            (None, None) => Ok(None),
        }
    }

    /// Whether a schema of our own catalog exists.
    pub(crate) fn has_schema(&self, schema: &str) -> bool {
        let own = self.names().tables(CATALOG, schema).is_some();
        match &self.stored {
            // The names of a session always have it, but it can be dropped.
            Some(stored) if schema == SCHEMA => stored.version().has_schema(schema),
            Some(stored) if self.is_own_schema(schema) => {
                own || stored.version().has_schema(schema)
            }
            _ => own,
        }
    }

    /// What the store keeps in a schema.
    pub(crate) fn stored_relations(&self, schema: &str) -> Vec<RelationName> {
        let stored = self.stored.iter();
        let relations = stored.flat_map(|stored| stored.version().relations_of(schema));
        relations.map(|(name, _)| name.clone()).collect()
    }

    /// The sequences that number columns of a table.
    pub(crate) fn sequences_of(&self, table: &RelationName) -> Vec<RelationName> {
        self.stored.iter().flat_map(|stored| stored.sequences_of(table)).collect()
    }

    /// The text of a macro.
    pub(crate) fn macro_text(&self, name: &RelationName) -> Option<Arc<str>> {
        match self.stored.as_ref()?.version().relation(name)? {
            Relation::External(statement) => Some(Arc::clone(&statement.sql)),
            _ => None,
        }
    }

    /// The sequence with a name.
    pub(crate) fn sequence(&self, name: &RelationName) -> Option<SequenceId> {
        match self.stored.as_ref()?.version().relation(name)? {
            Relation::Sequence(id) => Some(*id),
            _ => None,
        }
    }

    /// Whether a name is a table or view of the session's own, or one that was planned.
    pub(crate) fn is_own(&self, name: &ResolvedTableReference) -> bool {
        let names = self.names();
        names.tables(&name.catalog, &name.schema).is_some_and(|own| own.contains_key(&*name.table))
    }

    /// Removes the views of the session's own.
    pub(crate) fn remove_views(&self) {
        let Ok(()) = self.change(|names| {
            let schemas = names.0.values_mut().flat_map(BTreeMap::values_mut);
            for tables in schemas {
                Arc::make_mut(tables).retain(|_, table| !table.is::<UnplannedView>());
            }
            Ok::<_, Infallible>(())
        });
    }

    /// Removes a table or view of the session's own; false if it has none of this name.
    pub(crate) fn remove(&self, name: &ResolvedTableReference) -> bool {
        let Ok(removed) = self.change(|names| {
            let schemas = names.0.get_mut(&*name.catalog);
            let tables = schemas.and_then(|schemas| schemas.get_mut(&*name.schema));
            let removed = tables.and_then(|tables| Arc::make_mut(tables).remove(&*name.table));
            Ok::<_, Infallible>(removed)
        });
        removed.is_some()
    }

    /// Names of all views.
    pub(crate) fn views(&self) -> Vec<ResolvedTableReference> {
        let names = self.names();
        let mut views = Vec::new();
        for (catalog, schemas) in &names.0 {
            for (schema, tables) in schemas {
                let of_views = tables.iter().filter(|(_, table)| table.is::<UnplannedView>());
                views.extend(of_views.map(|(table, _)| ResolvedTableReference {
                    catalog: catalog.as_str().into(),
                    schema: schema.as_str().into(),
                    table: table.as_str().into(),
                }));
            }
        }
        views.extend(self.stored.iter().flat_map(StoredNames::views));
        views
    }

    /// Puts a table under a name that is listed nowhere.
    pub(crate) fn hide(&self, name: &str, table: Arc<dyn TableProvider>) {
        self.hidden.write().insert(name.to_owned(), table);
    }

    /// Gives a name another meaning in one step. `make` receives its current meaning; if it fails, nothing changes.
    pub(crate) fn put(
        &self,
        name: &ResolvedTableReference,
        make: impl FnOnce(Option<&Arc<dyn TableProvider>>) -> Result<Arc<dyn TableProvider>>,
    ) -> Result<()> {
        self.change(|names| -> Result<_> {
            if self
                .stored_in(&name.catalog)
                .is_some_and(|stored| stored.version().has_schema(&name.schema))
            {
                names
                    .0
                    .entry(name.catalog.to_string())
                    .or_default()
                    .entry(name.schema.to_string())
                    .or_default();
            }
            let tables = names.tables_mut(&name.catalog, &name.schema)?;
            let table = make(tables.get(&*name.table))?;
            Ok(tables.insert(name.table.to_string(), table))
        })?;
        Ok(())
    }

    /// The session's own names as they are now.
    pub(crate) fn kept(&self) -> KeptNames {
        KeptNames(self.names())
    }

    /// Restores the session's own names.
    pub(crate) fn restore(&self, kept: KeptNames) {
        let before = std::mem::replace(&mut *self.current.write(), kept.0);
        drop(before);
    }

    fn names(&self) -> Arc<NameMap> {
        Arc::clone(&self.current.read())
    }

    /// Changes the names in one step, or not at all if `change` fails.
    fn change<T, E>(&self, change: impl FnOnce(&mut NameMap) -> Result<T, E>) -> Result<T, E> {
        let mut current = self.current.write();
        let mut next = NameMap::clone(&current);
        let changed = change(&mut next)?;
        let before = std::mem::replace(&mut *current, Arc::new(next));
        // The old map may own the last reference to a table: drop it after releasing the lock.
        drop(current);
        drop(before);
        Ok(changed)
    }
}

impl TableNames for Catalogs {
    fn resolve(&self, name: TableReference, defaults: &CatalogOptions) -> ResolvedTableReference {
        self.resolve(name, defaults)
    }

    fn table(&self, name: &ResolvedTableReference) -> Result<Option<Arc<dyn TableProvider>>> {
        self.table(name)
    }

    fn is_table(&self, name: &str) -> bool {
        let (catalog, schema) = (CATALOG.into(), SCHEMA.into());
        let name = ResolvedTableReference { catalog, schema, table: name.into() };
        matches!(self.table(&name), Ok(Some(_)))
    }

    fn hide(&self, name: &str, table: Arc<dyn TableProvider>) {
        self.hide(name, table);
    }
}

impl fmt::Debug for Catalogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Catalogs").field(&self.catalog_names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_runtime::{Runtime, RuntimeOptions};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::catalog::MemTable;
    use datafusion::common::exec_datafusion_err;

    fn name(table: &str) -> ResolvedTableReference {
        let (catalog, schema) = (CATALOG.into(), SCHEMA.into());
        ResolvedTableReference { catalog, schema, table: table.into() }
    }

    fn table(column: &str) -> Arc<dyn TableProvider> {
        let schema = Arc::new(Schema::new(vec![Field::new(column, DataType::Int64, true)]));
        Arc::new(MemTable::try_new(schema, vec![vec![]]).expect("a table without rows"))
    }

    fn nothing_stored() -> StoredNames {
        let machine = Arc::new(atoll_testkit::machines::two_nodes());
        let kernel = atoll_testkit::kernel::SimulatedKernel::new(Arc::clone(&machine));
        let runtime = Runtime::start(machine, Arc::new(kernel), RuntimeOptions::default());
        StoredNames::new(Arc::default(), runtime.expect("the pools start"))
    }

    fn column(catalogs: &Catalogs) -> Option<String> {
        Some(catalogs.table(&name("t")).ok()??.schema().field(0).name().clone())
    }

    #[test]
    fn a_fork_keeps_the_names_of_its_creation() {
        let catalogs = Catalogs::new(None);
        catalogs.put(&name("t"), |_| Ok(table("old"))).expect("t is new");
        let fork = catalogs.fork(nothing_stored());
        catalogs.put(&name("t"), |_| Ok(table("new"))).expect("t is replaced");
        assert_eq!(column(&fork).as_deref(), Some("old"));
        assert_eq!(column(&catalogs).as_deref(), Some("new"));
        fork.put(&name("t"), |_| Ok(table("fork"))).expect("t is replaced in the fork");
        assert_eq!(column(&catalogs).as_deref(), Some("new"));
    }

    #[test]
    fn a_change_that_fails_leaves_the_names_as_they_were() {
        let catalogs = Catalogs::new(None);
        catalogs.put(&name("t"), |_| Ok(table("old"))).expect("t is new");
        let refused = catalogs.put(&name("t"), |current| {
            assert!(current.is_some());
            Err(exec_datafusion_err!("no"))
        });
        assert!(refused.is_err());
        assert_eq!(column(&catalogs).as_deref(), Some("old"));
        let nowhere = ResolvedTableReference { schema: "s".into(), ..name("t") };
        let error = catalogs.put(&nowhere, |_| Ok(table("a"))).expect_err("there is no schema s");
        assert!(error.to_string().contains("schema \"s\" does not exist"), "{error}");
    }
}
