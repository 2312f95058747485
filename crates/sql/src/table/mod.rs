//! Tables in placed memory: chunks of columns, each with a home node.
//!
//! A table is a list of immutable chunks. Readers pin the list that is current when their query is
//! planned; a writer builds new chunks on the workers and publishes a longer list in one step, so a
//! statement that fails leaves the table as it was.

mod bounds;
pub(crate) mod chunk;
pub(crate) mod column;
mod encode;
pub(crate) mod insert;
pub(crate) mod load;
mod place;
pub(crate) mod snapshot;
pub(crate) mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use atoll_placement::Strategy;
use atoll_runtime::Runtime;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, Statistics, plan_err};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::RwLock;

use chunk::Chunk;
pub(crate) use encode::stored_schema;
use insert::InsertExec;
use snapshot::Snapshot;
use writer::Destination;

use crate::scan::ScanExec;

/// A table whose chunks have homes. Clones are the same table.
#[derive(Clone, Debug)]
pub(crate) struct PlacedTable {
    name: Arc<str>,
    runtime: Runtime,
    destination: Destination,
    current: Arc<RwLock<Arc<Snapshot>>>,
}

impl PlacedTable {
    /// A table of these chunks; `schema` holds the types as stored.
    pub(crate) fn new(
        name: &str,
        runtime: Runtime,
        destination: Destination,
        schema: SchemaRef,
        chunks: Vec<Arc<Chunk>>,
    ) -> Self {
        let current = Arc::new(RwLock::new(Arc::new(Snapshot::new(schema, chunks))));
        Self { name: name.into(), runtime, destination, current }
    }

    /// What it holds now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read())
    }

    /// Where its chunks go.
    pub(crate) fn strategy(&self) -> &Strategy {
        &self.destination.strategy
    }

    /// Publishes more chunks behind those it has.
    pub(crate) fn append(&self, chunks: Vec<Arc<Chunk>>) {
        let mut current = self.current.write();
        *current = Arc::new(current.with(chunks));
    }
}

#[async_trait]
impl TableProvider for PlacedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.snapshot().schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        let snapshot = self.snapshot();
        let all: Vec<usize> = (0..snapshot.schema.fields().len()).collect();
        Some(snapshot.statistics(&all))
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
        let snapshot = self.snapshot();
        let conjuncts = conjuncts(state, &snapshot.schema, filters)?;
        let scan = ScanExec::new(
            Arc::clone(&self.name),
            self.runtime.clone(),
            snapshot,
            projection,
            conjuncts,
            limit,
        )?;
        Ok(Arc::new(scan))
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
        Ok(Arc::new(InsertExec::new(self.clone(), input)))
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
