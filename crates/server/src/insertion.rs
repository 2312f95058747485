//! Inserts a client's batches into a table with a statement that runs while they arrive.

use std::sync::Arc;
use std::time::Duration;

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::SchemaRef;
use atoll_sql::datafusion::common::DataFusionError;
use atoll_sql::datafusion::error::Result as EngineResult;
use atoll_sql::{Session, SqlError};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

use crate::error_fields::error_fields;
use crate::wire::ErrorFields;

/// Batches in the queue, at most; the client waits when it is full.
const BATCHES: usize = 4;

/// How long an abandoned statement may take to end on its own.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// A running INSERT. Dropping it ends the statement.
#[derive(Debug)]
pub(crate) struct Insertion {
    sender: Option<Sender<EngineResult<RecordBatch>>>,
    inserting: JoinHandle<Result<String, SqlError>>,
}

impl Insertion {
    /// Begins to insert rows that meet a condition into these columns of a table, or into all if none are named.
    pub(crate) fn begin(
        session: &Session,
        (table, columns): (&str, &[String]),
        condition: Option<&str>,
        schema: &SchemaRef,
    ) -> Self {
        let (sender, batches) = channel(BATCHES);
        let (schema, session) = (Arc::clone(schema), session.clone());
        let (table, columns) = (table.to_owned(), columns.to_vec());
        let condition = condition.map(str::to_owned);
        let inserting = tokio::spawn(async move {
            let into = (table.as_str(), columns.as_slice());
            let inserting = session.insert_batches(into, condition.as_deref(), schema, batches);
            let mut result = inserting.await?;
            // The tag counts the rows that are read.
            while result.next().await?.is_some() {}
            Ok::<_, SqlError>(result.tag())
        });
        Self { sender: Some(sender), inserting }
    }

    /// Sends a batch to the statement. If the statement has failed, the batch is dropped: the error comes at the end.
    pub(crate) async fn push(&self, batch: RecordBatch) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(Ok(batch)).await;
        }
    }

    /// Ends the batches and returns the statement's tag.
    pub(crate) async fn finish(&mut self) -> Result<String, ErrorFields> {
        self.sender = None;
        let inserted = (&mut self.inserting).await;
        let inserted = inserted.map_err(|error| ErrorFields::error("XX000", error.to_string()))?;
        // The error's position refers to a statement that the client did not send.
        inserted.map_err(|error| ErrorFields { position: None, ..error_fields(&error, "", 0) })
    }

    /// Aborts the batches: nothing is inserted.
    pub(crate) async fn give_up(mut self) {
        let Some(sender) = self.sender.take() else { return };
        let given_up = DataFusionError::Execution("the client stopped sending".to_owned());
        // Does not wait for a statement that is blocked on a lock or a full channel.
        if sender.try_send(Err(given_up)).is_err() {
            self.inserting.abort();
        }
        drop(sender);
        if tokio::time::timeout(GIVEN_UP, &mut self.inserting).await.is_err() {
            self.inserting.abort();
            let _ = (&mut self.inserting).await;
        }
    }
}

impl Drop for Insertion {
    fn drop(&mut self) {
        self.inserting.abort();
    }
}
