//! Prepared statements, and portals: bound statements and their progress.

use std::sync::Arc;

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{PgType, PreparedStatement, QueryResult};

use super::Client;
use super::cursor_statement::CursorStatement;
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
    /// DECLARE: a query that runs as a named cursor, which may outlive its transaction.
    Declare { name: String, holds: bool, query: Arc<Prepared> },
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
    /// Whether it outlives its transaction, as a cursor WITH HOLD does.
    pub(super) holds: bool,
    /// Whether that transaction was committed, or there was none.
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
}

impl PortalRows {
    pub(super) fn new(result: QueryResult) -> Self {
        let columns = Arc::clone(result.schema());
        Self { result, columns, rest: None }
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
            let next = match self.rest.take() {
                Some(rest) => Ok(Some(rest)),
                None => client.unless_ended(self.result.next()).await?,
            };
            let Some(batch) = next.map_err(|error| error_fields(&error, sql, 0))? else { break };
            let (count, all) = (left.min(batch.num_rows()), batch.num_rows());
            let batch = if count < all {
                self.rest = Some(batch.slice(count, all - count));
                batch.slice(0, count)
            } else {
                batch
            };
            if let Some(formats) = formats {
                send_rows(client, &batch, &self.columns, formats).await?;
            }
            left -= count;
        }
        Ok(most - left)
    }
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
