//! A table of `pg_catalog` or `information_schema`, computed anew by every statement that reads it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::declared::{DeclaredTable, TABLE_OID};
use super::rows::Rows;
use super::{SystemCatalog, contents};
use crate::catalog::Catalogs;

/// A table, over the names of one statement.
#[derive(Debug)]
pub(super) struct PgTable {
    pub(super) declared: &'static DeclaredTable,
    pub(super) names: Catalogs,
    pub(super) system: Arc<SystemCatalog>,
}

#[async_trait]
impl TableProvider for PgTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.declared.read)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut rows = Rows::new(&self.declared.read);
        contents::fill(self, session, &mut rows);
        rows.fill(TABLE_OID, &self.declared.oid.into());
        let batch = rows.batch(projection)?;
        let schema = batch.schema();
        let plan = MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?;
        Ok(plan)
    }
}
