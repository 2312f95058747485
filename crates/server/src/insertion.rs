//! Batches of a client on their way into a table: a statement that inserts them while they come.

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

/// Batches that wait to be inserted; the client waits behind them.
const BATCHES: usize = 4;

/// How long a statement that is given up may take to end by itself.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// A statement that inserts what comes. It ends with this.
#[derive(Debug)]
pub(crate) struct Insertion {
    sender: Option<Sender<EngineResult<RecordBatch>>>,
    inserting: JoinHandle<Result<String, SqlError>>,
}

impl Insertion {
    /// Begins to insert into columns of a table, all of them where none are named.
    pub(crate) fn begin(
        session: &Session,
        table: &str,
        columns: &[String],
        schema: &SchemaRef,
    ) -> Self {
        let (sender, batches) = channel(BATCHES);
        let (schema, session) = (Arc::clone(schema), session.clone());
        let (table, columns) = (table.to_owned(), columns.to_vec());
        let inserting = tokio::spawn(async move {
            let mut result = session.insert_batches(&table, &columns, schema, batches).await?;
            // The tag counts what is read.
            while result.next().await?.is_some() {}
            Ok::<_, SqlError>(result.tag())
        });
        Self { sender: Some(sender), inserting }
    }

    /// Hands a batch over. Where the statement has failed it is passed over: that is told at the end.
    pub(crate) async fn push(&self, batch: RecordBatch) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(Ok(batch)).await;
        }
    }

    /// There are no more batches; the statement's tag once it has ended.
    pub(crate) async fn finish(&mut self) -> Result<String, ErrorFields> {
        self.sender = None;
        let inserted = (&mut self.inserting).await;
        let inserted = inserted.map_err(|error| ErrorFields::error("XX000", error.to_string()))?;
        // A place is one of a statement that the client did not send.
        inserted.map_err(|error| ErrorFields { position: None, ..error_fields(&error, "", 0) })
    }

    /// The batches end before their time: nothing is inserted.
    pub(crate) async fn give_up(mut self) {
        let Some(sender) = self.sender.take() else { return };
        let given_up = DataFusionError::Execution("the client sent no more".to_owned());
        // Where it waits, for a lock or for room in the channel, it is not waited for.
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
