//! The knowledge base in SQL: the tables of the schema `atoll`.
//!
//! Each is computed anew for every query that names it, from the machine, the pools, the tables and the state of the
//! kernel; they can be joined like any others.

mod activity;
mod column;
mod functions;
mod knowledge;
mod locks;
mod machine;
mod pools;
mod rights;
mod roles;
mod scans;
mod storage;
mod store;
mod traffic;
mod workers;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_runtime::Runtime;
use atoll_topology::Knowledge;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session as SessionTrait, TableProvider};
use datafusion::common::{ResolvedTableReference, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::catalog::Catalogs;
use crate::pg_catalog::{SystemCatalog, SystemHandle};
use atoll_sql_common::names::{CATALOG, SYSTEM_SCHEMA};

/// The rows of a system table, or its columns, computed now.
type Rows<R> = Pin<Box<dyn Future<Output = Result<Vec<R>>> + Send>>;

/// A table of the schema `atoll`.
struct SystemTable {
    name: &'static str,
    schema: SchemaRef,
    source: SystemTableSource,
}

/// Computes a system table, from the names of the statement that reads it.
type SystemTableSource = Box<dyn Fn(&dyn SessionTrait) -> Rows<ArrayRef> + Send + Sync>;

impl fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SystemTable({})", self.name)
    }
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        session: &dyn SessionTrait,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batch = RecordBatch::try_new(self.schema(), (self.source)(session).await?)?;
        let plan =
            MemorySourceConfig::try_new_exec(&[vec![batch]], self.schema(), projection.cloned())?;
        Ok(plan)
    }
}

/// Rows that are available at once.
fn now<R: Send + 'static>(rows: impl IntoIterator<Item = R>) -> Rows<R> {
    Box::pin(std::future::ready(Ok(rows.into_iter().collect())))
}

/// The session's database and user, from its settings.
fn session_system(session: &dyn SessionTrait) -> Option<Arc<SystemCatalog>> {
    session.config().get_extension::<SystemHandle>()?.get()
}

/// Registers the schema `atoll` and its tables, which all sessions share: a table gets what differs from the session
/// that reads it.
pub(crate) fn register(
    catalogs: &Catalogs,
    runtime: &Runtime,
    knowledge: &Arc<Knowledge>,
) -> Result<()> {
    catalogs.create_schema(CATALOG, SYSTEM_SCHEMA);
    let add = |table: SystemTable| {
        let (catalog, schema) = (CATALOG.into(), SYSTEM_SCHEMA.into());
        let name = ResolvedTableReference { catalog, schema, table: table.name.into() };
        catalogs.put(&name, |_| Ok(Arc::new(table)))
    };
    let machine = runtime.machine();
    add(machine::nodes(runtime.clone()))?;
    add(machine::cpus(Arc::clone(machine)))?;
    add(machine::distances(Arc::clone(machine)))?;
    add(knowledge::facts(Arc::clone(knowledge)))?;
    add(knowledge::latency(Arc::clone(knowledge)))?;
    add(knowledge::bandwidth(Arc::clone(knowledge)))?;
    add(knowledge::links(Arc::clone(knowledge)))?;
    add(workers::workers(runtime.clone()))?;
    add(functions::functions())?;
    add(store::database())?;
    add(store::snapshots())?;
    add(locks::locks())?;
    add(scans::scans())?;
    add(roles::roles())?;
    add(rights::rights())?;
    add(activity::sessions())?;
    add(activity::queries())?;
    add(pools::pools())?;
    add(traffic::traffic())?;
    storage::all(runtime).into_iter().try_for_each(add)
}
