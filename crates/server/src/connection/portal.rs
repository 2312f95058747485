//! Prepared statements, and portals: bound statements and their progress.

use std::sync::Arc;

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{KeptRows, PgType, PreparedStatement, QueryResult, SqlError};

use super::Client;
use super::cursor_statement::{CursorMotion, CursorOptions, CursorStatement};
use super::failure::Failure;
use super::simple::send_rows;
use crate::copy::CopyStatement;
use crate::error_fields::error_fields;
use crate::value::{Format, RowColumns};
use crate::wire::{ErrorFields, Routine};

/// A client's prepared statement.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) kind: PreparedKind,
    /// The client's types of the parameters, as OIDs.
    pub(super) types: Vec<u32>,
}

/// The kinds of prepared text.
#[derive(Debug)]
pub(super) enum PreparedKind {
    /// An empty text.
    Empty,
    /// COPY to or from the client.
    Copy(CopyStatement),
    /// FETCH, MOVE or CLOSE.
    Cursor(CursorStatement),
    /// DECLARE: a query that runs as a named cursor.
    Declare { name: String, options: CursorOptions, query: Arc<Prepared> },
    /// Anything else.
    Statement(Box<PreparedStatement>),
}

impl Prepared {
    /// The statement that takes parameters, if there is one.
    pub(super) fn statement(&self) -> Option<&PreparedStatement> {
        match &self.kind {
            PreparedKind::Statement(statement) => Some(statement),
            PreparedKind::Declare { query, .. } => query.statement(),
            PreparedKind::Empty | PreparedKind::Copy(_) | PreparedKind::Cursor(_) => None,
        }
    }

    /// The columns of its rows, unless they are a cursor's.
    pub(super) fn columns(&self) -> Option<RowColumns<'_>> {
        match &self.kind {
            PreparedKind::Statement(statement) => {
                let (schema, origins) = (statement.columns()?, statement.origins());
                Some(RowColumns { schema, origins })
            }
            _ => None,
        }
    }
}

/// A statement with bound values.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<ScalarValue>,
    /// The format of each result column.
    pub(super) formats: Vec<i16>,
    pub(super) state: PortalState,
    /// The options of a cursor.
    pub(super) options: CursorOptions,
    /// Whether its transaction was committed, or there was none.
    pub(super) is_committed: bool,
}

/// The progress of a portal.
#[derive(Debug)]
pub(super) enum PortalState {
    /// Not started.
    Bound,
    /// Returning rows.
    Running(Box<PortalRows>),
    /// All rows are returned; holds the tag for further requests.
    Exhausted(String),
    /// Completed or failed.
    Done,
}

/// The rows of a started portal.
#[derive(Debug)]
pub(super) struct PortalRows {
    pub(super) result: QueryResult,
    /// The columns as they were described to the client.
    columns: SchemaRef,
    /// The rest of the last batch.
    rest: Option<RecordBatch>,
    /// The rows that were read, if the cursor scrolls.
    kept: Option<KeptRows>,
    /// The number of rows up to the current one.
    position: usize,
    /// Whether the cursor is behind the last row.
    is_past_end: bool,
}

impl PortalRows {
    pub(super) fn new(result: QueryResult) -> Self {
        let columns = Arc::clone(result.schema());
        Self { result, columns, rest: None, kept: None, position: 0, is_past_end: false }
    }

    /// Keeps the rows that are read, so that the cursor can scroll.
    pub(super) fn keep(&mut self, kept: KeptRows) {
        self.kept = Some(kept);
    }

    /// The rows of a statement, in the types that were described.
    ///
    /// # Errors
    /// If its table was altered since, so that the client could not read them.
    pub(super) fn try_new(
        result: QueryResult,
        prepared: &Prepared,
        formats: &[i16],
    ) -> Result<Self, Failure> {
        let mut rows = Self::new(result);
        if let PreparedKind::Statement(statement) = &prepared.kind
            && let Some(told) = statement.columns()
            && !rows.result.is_told_by_tag()
        {
            check_columns(told, &rows.columns, formats)?;
            rows.columns = Arc::clone(told);
        }
        Ok(rows)
    }

    /// Whether a motion can return rows yet.
    pub(super) fn has_more(&self) -> bool {
        self.kept.is_some() || !self.is_past_end
    }

    /// The tag for this many rows: PostgreSQL counts those of the last portion.
    pub(super) fn tag(&self, count: usize) -> String {
        let tag = self.result.tag();
        match tag.rsplit_once(' ') {
            Some((words, all)) if all.parse::<u64>().is_ok() => format!("{words} {count}"),
            _ => tag,
        }
    }

    /// Sends at most this many rows in these formats; returns their number. Without formats, they are skipped.
    pub(super) async fn send(
        &mut self,
        client: &mut Client,
        sql: &str,
        most: usize,
        formats: Option<&[i16]>,
    ) -> Result<usize, Failure> {
        let mut left = most;
        while left > 0 {
            let Some(batch) = self.next_rows(client, sql, left).await? else { break };
            left -= batch.num_rows();
            self.send_batch(client, Some(&batch), formats).await?;
        }
        Ok(most - left)
    }

    /// Returns the rows of a FETCH in these formats, or skips those of a MOVE; returns their number.
    pub(super) async fn fetch(
        &mut self,
        client: &mut Client,
        sql: &str,
        motion: CursorMotion,
        formats: Option<&[i16]>,
    ) -> Result<usize, Failure> {
        use CursorMotion::{Absolute, Backward, Forward, Relative};
        match motion {
            Forward(0) | Backward(0) | Relative(0) => self.send_current(client, formats).await,
            Forward(count) => self.send(client, sql, count, formats).await,
            Backward(count) => self.send_back(client, count, formats).await,
            Relative(rows @ 1..) => {
                self.send(client, sql, rows as usize - 1, None).await?;
                self.send(client, sql, 1, formats).await
            }
            Relative(rows) => {
                self.send_back(client, rows.unsigned_abs() as usize - 1, None).await?;
                self.send_back(client, 1, formats).await
            }
            Absolute(row @ 0..) => self.send_row(client, sql, row as usize, formats).await,
            Absolute(row) => {
                self.scrollable()?;
                self.send(client, sql, usize::MAX, None).await?;
                self.send_back(client, row.unsigned_abs() as usize - 1, None).await?;
                self.send_back(client, 1, formats).await
            }
        }
    }

    /// Goes to the row with this number and sends it; 0 is before the first one.
    async fn send_row(
        &mut self,
        client: &mut Client,
        sql: &str,
        row: usize,
        formats: Option<&[i16]>,
    ) -> Result<usize, Failure> {
        let here = self.position + usize::from(self.is_past_end);
        if row > here {
            self.send(client, sql, row - here - 1, None).await?;
        } else if here > 0 {
            self.scrollable()?;
            (self.position, self.is_past_end) = (row.saturating_sub(1), false);
        }
        self.send(client, sql, row.min(1), formats).await
    }

    /// Sends the row that was returned last, if the cursor is still there.
    async fn send_current(
        &mut self,
        client: &mut Client,
        formats: Option<&[i16]>,
    ) -> Result<usize, Failure> {
        if self.position == 0 || self.is_past_end {
            return Ok(0);
        }
        if formats.is_some() {
            let current = self.scrollable()?.after(self.position - 1, 1);
            self.send_batch(client, current.as_ref(), formats).await?;
        }
        Ok(1)
    }

    /// Sends the rows before the current one, at most this many, the nearest first; returns their number.
    async fn send_back(
        &mut self,
        client: &mut Client,
        most: usize,
        formats: Option<&[i16]>,
    ) -> Result<usize, Failure> {
        let kept = self.scrollable()?;
        if most == 0 {
            return Ok(0);
        }
        let end = if self.is_past_end { self.position } else { self.position.saturating_sub(1) };
        let count = most.min(end);
        let mut sent = 0;
        while formats.is_some() && sent < count {
            let batch = kept.before(end - sent, count - sent);
            let batch = batch.map_err(|error| error_fields(&error, "", 0))?;
            sent += batch.as_ref().map_or(count, RecordBatch::num_rows);
            self.send_batch(client, batch.as_ref(), formats).await?;
        }
        // Fewer rows than asked for lead to the place before the first one.
        self.position = if count == most { end + 1 - count } else { 0 };
        self.is_past_end = false;
        Ok(count)
    }

    /// The next rows, at most this many; None after the last.
    async fn next_rows(
        &mut self,
        client: &mut Client,
        sql: &str,
        most: usize,
    ) -> Result<Option<RecordBatch>, Failure> {
        let kept = self.kept.as_ref().and_then(|kept| kept.after(self.position, most));
        let next = match kept.or_else(|| self.rest.take()) {
            Some(batch) => Some(batch),
            None => self.read(client, sql).await?,
        };
        let Some(batch) = next else {
            self.is_past_end = true;
            return Ok(None);
        };
        let (count, all) = (most.min(batch.num_rows()), batch.num_rows());
        if count < all && self.kept.is_none() {
            self.rest = Some(batch.slice(count, all - count));
        }
        self.position += count;
        Ok(Some(batch.slice(0, count)))
    }

    /// Reads the next batch of the result and keeps it if the cursor scrolls.
    async fn read(
        &mut self,
        client: &mut Client,
        sql: &str,
    ) -> Result<Option<RecordBatch>, Failure> {
        let failed = |error: SqlError| Failure::from(error_fields(&error, sql, 0));
        let batch = client.unless_ended(self.result.next()).await?.map_err(failed)?;
        if let (Some(kept), Some(batch)) = (&mut self.kept, &batch) {
            kept.push(batch.clone()).map_err(failed)?;
        }
        Ok(batch)
    }

    async fn send_batch(
        &self,
        client: &mut Client,
        batch: Option<&RecordBatch>,
        formats: Option<&[i16]>,
    ) -> Result<(), Failure> {
        match (batch, formats) {
            (Some(batch), Some(formats)) => send_rows(client, batch, &self.columns, formats).await,
            _ => Ok(()),
        }
    }

    fn scrollable(&self) -> Result<&KeptRows, Failure> {
        self.kept.as_ref().ok_or_else(|| forward_only().into())
    }
}

/// The error for a direction that only a scrollable cursor has.
pub(super) fn forward_only() -> ErrorFields {
    let error = ErrorFields::error("55000", "cursor can only scan forward");
    error.hint("Declare it with SCROLL option to enable backward scan.")
}

/// Refuses rows of other columns than those that were described.
pub(super) fn check_columns(told: &Schema, now: &Schema, formats: &[i16]) -> Result<(), Failure> {
    if are_read(told, now, formats) {
        return Ok(());
    }
    let message = "cached plan must not change result type";
    // asyncpg and pgjdbc prepare the statement anew when they see this name.
    let routine = Some(Routine::RevalidateCachedQuery);
    Err(ErrorFields { routine, ..ErrorFields::error("0A000", message) }.into())
}

/// Whether a client can read rows of these columns if others were described.
fn are_read(told: &Schema, sent: &Schema, formats: &[i16]) -> bool {
    let is_same = |(at, (told, sent)): (usize, (&FieldRef, &FieldRef))| {
        let oid = |field: &Field| PgType::from_data_type(field.data_type()).oid;
        Format::for_column(formats, at) == Format::Text || oid(told) == oid(sent)
    };
    let columns = told.fields().iter().zip(sent.fields()).enumerate();
    told.fields().len() == sent.fields().len() && columns.into_iter().all(is_same)
}
