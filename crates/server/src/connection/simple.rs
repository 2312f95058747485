//! The simple query protocol: a text of statements, run in one transaction.

use std::sync::Arc;

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::{Splitter, Statement};
use tokio::time::Instant;

use super::cursor_statement::CursorStatement;
use super::failure::{End, Failure};
use super::statement::{Control, ROWS, complete};
use super::{Client, Connection};
use crate::copy::CopyStatement;
use crate::error_fields::error_fields;
use crate::value::{RowColumns, row_description, write_rows};

impl Connection {
    /// Runs all statements of a text.
    pub(super) async fn simple(&mut self, text: &str) -> Result<(), End> {
        self.portals.remove("");
        self.prepared.remove("");
        self.begin(text);
        let run = async {
            self.run_all(text).await?;
            self.end_group().await
        };
        match run.await {
            Ok(()) => self.ended(None),
            Err(Failure::Ends(end)) => return Err(end),
            Err(Failure::Statement(error)) => {
                self.failed(&error);
                match self.end_group().await {
                    Err(Failure::Ends(end)) => return Err(end),
                    Err(Failure::Statement(error)) => self.client.output().error(&error),
                    Ok(()) => {}
                }
            }
        }
        self.ready().await
    }

    async fn run_all(&mut self, text: &str) -> Result<(), Failure> {
        let statements = self.split(text)?;
        if statements.is_empty() {
            self.client.output().empty(b'I');
        }
        let is_group = statements.len() > 1;
        let mut searched = 0;
        for Statement { text: sql, .. } in &statements {
            let rest = &text[searched..];
            let at = if rest.starts_with(sql.as_str()) { Some(0) } else { rest.find(sql.as_str()) };
            let start = at.map_or(searched, |at| searched + at);
            searched = start + sql.len();
            if start > 0 {
                // Earlier statements may have changed the timeout.
                self.limit_time(Instant::now());
            }
            let ran = self.run_any(sql, text[..start].chars().count(), is_group).await;
            self.audit(sql, &ran);
            ran?;
        }
        Ok(())
    }

    /// Runs a statement that begins at character `start`, counted from 0, of the client's text, and may be one of
    /// several.
    async fn run_any(&mut self, sql: &str, start: usize, is_group: bool) -> Result<(), Failure> {
        self.take_style();
        let control = Control::from_sql(sql);
        if control != Control::None {
            let Self { client, session, is_implicit, .. } = self;
            Self::control(client, session, is_implicit, control, sql).await?;
            if control == Control::End {
                self.transaction_ended(sql);
            }
            return Ok(());
        }
        if self.deallocate(sql) {
            return Ok(());
        }
        if is_group {
            self.begin_group().await?;
        }
        if let Some(copy) = CopyStatement::parse(sql)? {
            self.copy(&copy, start).await
        } else if let Some(cursor) = CursorStatement::parse(sql)? {
            self.cursor(&cursor, sql, start).await
        } else {
            self.run_one(sql, start).await
        }
    }

    /// Counts the statements in a text.
    pub(super) fn count(&self, text: &str) -> Result<usize, Failure> {
        match only_statement(text) {
            Some(_) => Ok(1),
            None => Ok(self.split(text)?.len()),
        }
    }

    fn split(&self, text: &str) -> Result<Vec<Statement>, Failure> {
        if let Some(sql) = only_statement(text) {
            return Ok(vec![Statement { text: sql.to_owned(), line: 1, complete: true }]);
        }
        let failed = |error| Failure::from(error_fields(&error, text, 0));
        let mut splitter = Splitter::for_session(&self.session);
        let mut statements = splitter.push(text).map_err(failed)?;
        statements.extend(splitter.finish().map_err(failed)?);
        Ok(statements)
    }

    /// Runs a query or a statement that changes something.
    async fn run_one(&mut self, sql: &str, start: usize) -> Result<(), Failure> {
        let Self { client, session, .. } = self;
        let failed = |error| error_fields(&error, sql, start);
        let mut result = client.unless_ended(session.run(sql)).await?.map_err(failed)?;
        let has_rows = !result.is_told_by_tag();
        let schema = Arc::clone(result.schema());
        if has_rows {
            let columns = RowColumns { schema: &schema, origins: result.origins() };
            row_description(columns, &[], client.output());
        }
        while let Some(batch) = client.unless_ended(result.next()).await?.map_err(failed)? {
            if has_rows {
                send_rows(client, &batch, &schema, &[]).await?;
            }
        }
        complete(client, session, &result.tag());
        Ok(())
    }
}

/// The statement of a text that clearly contains only one, without tokenizing it.
fn only_statement(text: &str) -> Option<&str> {
    let text = text.trim();
    let sql = text.strip_suffix(';').unwrap_or(text).trim_end();
    let is_plain = sql.starts_with(|it: char| it.is_ascii_alphabetic()) && !sql.contains(';');
    is_plain.then_some(sql)
}

/// Sends the rows of a batch whose columns were described by `schema`, except the last ones, which wait for more.
pub(super) async fn send_rows(
    client: &mut Client,
    batch: &RecordBatch,
    schema: &Schema,
    formats: &[i16],
) -> Result<(), Failure> {
    if batch.num_rows() <= ROWS {
        write_rows(batch, schema, formats, client.output())?;
        return client.send_much().await;
    }
    for start in (0..batch.num_rows()).step_by(ROWS) {
        let rows = batch.slice(start, ROWS.min(batch.num_rows() - start));
        write_rows(&rows, schema, formats, client.output())?;
        client.send_much().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::only_statement;

    #[test]
    fn single_statements_are_recognized_without_tokens() {
        assert_eq!(only_statement(" SELECT 1 ; "), Some("SELECT 1"));
        assert_eq!(only_statement("SELECT 'a'"), Some("SELECT 'a'"));
        for text in ["", ";", "SELECT 1; SELECT 2", "SELECT ';'", "-- SELECT 1", "SELECT 1;;"] {
            assert_eq!(only_statement(text), None, "{text}");
        }
    }
}
