//! The store's tables as DataFusion asks for them.
//!
//! A table is a list of immutable chunks ([`atoll_store::table`]). Readers see the list that was current when the planning of
//! their statement began; a writer builds new chunks on the workers and puts a table with a longer
//! list in place of the old one in one step, so a statement that fails leaves the table as it was.

mod change;
pub(crate) mod insert;
pub(crate) mod load;
mod statistics;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use atoll_placement::Strategy;
use atoll_runtime::Runtime;
use atoll_store::table::{Chunk, ChunkWriter, Destination, TableError, TableSnapshot};
use atoll_topology::NodeId;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{
    DFSchema, DataFusionError, ResolvedTableReference, Result, Statistics, exec_err, plan_err,
};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use change::{ChangeKind, ChangedTable};
use insert::Insert;
pub(crate) use statistics::{statistics, whole};
use write::WriteExec;

use crate::catalog::{WeakCatalogs, plain};
use crate::scan::ScanExec;

/// A table whose chunks have homes, as it was at one moment: it never changes, an INSERT puts another
/// one in its place.
#[derive(Clone, Debug)]
pub(crate) struct PlacedTable {
    at: ResolvedTableReference,
    name: Arc<str>,
    catalogs: WeakCatalogs,
    runtime: Runtime,
    destination: Destination,
    snapshot: Arc<TableSnapshot>,
    /// The columns as planning sees them.
    schema: SchemaRef,
}

impl PlacedTable {
    /// A table without rows; `schema` holds the types as stored. It is found under its name once it
    /// is put into the catalogs.
    pub(crate) fn new(
        at: ResolvedTableReference,
        catalogs: WeakCatalogs,
        runtime: Runtime,
        destination: Destination,
        schema: SchemaRef,
    ) -> Self {
        let snapshot = Arc::new(TableSnapshot::new(Arc::clone(&schema), Vec::new()));
        Self { name: plain(&at).into(), at, catalogs, runtime, destination, snapshot, schema }
    }

    /// The table with these chunks behind those it has.
    pub(crate) fn with(&self, chunks: Vec<Arc<Chunk>>) -> Self {
        Self { snapshot: Arc::new(self.snapshot.with(chunks)), ..self.clone() }
    }

    /// The table as the target of an INSERT: DataFusion 55 gives VALUES the target's columns, and fails
    /// on a NULL in them with a message that names neither. It is found when the rows are written.
    pub(crate) fn as_target(&self) -> Self {
        let schema = Arc::new(Schema::new(self.nullable_fields().collect::<Vec<_>>()));
        Self { schema, ..self.clone() }
    }

    /// The columns, NULL in all of them.
    fn nullable_fields(&self) -> impl Iterator<Item = Field> {
        self.schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true))
    }

    /// The same table under another name.
    pub(crate) fn renamed(&self, at: ResolvedTableReference) -> Self {
        Self { name: plain(&at).into(), at, ..self.clone() }
    }

    /// Gives the columns other names: the table of this name has them from now on.
    pub(crate) fn rename_columns(&self, names: &[&str]) -> Result<()> {
        self.publish("renamed", |current| {
            let fields = current.snapshot.schema.fields().iter().zip(names);
            let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(*name));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let snapshot = Arc::new(current.snapshot.with_names(Arc::clone(&schema)));
            Ok(Self { snapshot, schema, ..current.clone() })
        })
    }

    /// Its full name.
    pub(crate) fn at(&self) -> &ResolvedTableReference {
        &self.at
    }

    /// Its name as a person writes it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The workers that fill it.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A writer on `node` of chunks for this table, the first of which has the number `first`.
    pub(crate) fn writer(&self, node: NodeId, first: usize) -> ChunkWriter {
        let (name, schema) = (Arc::clone(&self.name), Arc::clone(&self.snapshot.schema));
        ChunkWriter::new(name, schema, self.destination.clone(), node, first)
    }

    /// What it holds.
    pub(crate) fn snapshot(&self) -> Arc<TableSnapshot> {
        Arc::clone(&self.snapshot)
    }

    /// How they are placed.
    pub(crate) fn strategy(&self) -> &Strategy {
        &self.destination.strategy
    }

    fn scan_exec(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanExec> {
        let snapshot = self.snapshot();
        let conjuncts = conjuncts(state, &snapshot.schema, filters)?;
        let (name, runtime) = (Arc::clone(&self.name), self.runtime.clone());
        ScanExec::new(name, runtime, snapshot, projection, conjuncts, limit)
    }

    /// Publishes more chunks behind those that the table of this name has by now.
    pub(crate) fn append(&self, chunks: Vec<Arc<Chunk>>) -> Result<()> {
        self.publish("inserted", |current| Ok(current.with(chunks)))
    }

    /// Puts another table in the place of the one of this name, made of what that is by now. Errors say
    /// what was to be done with the rows.
    fn publish(&self, done: &str, make: impl FnOnce(&Self) -> Result<Self>) -> Result<()> {
        let Some(catalogs) = self.catalogs.upgrade() else {
            return exec_err!("the session ended before the rows were {done}");
        };
        catalogs.put(&self.at, |current| {
            let Some(current) = current.and_then(|table| table.downcast_ref::<Self>()) else {
                return exec_err!(
                    "table '{}' was dropped while rows of it were being {done}",
                    self.name
                );
            };
            if current.snapshot.schema != self.snapshot.schema {
                return exec_err!(
                    "table '{}' was replaced by one with other columns while rows of it were being \
                     {done}; run the statement again",
                    self.name
                );
            }
            Ok(Arc::new(make(current)?))
        })
    }
}

#[async_trait]
impl TableProvider for PlacedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let all: Vec<usize> = (0..self.snapshot.schema.fields().len()).collect();
        Some(statistics(&self.snapshot, &all))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match filter.is_volatile() {
            true => TableProviderFilterPushDown::Unsupported,
            false => TableProviderFilterPushDown::Exact,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.scan_exec(state, projection, filters, limit)?))
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if op != InsertOp::Append {
            return plan_err!(
                "{op} is not supported on table '{}'; use CREATE OR REPLACE TABLE … AS",
                self.name
            );
        }
        Ok(Arc::new(WriteExec::new(Arc::new(Insert(self.clone())), input)))
    }
}

/// The store's errors as DataFusion's.
pub(crate) fn table_error(error: TableError) -> DataFusionError {
    match error {
        TableError::Values(error) => error.into(),
        TableError::Memory(error) => DataFusionError::ResourcesExhausted(error.to_string()),
        TableError::NoHome(error) => DataFusionError::Configuration(error.to_string()),
        // DataFusion 55 plans NULL for a column that an INSERT omits, whether it may be NULL or not.
        TableError::Null { .. }
        | TableError::Unsupported { .. }
        | TableError::DamagedRow { .. }
        | TableError::Misfit { .. }
        | TableError::Duplicate { .. } => DataFusionError::Execution(error.to_string()),
    }
}

/// The filters over the table's columns, one predicate a conjunct.
fn conjuncts(
    state: &dyn Session,
    schema: &Schema,
    filters: &[Expr],
) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let schema = DFSchema::try_from(schema.clone())?;
    let mut conjuncts = Vec::new();
    for filter in filters {
        let predicate = state.create_physical_expr(filter.clone(), &schema)?;
        conjuncts.extend(split_conjunction(&predicate).into_iter().cloned());
    }
    Ok(conjuncts)
}
