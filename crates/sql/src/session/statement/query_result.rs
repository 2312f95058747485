//! What a statement returns.

use std::sync::Arc;

use atoll_runtime::CancelToken;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::session::plan::column_origin::ColumnOrigins;
use crate::session::statement::command_tag::StatementTag;
use crate::shared_scan::{AloneQuery, ScannedRows};
use atoll_sql_common::error::SqlError;
use atoll_sql_exec::scan::ScanProgress;
use atoll_sql_parse::dialect::shown;

/// What a statement returns, while it runs. Dropping it cancels the query.
#[derive(Debug)]
pub struct QueryResult {
    pub(in crate::session) schema: SchemaRef,
    pub(in crate::session) origins: Option<ColumnOrigins>,
    pub(in crate::session) rows: ResultRows,
    pub(in crate::session) progress: ScanProgress,
    pub(in crate::session) tag: StatementTag,
    pub(in crate::session) sql: Arc<str>,
    /// What comes behind all other batches.
    pub(in crate::session) last: Option<RecordBatch>,
    /// Tells others like it that they are not alone, while it runs.
    pub(in crate::session) alone: Option<AloneQuery>,
    /// The memory that its rows are charged with.
    pub(in crate::session) charge: Option<Arc<MemoryReservation>>,
}

/// Where the batches of a result come from.
#[derive(Debug)]
pub(in crate::session) enum ResultRows {
    /// They are there.
    Ready(std::vec::IntoIter<RecordBatch>),
    /// The query gives them while it runs.
    Running(RunningRows),
}

/// The batches of a query that runs. Dropping this cancels it.
#[derive(Debug)]
pub(in crate::session) struct RunningRows {
    /// Reaches what is under way in the midst of a poll, which aborting the driver does not.
    pub(in crate::session) cancel: CancelToken,
    pub(in crate::session) batches: mpsc::Receiver<Result<RecordBatch>>,
    pub(in crate::session) driver: Option<JoinHandle<()>>,
}

impl QueryResult {
    /// The columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where its columns come from, if any is a plain column of a table.
    pub fn origins(&self) -> Option<&ColumnOrigins> {
        self.origins.as_ref()
    }

    pub(in crate::session) fn with_origins(mut self, origins: Option<ColumnOrigins>) -> Self {
        self.origins = origins;
        self
    }

    /// The next batch; none after the last.
    ///
    /// # Errors
    /// When the query fails; no batch follows.
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

    /// All batches that are left.
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

    /// How far it is.
    pub fn progress(&self) -> &ScanProgress {
        &self.progress
    }

    /// What was done, as PostgreSQL says it: `INSERT 0 3`, `CREATE VIEW`. Complete once all batches were read.
    pub fn tag(&self) -> String {
        self.tag.text()
    }

    /// Whether there are no rows, or only the number that the tag tells: those of a statement that writes.
    pub fn is_told_by_tag(&self) -> bool {
        self.tag.tells_all() || self.schema.fields().is_empty() && !self.tag.counts_rows()
    }

    pub(crate) fn done(tag: String, sql: &str) -> Self {
        Self::of(Arc::new(Schema::empty()), Vec::new(), sql).tagged(StatementTag::done(tag))
    }

    pub(in crate::session) fn tagged(mut self, tag: StatementTag) -> Self {
        self.tag = tag;
        self
    }

    /// Rows that a shared scan found.
    pub(in crate::session) fn of_scan(
        schema: &SchemaRef,
        rows: ScannedRows,
        sql: impl Into<Arc<str>>,
    ) -> Self {
        let mut result = Self::of(Arc::clone(schema), rows.batches, sql);
        result.charge = Some(rows.charge);
        result
    }

    /// Batches that are there.
    pub(in crate::session) fn of(
        schema: SchemaRef,
        rows: Vec<RecordBatch>,
        sql: impl Into<Arc<str>>,
    ) -> Self {
        let (rows, progress) = (ResultRows::Ready(rows.into_iter()), ScanProgress::default());
        let (sql, origins, last, alone, charge) = (sql.into(), None, None, None, None);
        let (schema, tag) = (shown(&schema).unwrap_or(schema), StatementTag::rows());
        Self { schema, origins, rows, progress, tag, sql, last, alone, charge }
    }

    /// What cancels the query; none for one that is done.
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

/// The batch with other names.
fn named(batch: &RecordBatch, schema: SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
