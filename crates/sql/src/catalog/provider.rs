//! The catalogs through DataFusion's traits.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_store::database::RelationName;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;

use super::information::InformationSchema;
use super::{Catalogs, SchemaTables};
use crate::table::PlacedTable;
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::{CATALOG, INFORMATION_SCHEMA, PG_CATALOG_SCHEMA};

impl CatalogProviderList for Catalogs {
    /// Registers the names of the schemas only; their tables are always kept here.
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        let before = self.catalog(&name);
        let Ok(()) = self.change(|names| {
            let schemas = names.0.entry(name).or_default();
            for schema in catalog.schema_names() {
                schemas.entry(schema).or_default();
            }
            Ok::<_, Infallible>(())
        });
        before
    }

    fn catalog_names(&self) -> Vec<String> {
        self.names().0.keys().cloned().collect()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let is_there = self.names().0.contains_key(name);
        is_there.then(|| Arc::new(Catalog { all: self.clone(), name: name.to_owned() }) as _)
    }
}

#[derive(Debug)]
struct Catalog {
    all: Catalogs,
    name: String,
}

impl Catalog {
    fn schema_of(&self, name: &str) -> Arc<dyn SchemaProvider> {
        let (catalog, name) = (self.name.clone(), name.to_owned());
        Arc::new(Schema { all: self.all.clone(), catalog, name })
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let names = self.all.names();
        let own = names.0.get(&self.name).into_iter().flat_map(|schemas| schemas.keys().cloned());
        let stored = self.all.stored_in(&self.name).into_iter();
        let stored = stored.flat_map(|stored| stored.version().schemas().map(ToString::to_string));
        let is_dropped = |schema: &str| self.name == CATALOG && !self.all.has_schema(schema);
        let all = own.chain(stored);
        let all = all.filter(|schema| self.all.lists(schema) && !is_dropped(schema));
        let all: BTreeSet<_> = all.collect();
        all.into_iter().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == INFORMATION_SCHEMA {
            return Some(Arc::new(InformationSchema::new(self.all.clone())));
        }
        if name == PG_CATALOG_SCHEMA {
            return Some(Arc::clone(self.all.system()?).pg_catalog(&self.all));
        }
        let is_there = self.all.names().tables(&self.name, name).is_some();
        let stored = self.all.stored_in(&self.name).filter(|_| self.all.is_own_schema(name));
        let is_stored = stored.is_some_and(|stored| stored.version().has_schema(name));
        // System tables, and those that a statement names internally, are found without a schema too.
        let has_others = name.is_empty() || !self.all.hidden.read().is_empty();
        (is_there || is_stored || (self.name == CATALOG && has_others))
            .then(|| self.schema_of(name))
    }

    /// Registers the schema's name only; its tables are always kept here.
    fn register_schema(
        &self,
        name: &str,
        _: Arc<dyn SchemaProvider>,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.all.create_schema(&self.name, name);
        Ok(None)
    }

    fn deregister_schema(
        &self,
        name: &str,
        cascade: bool,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        let removed = self.all.change(|names| {
            let Some(schemas) = names.0.get_mut(&self.name) else { return Ok(None) };
            let first = schemas.get(name).and_then(|tables| tables.keys().next());
            if let (Some(first), false) = (first, cascade) {
                return stated_err!(
                    DEPENDENT_OBJECTS_STILL_EXIST,
                    "schema '{name}' is not empty: it holds '{first}'; use DROP SCHEMA {name} \
                     CASCADE to drop its tables and views too"
                );
            }
            Ok(schemas.remove(name))
        })?;
        Ok(removed.map(|_| self.schema_of(name)))
    }
}

/// Whether a relation is a materialized view.
fn is_materialized(table: &dyn TableProvider) -> bool {
    table.downcast_ref().is_some_and(PlacedTable::is_materialized)
}

#[derive(Debug)]
struct Schema {
    all: Catalogs,
    catalog: String,
    name: String,
}

impl Schema {
    fn tables(&self) -> Option<Arc<SchemaTables>> {
        self.all.names().tables(&self.catalog, &self.name).cloned()
    }

    fn change<T>(&self, change: impl FnOnce(&mut SchemaTables) -> Result<T>) -> Result<T> {
        self.all.change(|names| change(names.tables_mut(&self.catalog, &self.name)?))
    }
}

#[async_trait]
impl SchemaProvider for Schema {
    /// The kind in `information_schema.tables`, which as in PostgreSQL does not list materialized views.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        let table = self.table(name).await?.filter(|table| !is_materialized(&**table));
        Ok(table.map(|table| table.table_type()))
    }

    fn table_names(&self) -> Vec<String> {
        let tables = self.tables();
        let own = tables.iter().flat_map(|tables| tables.keys().cloned());
        let stored = self.all.stored_in(&self.catalog).into_iter();
        let stored = stored.flat_map(|stored| stored.tables_of(&self.name));
        own.chain(stored).collect::<BTreeSet<_>>().into_iter().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.tables().and_then(|tables| tables.get(name).cloned()) {
            return Ok(Some(table));
        }
        if let Some(stored) = self.all.stored_in(&self.catalog)
            && let Some(table) = stored.get(&self.name, name)?
        {
            return Ok(Some(table));
        }
        if let Some(table) = self.all.hidden.read().get(name).cloned() {
            return Ok(Some(table));
        }
        let system = self.all.system();
        let at = RelationName::new(self.name.as_str(), name);
        if let Some(sequence) = system.and_then(|system| system.sequence_table(&self.all, &at)) {
            return Ok(Some(sequence));
        }
        if let Some(table) = system.and_then(|it| Arc::clone(it).pg_table(&self.all, name)) {
            return Ok(Some(table));
        }
        match &self.all.files {
            Some(files) => files.try_new(name).await,
            None => Ok(None),
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.change(|tables| {
            if tables.contains_key(&name) {
                return stated_err!(DUPLICATE_TABLE, "Table '{name}' already exists");
            }
            Ok(tables.insert(name, table))
        })
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.change(|tables| match tables.remove(name) {
            Some(table) => Ok(Some(table)),
            // `table` finds a file that is named like a table, but it cannot be dropped.
            None => stated_err!(UNDEFINED_TABLE, "table \"{name}\" does not exist"),
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        self.table_names().iter().any(|table| table == name)
    }
}
