//! The data of a run: TPC-H's tables as Parquet and as text, and the table `narrow`, in the run's own directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use tokio::runtime::Builder;

use super::pgbench;
use super::plan::DbmsPlan;
use super::schema::{DbmsTable, PGBENCH_TABLES, TABLES, literal};
use crate::programs::own_command;
use crate::rivals::SqlEngine;
use crate::tpch_data;

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct DbmsData {
    directory: PathBuf,
    /// Branches of pgbench's tables; `None` without these.
    pgbench_scale: Option<u32>,
}

impl DbmsData {
    /// TPC-H's files, which were generated before.
    pub(super) fn made(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), pgbench_scale: None }
    }

    /// Where they are.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Generates all files of a run.
    pub(super) fn make(directory: &Path, plan: &DbmsPlan, patience: Duration) -> Result<Self> {
        let pgbench_scale = plan.has_pgbench().then_some(plan.pgbench_scale);
        Self::generate(directory, plan.scale_factor, pgbench_scale, patience)
    }

    /// Generates TPC-H's files, and with a scale pgbench's.
    pub(super) fn generate(
        directory: &Path,
        scale_factor: f64,
        pgbench_scale: Option<u32>,
        patience: Duration,
    ) -> Result<Self> {
        let data = Self { directory: directory.join("data"), pgbench_scale };
        fs::create_dir(&data.directory).context("cannot make the directory of the data")?;
        let mut command = own_command()?;
        command.args(["worker", "--engine", "generator", "--threads", "1", "--data"]);
        command.arg(&data.directory).arg("--scale-factor").arg(scale_factor.to_string());
        SqlEngine::start("generator", &mut command, patience)?.wait()?;
        let runtime =
            Builder::new_current_thread().enable_all().build().context("tokio's thread")?;
        runtime.block_on(data.rewrite())?;
        Ok(data)
    }

    /// The tables of an instance.
    pub(super) fn tables(&self) -> impl Iterator<Item = &'static DbmsTable> {
        let has_pgbench = self.pgbench_scale.is_some();
        TABLES.iter().chain(PGBENCH_TABLES.iter().filter(move |_| has_pgbench))
    }

    /// Whether a table has rows at first.
    pub(super) fn is_filled(&self, table: &str) -> bool {
        self.parquet(table).exists()
    }

    /// Writes `narrow` and pgbench's tables, and all tables as text.
    async fn rewrite(&self) -> Result<()> {
        let config = SessionConfig::new().with_target_partitions(1);
        let context = SessionContext::new_with_config(config);
        for (table, file) in tpch_data::files(&self.directory) {
            context.register_parquet(table, file, ParquetReadOptions::default()).await?;
        }
        let narrow = "SELECT l_orderkey AS n_key, l_suppkey AS n_value FROM lineitem".to_owned();
        let pgbench = self.pgbench_scale.into_iter().flat_map(pgbench::rows);
        for (table, rows) in [("narrow", narrow)].into_iter().chain(pgbench) {
            let file = self.parquet(table);
            let copy = format!("COPY ({rows}) TO {} STORED AS PARQUET", literal(&file));
            let written = context.sql(&copy).await?.collect().await;
            written.with_context(|| format!("cannot write the table {table}"))?;
            let file = file.to_string_lossy().into_owned();
            context.register_parquet(table, file, ParquetReadOptions::default()).await?;
        }
        for table in self.tables().filter(|table| self.is_filled(table.name)) {
            let (name, file) = (table.name, literal(&self.text(table.name)));
            let copy = format!(
                "COPY (SELECT * FROM {name}) TO {file} STORED AS CSV \
                 OPTIONS ('format.delimiter' '|', 'format.has_header' 'false')"
            );
            context
                .sql(&copy)
                .await?
                .collect()
                .await
                .with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }

    /// A table in Parquet.
    pub(super) fn parquet(&self, table: &str) -> PathBuf {
        self.directory.join(format!("{table}.parquet"))
    }

    /// A table as text: a line for each row, columns divided by `|`.
    pub(super) fn text(&self, table: &str) -> PathBuf {
        self.directory.join(format!("{table}.csv"))
    }
}
