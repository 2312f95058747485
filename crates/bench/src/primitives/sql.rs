//! The same rows in a table of Atoll's SQL, so that what users run is measured too.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use atoll_sql::{DatabaseOptions, Session};
use atoll_tools::topo::live;
use atoll_tools::workload::{ColumnTable, Rig};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::datasource::MemTable;

/// Name under which the rows are handed over.
const SOURCE: &str = "rows";

/// A session with one table, `t`, of key `k` and value `v`.
pub(super) struct SqlTable(Session);

impl SqlTable {
    /// Copies the rows into a table in placed memory; its queries run on the same workers.
    ///
    /// # Errors
    /// When memory is out.
    pub(super) fn load(rig: &Rig, table: &ColumnTable) -> Result<Self> {
        let facts = live().map_or_else(|_| Vec::new(), |known| known.facts);
        let options = DatabaseOptions { facts, ..DatabaseOptions::default() };
        let session = Session::new(rig.context.runtime().clone(), options)?;
        let batches: Vec<RecordBatch> = table.parts.iter().map(|part| part.rows.clone()).collect();
        let schema = batches.first().context("a table without rows")?.schema();
        let rows = MemTable::try_new(schema, vec![batches])?;
        session.context().register_table(SOURCE, Arc::new(rows))?;
        let loaded = Self(session);
        loaded.run(&format!("CREATE TABLE t AS SELECT * FROM {SOURCE}"))?;
        loaded.0.context().deregister_table(SOURCE)?;
        Ok(loaded)
    }

    /// All of a query's result.
    ///
    /// # Errors
    /// The query's.
    pub(super) fn run(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let run = async { self.0.run(sql).await?.collect().await };
        Ok(self.0.runtime().block_on(run)?)
    }
}

/// The columns as 64-bit integers, as results are checked.
pub(super) fn integers(batch: &RecordBatch) -> Result<RecordBatch> {
    let fields = batch.schema();
    let names = fields.fields().iter().map(|field| field.name().as_str());
    let columns = batch.columns().iter().map(|column| cast(column, &DataType::Int64));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_from_iter(names.zip(columns))?)
}
