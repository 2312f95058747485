//! The result of a statement.

use std::sync::Arc;

use atoll_runtime::CancelToken;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::session::plan::column_origin::ColumnOrigins;
use crate::session::statement::command_tag::{StatementTag, with_notices};
use crate::shared_scan::{AloneQuery, ScannedRows};
use atoll_sql_common::error::SqlError;
use atoll_sql_exec::scan::ScanProgress;
use atoll_sql_parse::dialect::shown;

/// The result of a statement, while it runs. Dropping it cancels the query.
#[derive(Debug)]
pub struct QueryResult {
    pub(in crate::session) schema: SchemaRef,
    pub(in crate::session) origins: Option<ColumnOrigins>,
    pub(in crate::session) rows: ResultRows,
    pub(in crate::session) progress: ScanProgress,
    pub(in crate::session) tag: StatementTag,
    pub(in crate::session) sql: Arc<str>,
    /// The batch after all others.
    pub(in crate::session) last: Option<RecordBatch>,
    /// Marks the query as running alone, for others like it.
    pub(in crate::session) alone: Option<AloneQuery>,
    /// The memory charged for its rows.
    pub(in crate::session) charge: Option<Arc<MemoryReservation>>,
    /// The notices of functions, one a line.
    pub(in crate::session) notices: Vec<String>,
}

/// The source of a result's batches.
#[derive(Debug)]
pub(in crate::session) enum ResultRows {
    /// Existing batches.
    Ready(std::vec::IntoIter<RecordBatch>),
    /// A running query.
    Running(RunningRows),
}

/// The batches of a running query. Dropping this cancels it.
#[derive(Debug)]
pub(in crate::session) struct RunningRows {
    /// Interrupts work in the midst of a poll, which aborting the driver does not.
    pub(in crate::session) cancel: CancelToken,
    pub(in crate::session) batches: mpsc::Receiver<Result<RecordBatch>>,
    pub(in crate::session) driver: Option<JoinHandle<()>>,
}

impl QueryResult {
    /// The columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The origins of its columns, if any is a plain column of a table.
    pub fn origins(&self) -> Option<&ColumnOrigins> {
        self.origins.as_ref()
    }

    pub(in crate::session) fn with_origins(mut self, origins: Option<ColumnOrigins>) -> Self {
        self.origins = origins;
        self
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    /// If the query fails; no batch follows.
    pub async fn next(&mut self) -> std::result::Result<Option<RecordBatch>, SqlError> {
        let next = match &mut self.rows {
            ResultRows::Ready(batches) => batches.next(),
            ResultRows::Running(running) => {
                let next = running.next().await;
                next.map_err(|error| SqlError::new(error, &self.sql))?
            }
        };
        let Some(batch) = next else { return Ok(self.last.take()) };
        self.tag.add(&batch);
        match shown(batch.schema_ref()) {
            Some(schema) => {
                let named = named(&batch, schema);
                named.map(Some).map_err(|error| SqlError::new(error, &self.sql))
            }
            None => Ok(Some(batch)),
        }
    }

    /// All remaining batches.
    ///
    /// # Errors
    /// As [`QueryResult::next`].
    pub async fn collect(mut self) -> std::result::Result<Vec<RecordBatch>, SqlError> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await? {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Reads all remaining batches and returns the number of their rows.
    pub(in crate::session) async fn count_rows(mut self) -> Result<usize> {
        let mut rows = 0;
        loop {
            let batch = match &mut self.rows {
                ResultRows::Ready(batches) => batches.next(),
                ResultRows::Running(running) => running.next().await?,
            };
            match batch {
                Some(batch) => rows += batch.num_rows(),
                None => return Ok(rows),
            }
        }
    }

    /// The progress of the query.
    pub fn progress(&self) -> &ScanProgress {
        &self.progress
    }

    /// The command tag as in PostgreSQL: `INSERT 0 3`, `CREATE VIEW`. Complete once all batches were read.
    pub fn tag(&self) -> String {
        with_notices(&self.tag.text(), &self.notices).into_owned()
    }

    /// Whether the tag holds the whole result: for write statements, without rows or with only their number.
    pub fn is_told_by_tag(&self) -> bool {
        self.tag.tells_all() || self.schema.fields().is_empty() && !self.tag.counts_rows()
    }

    pub(crate) fn done(tag: String, sql: &str) -> Self {
        Self::from_batches(Arc::new(Schema::empty()), Vec::new(), sql)
            .tagged(StatementTag::done(tag))
    }

    pub(in crate::session) fn tagged(mut self, tag: StatementTag) -> Self {
        self.tag = tag;
        self
    }

    pub(in crate::session) fn noting(mut self, notices: Vec<String>) -> Self {
        self.notices.extend(notices);
        self
    }

    /// The rows of a shared scan.
    pub(in crate::session) fn of_scan(
        schema: &SchemaRef,
        rows: ScannedRows,
        sql: impl Into<Arc<str>>,
    ) -> Self {
        let mut result = Self::from_batches(Arc::clone(schema), rows.batches, sql);
        result.charge = Some(rows.charge);
        result
    }

    /// A result of existing batches.
    pub(in crate::session) fn from_batches(
        schema: SchemaRef,
        rows: Vec<RecordBatch>,
        sql: impl Into<Arc<str>>,
    ) -> Self {
        let (rows, progress) = (ResultRows::Ready(rows.into_iter()), ScanProgress::default());
        let (sql, origins, last, alone, charge) = (sql.into(), None, None, None, None);
        let (schema, tag) = (shown(&schema).unwrap_or(schema), StatementTag::rows());
        let notices = Vec::new();
        Self { schema, origins, rows, progress, tag, sql, last, alone, charge, notices }
    }

    /// The token that cancels the query; `None` if it is done.
    #[cfg(test)]
    pub(in crate::session) fn cancel_token(&self) -> Option<&CancelToken> {
        match &self.rows {
            ResultRows::Ready(_) => None,
            ResultRows::Running(running) => Some(&running.cancel),
        }
    }
}

impl RunningRows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.batches.recv().await {
            Some(batch) => batch.map(Some),
            None => self.ended().await,
        }
    }

    /// A driver that went away without a word panicked.
    async fn ended(&mut self) -> Result<Option<RecordBatch>> {
        let Some(driver) = self.driver.take() else { return Ok(None) };
        match driver.await {
            Err(error) if error.is_panic() => {
                Err(DataFusionError::Execution(format!("the query panicked: {error}")))
            }
            _ => Ok(None),
        }
    }
}

impl Drop for RunningRows {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

/// The batch with the schema's names.
fn named(batch: &RecordBatch, schema: SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
