//! COPY between a table and the client.

use super::Connection;
use super::failure::Failure;
use super::statement::ROWS;
use crate::copy::{CopyDirection, CopyFormat, CopyReader, CopyStatement, CopyWriter};
use crate::error_fields::error_fields;
use crate::insertion::Insertion;
use crate::wire::{ErrorFields, FrontendMessage, Output};
use atoll_sql::TextEncoding;

impl Connection {
    /// Runs a COPY that begins at character `start`, counted from 0, of the client's text.
    pub(super) async fn copy(&mut self, copy: &CopyStatement, start: usize) -> Result<(), Failure> {
        let format = &copy.format;
        let own = self.client.output().encoding;
        let encoding = copy.encoding.unwrap_or(own);
        match &copy.direction {
            CopyDirection::In { table, columns, condition } => {
                let into = (table.as_str(), columns.as_slice());
                self.copy_in(into, condition.as_deref(), format, encoding).await
            }
            CopyDirection::Out { query } => {
                self.client.output().encoding = encoding;
                let done = self.copy_out(query, format, start).await;
                self.client.output().encoding = own;
                let rows = done?;
                self.client.complete(&format!("COPY {rows}"));
                Ok(())
            }
        }
    }

    /// Sends the rows of a query; returns their number.
    async fn copy_out(
        &mut self,
        query: &str,
        format: &CopyFormat,
        start: usize,
    ) -> Result<usize, Failure> {
        let Self { client, session, .. } = self;
        let failed = |error| error_fields(&error, query, start);
        let mut result = client.unless_ended(session.run(query)).await?.map_err(failed)?;
        format.check(result.schema())?;
        answer(client.output(), b'H', format, result.schema().fields().len());
        let mut writer = CopyWriter::new(format);
        writer.begin(result.schema(), client.output())?;
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
        Ok(rows)
    }

    async fn copy_in(
        &mut self,
        (table, columns): (&str, &[String]),
        condition: Option<&str>,
        format: &CopyFormat,
        encoding: TextEncoding,
    ) -> Result<(), Failure> {
        let Self { client, session, .. } = self;
        let schema = client.unless_ended(session.copy_columns(table, columns)).await?;
        let schema = schema
            .map_err(|error| ErrorFields { position: None, ..error_fields(&error, "", 0) })?;
        format.check(&schema)?;
        let mut reader = CopyReader::new(format, &schema, encoding);
        answer(client.output(), b'G', format, reader.schema().fields().len());
        client.send().await?;
        let mut insertion = Insertion::begin(session, (table, columns), condition, reader.schema());
        if let Err(error) = self.receive(&mut reader, &insertion).await {
            insertion.give_up().await;
            return Err(error);
        }
        let client = &mut self.client;
        let tag = client.unless_ended(insertion.finish()).await??;
        client.complete(&tag);
        Ok(())
    }

    /// Receives all of the data. If the statement has failed, the rest is discarded.
    async fn receive(
        &mut self,
        reader: &mut CopyReader,
        insertion: &Insertion,
    ) -> Result<(), Failure> {
        loop {
            match self.client.copy_message().await? {
                FrontendMessage::CopyData(data) => {
                    for batch in reader.push(&data)? {
                        self.client.unless_ended(insertion.push(batch)).await?;
                    }
                }
                FrontendMessage::CopyDone => {
                    if let Some(batch) = reader.finish()? {
                        self.client.unless_ended(insertion.push(batch)).await?;
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

/// Announces rows with this many columns, all in one format.
fn answer(output: &mut Output, kind: u8, format: &CopyFormat, columns: usize) {
    output.message(kind, |body| {
        body.push(format.code());
        body.extend_from_slice(&(columns as u16).to_be_bytes());
        body.extend([0, format.code()].repeat(columns));
    });
}
