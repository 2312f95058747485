//! DataFusion as it comes: its own session, in-memory tables and a plain tokio runtime.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use datafusion::DATAFUSION_VERSION;
use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use tokio::runtime::{Builder, Runtime};

use super::Engine;
use crate::protocol::Placement;
use crate::tpch_data;

/// A session with all tables in memory.
pub(super) struct Plain {
    runtime: Runtime,
    context: SessionContext,
}

impl Plain {
    /// Loads the tables with `threads` threads into as many partitions, cut between the files' row
    /// groups; statistics are an in-memory table's own.
    pub(super) fn load(threads: usize, directory: &Path) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .context("cannot start tokio's threads")?;
        let config = SessionConfig::new().with_target_partitions(threads);
        let plain = Self { runtime, context: SessionContext::new_with_config(config) };
        for (table, file) in tpch_data::files(directory) {
            let load = load_table(plain.context.clone(), table, file);
            plain.on_workers(load).with_context(|| format!("cannot load {table}"))?;
        }
        Ok(plain)
    }

    /// Runs work on the runtime's threads rather than on this one, which would be one more.
    fn on_workers<T: Send + 'static>(
        &self,
        work: impl Future<Output = datafusion::error::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = self.runtime.block_on(self.runtime.spawn(work));
        Ok(done.context("a thread failed")??)
    }
}

async fn load_table(
    context: SessionContext,
    table: &'static str,
    file: String,
) -> datafusion::error::Result<()> {
    let rows = context.read_parquet(file, ParquetReadOptions::default()).await?;
    let schema = Arc::clone(rows.schema().inner());
    let partitions = rows.collect_partitioned().await?;
    context.register_table(table, Arc::new(MemTable::try_new(schema, partitions)?))?;
    Ok(())
}

impl Engine for Plain {
    fn version(&self) -> String {
        DATAFUSION_VERSION.to_owned()
    }

    fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let (context, sql) = (self.context.clone(), sql.to_owned());
        self.on_workers(async move { context.sql(&sql).await?.collect().await })
    }

    fn scanned_bytes(&self, _: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    fn placement(&self) -> Result<Option<Placement>> {
        Ok(None)
    }
}
