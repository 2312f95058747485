//! The knowledge base in SQL: the tables of the schema `atoll`.
//!
//! Each is computed anew for every query that names it, from the machine, the pools, the tables and
//! what the kernel says at that moment; they are joined like any others.

mod activity;
mod column;
mod functions;
mod knowledge;
mod machine;
mod pools;
mod rewritten;
mod rights;
mod roles;
mod scans;
mod session_functions;
mod storage;
mod store;
mod workers;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_topology::Knowledge;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session as SessionTrait, TableProvider};
use datafusion::common::{ResolvedTableReference, Result};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use functions::listed_functions;
pub(crate) use session_functions::register as register_session_functions;

use crate::Session;
use crate::catalog::CATALOG;

/// The schema of the system tables.
const SYSTEM: &str = "atoll";

/// The rows of a system table, or its columns, computed now.
type Rows<R> = Pin<Box<dyn Future<Output = Result<Vec<R>>> + Send>>;

/// A table of the schema `atoll`.
struct SystemTable {
    name: &'static str,
    schema: SchemaRef,
    source: SystemTableSource,
}

/// What computes a system table, from the names of the statement that reads it.
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

/// Rows that need not be waited for.
fn now<R: Send + 'static>(rows: impl IntoIterator<Item = R>) -> Rows<R> {
    Box::pin(std::future::ready(Ok(rows.into_iter().collect())))
}

/// Registers the schema `atoll` and its tables in the session's catalog.
pub(crate) fn register(session: &Session, knowledge: &Arc<Knowledge>) -> Result<()> {
    let runtime = session.runtime();
    let catalogs = session.catalogs();
    catalogs.create_schema(CATALOG, SYSTEM);
    let add = |table: SystemTable| {
        let (catalog, schema) = (CATALOG.into(), SYSTEM.into());
        let name = ResolvedTableReference { catalog, schema, table: table.name.into() };
        catalogs.put(&name, |_| Ok(Arc::new(table)))
    };
    add(machine::nodes(runtime.clone()))?;
    add(machine::cpus(Arc::clone(session.machine())))?;
    add(machine::distances(Arc::clone(session.machine())))?;
    add(knowledge::facts(Arc::clone(knowledge)))?;
    add(knowledge::latency(Arc::clone(knowledge)))?;
    add(knowledge::bandwidth(Arc::clone(knowledge)))?;
    add(knowledge::links(Arc::clone(knowledge)))?;
    add(workers::workers(runtime.clone()))?;
    add(functions::functions())?;
    add(store::database(session.database().clone()))?;
    add(store::snapshots(session.database().clone()))?;
    add(scans::scans(session.database().clone()))?;
    add(roles::roles(session.database().clone()))?;
    add(rights::rights(session.database().clone()))?;
    let identity = session.identity();
    add(activity::sessions(session.database().clone(), Arc::clone(identity)))?;
    add(activity::queries(session.database().clone(), Arc::clone(identity)))?;
    add(pools::pools(session.database().clone()))?;
    storage::all(session.database()).into_iter().try_for_each(add)
}
