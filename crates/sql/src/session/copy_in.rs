//! Rows that a client sends, into a table.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::mpsc::Receiver;

use super::Session;
use super::change::quoted;
use super::execute::QueryResult;
use super::tag::StatementTag;
use crate::error::SqlError;

/// The name of the rows while they are inserted, which no table has.
const ROWS: &str = "rows of the client\u{1}";

impl Session {
    /// Inserts batches that come over a channel, until it is closed: into columns of a table, all of them where none
    /// are named. Their columns are cast to the table's. An error in the channel ends the statement.
    pub fn insert_batches<'a>(
        &'a self,
        table: &'a str,
        columns: &'a [String],
        schema: SchemaRef,
        batches: Receiver<Result<RecordBatch>>,
    ) -> BoxFuture<'a, std::result::Result<QueryResult, SqlError>> {
        Box::pin(async move {
            let into = match columns.is_empty() {
                true => String::new(),
                false => format!(" ({})", columns.join(", ")),
            };
            let sql = format!("INSERT INTO {table}{into} SELECT * FROM {}", quoted(ROWS));
            let unfinished = self.unfinished();
            let result = self.try_insert_batches(&sql, schema, batches).await;
            unfinished.ended(&result);
            result.map_err(|error| SqlError::new(error, "").with_near_names(self))
        })
    }

    async fn try_insert_batches(
        &self,
        sql: &str,
        schema: SchemaRef,
        batches: Receiver<Result<RecordBatch>>,
    ) -> Result<QueryResult> {
        let transaction = self.statement_transaction()?;
        let statement = self.parse(sql)?.statement;
        let planner = self.planner(&transaction, true).await?;
        let rows = ClientRows { schema: Arc::clone(&schema), batches: Mutex::new(Some(batches)) };
        let rows = StreamingTable::try_new(schema, vec![Arc::new(rows)])?;
        planner.names.hide(ROWS, Arc::new(rows));
        let plan = planner.plan(statement).await?;
        let result = self.write(planner, plan, sql).await?;
        Ok(result.tagged(StatementTag::written("COPY")))
    }
}

/// Batches that are read once.
struct ClientRows {
    schema: SchemaRef,
    batches: Mutex<Option<Receiver<Result<RecordBatch>>>>,
}

impl fmt::Debug for ClientRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientRows")
    }
}

impl PartitionStream for ClientRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self.batches.lock().take();
        let next = |mut batches: Option<Receiver<Result<RecordBatch>>>| async move {
            let batch = batches.as_mut()?.recv().await?;
            Some((batch, batches))
        };
        let batches = futures::stream::unfold(batches, next);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
