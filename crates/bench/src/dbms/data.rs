//! The data of a run: TPC-H's tables as Parquet and as text, and the table `narrow`, in the run's own directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use tokio::runtime::Builder;

use super::schema::{TABLES, literal};
use crate::programs::own_command;
use crate::rivals::SqlEngine;
use crate::tpch_data;

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct DbmsData {
    directory: PathBuf,
}

impl DbmsData {
    /// Generates all files.
    pub(super) fn make(
        directory: &Path,
        scale_factor: f64,
        patience: std::time::Duration,
    ) -> Result<Self> {
        let data = Self { directory: directory.join("data") };
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

    /// Writes `narrow`, and all tables as text.
    async fn rewrite(&self) -> Result<()> {
        let config = SessionConfig::new().with_target_partitions(1);
        let context = SessionContext::new_with_config(config);
        for (table, file) in tpch_data::files(&self.directory) {
            context.register_parquet(table, file, ParquetReadOptions::default()).await?;
        }
        let narrow = literal(&self.parquet("narrow"));
        let narrow = format!(
            "COPY (SELECT l_orderkey AS n_key, l_suppkey AS n_value FROM lineitem) TO {narrow} STORED AS PARQUET"
        );
        context.sql(&narrow).await?.collect().await.context("cannot write the table narrow")?;
        let file = self.parquet("narrow").to_string_lossy().into_owned();
        context.register_parquet("narrow", file, ParquetReadOptions::default()).await?;
        for table in &TABLES {
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
