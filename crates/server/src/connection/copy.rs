//! COPY between a table and the client.

use std::time::Duration;

use atoll_sql::SqlError;
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::datafusion::common::DataFusionError;
use atoll_sql::datafusion::error::Result as EngineResult;
use tokio::sync::mpsc::{Sender, channel};

use super::Connection;
use super::failure::{Failure, error_fields};
use super::statement::ROWS;
use crate::copy::{CopyDirection, CopyFormat, CopyReader, CopyStatement, CopyWriter};
use crate::wire::{ErrorFields, FrontendMessage, Output};

/// Batches that wait to be inserted; the client waits behind them.
const BATCHES: usize = 4;

/// How long a statement that is given up may take to end by itself.
const GIVEN_UP: Duration = Duration::from_secs(1);

impl Connection {
    /// Carries out a COPY. `start` is the character of what was sent at which it begins, from 0.
    pub(super) async fn copy(&mut self, copy: &CopyStatement, start: usize) -> Result<(), Failure> {
        let format = &copy.format;
        match &copy.direction {
            CopyDirection::In { table, columns } => self.copy_in(table, columns, format).await,
            CopyDirection::Out { query } => self.copy_out(query, format, start).await,
        }
    }

    async fn copy_out(
        &mut self,
        query: &str,
        format: &CopyFormat,
        start: usize,
    ) -> Result<(), Failure> {
        let Self { client, session, .. } = self;
        let failed = |error| error_fields(&error, query, start);
        let mut result = client.unless_ended(session.run(query)).await?.map_err(failed)?;
        answer(client.output(), b'H', format, result.schema().fields().len());
        let mut writer = CopyWriter::new(format);
        writer.begin(result.schema(), client.output());
        let mut rows = 0;
        while let Some(batch) = client.unless_ended(result.next()).await?.map_err(failed)? {
            rows += batch.num_rows();
            for start in (0..batch.num_rows()).step_by(ROWS) {
                let slice = batch.slice(start, ROWS.min(batch.num_rows() - start));
                writer.rows(&slice, client.output())?;
                client.send_much().await?;
            }
        }
        writer.end(client.output());
        client.output().empty(b'c');
        client.complete(&format!("COPY {rows}"));
        Ok(())
    }

    async fn copy_in(
        &mut self,
        table: &str,
        columns: &[String],
        format: &CopyFormat,
    ) -> Result<(), Failure> {
        let names = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
        let query = format!("SELECT {names} FROM {table} LIMIT 0");
        let Self { client, session, .. } = self;
        let result = client.unless_ended(session.run(&query)).await?;
        let result = result
            .map_err(|error| ErrorFields { position: None, ..error_fields(&error, &query, 0) })?;
        let mut reader = CopyReader::new(format, result.schema());
        drop(result);
        answer(client.output(), b'G', format, reader.schema().fields().len());
        client.send().await?;
        let (sender, batches) = channel(BATCHES);
        let schema = std::sync::Arc::clone(reader.schema());
        let (own, table, columns) = (session.clone(), table.to_owned(), columns.to_vec());
        let inserting = tokio::spawn(async move {
            let mut result = own.insert_batches(&table, &columns, schema, batches).await?;
            // The tag counts what is read.
            while result.next().await?.is_some() {}
            Ok::<_, SqlError>(result.tag())
        });
        let mut inserting = AbortOnDrop(inserting);
        let received = self.receive(&mut reader, &sender).await;
        match received {
            Ok(()) => drop(sender),
            Err(error) => {
                let given_up = DataFusionError::Execution("the client sent no more".to_owned());
                // Where it waits, for a lock or for room in the channel, it is not waited for.
                if sender.try_send(Err(given_up)).is_err() {
                    inserting.0.abort();
                }
                drop(sender);
                let ended = tokio::time::timeout(GIVEN_UP, &mut inserting.0).await;
                if ended.is_err() {
                    inserting.0.abort();
                    let _ = (&mut inserting.0).await;
                }
                return Err(error);
            }
        }
        let client = &mut self.client;
        let inserted = client.unless_ended(&mut inserting.0).await?;
        let inserted = inserted.map_err(|error| ErrorFields::error("XX000", error.to_string()))?;
        let tag = inserted
            .map_err(|error| ErrorFields { position: None, ..error_fields(&error, "", 0) })?;
        client.complete(&tag);
        Ok(())
    }

    /// Receives the data to its end. Where the statement has failed, the rest of it is passed over.
    async fn receive(
        &mut self,
        reader: &mut CopyReader,
        sender: &Sender<EngineResult<RecordBatch>>,
    ) -> Result<(), Failure> {
        loop {
            match self.client.copy_message().await? {
                FrontendMessage::CopyData(data) => {
                    for batch in reader.push(&data)? {
                        // What has failed is told at the end.
                        let _ = self.client.unless_ended(sender.send(Ok(batch))).await?;
                    }
                }
                FrontendMessage::CopyDone => {
                    if let Some(batch) = reader.finish()? {
                        let _ = self.client.unless_ended(sender.send(Ok(batch))).await?;
                    }
                    return Ok(());
                }
                FrontendMessage::CopyFail(why) => {
                    let message = format!("COPY from stdin failed: {why}");
                    return Err(ErrorFields::error("57014", message).into());
                }
                FrontendMessage::Flush | FrontendMessage::Sync => {}
                _ => {
                    let message = "unexpected message type during COPY from stdin";
                    return Err(ErrorFields::error("08P01", message).into());
                }
            }
        }
    }
}

/// That rows of so many columns follow, all in one format.
fn answer(output: &mut Output, kind: u8, format: &CopyFormat, columns: usize) {
    output.message(kind, |body| {
        body.push(format.code());
        body.extend_from_slice(&(columns as u16).to_be_bytes());
        body.extend([0, format.code()].repeat(columns));
    });
}

/// A task that ends with the one that waits for it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
