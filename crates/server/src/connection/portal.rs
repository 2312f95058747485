//! Prepared statements and portals: statements with their values, and how far they are.

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

/// A statement that a client prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) kind: PreparedKind,
    /// Types of the parameters as the client knows them, by PostgreSQL's numbers.
    pub(super) types: Vec<u32>,
}

/// What a prepared text is.
#[derive(Debug)]
pub(super) enum PreparedKind {
    /// There is nothing in it.
    Empty,
    /// Rows to or from the client.
    Copy(CopyStatement),
    /// FETCH, MOVE or CLOSE.
    Cursor(CursorStatement),
    /// A query that runs under the name of a cursor, which may hold beyond its transaction.
    Declare { name: String, holds: bool, query: Arc<Prepared> },
    /// Anything else.
    Statement(Box<PreparedStatement>),
}

impl Prepared {
    /// The statement that takes parameters, if one is there.
    pub(super) fn statement(&self) -> Option<&PreparedStatement> {
        match &self.kind {
            PreparedKind::Statement(statement) => Some(statement),
            PreparedKind::Declare { query, .. } => query.statement(),
            PreparedKind::Empty | PreparedKind::Copy(_) | PreparedKind::Cursor(_) => None,
        }
    }

    /// The columns of the rows that it gives by itself.
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

/// A statement with its values.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) values: Vec<ScalarValue>,
    /// The form of each column of the result.
    pub(super) formats: Vec<i16>,
    pub(super) state: PortalState,
    /// Whether it stays when its transaction is committed, as a cursor WITH HOLD does.
    pub(super) holds: bool,
    /// Whether that transaction is committed, or there was none.
    pub(super) is_committed: bool,
}

/// How far a portal is.
#[derive(Debug)]
pub(super) enum PortalState {
    /// It has not begun.
    Bound,
    /// It gives rows.
    Running(Box<PortalRows>),
    /// It has given all its rows; what is told of no more of them.
    Exhausted(String),
    /// It has done what it does, or failed.
    Done,
}

/// The rows of a portal that has begun.
#[derive(Debug)]
pub(super) struct PortalRows {
    pub(super) result: QueryResult,
    /// The columns as the client was told of them.
    columns: SchemaRef,
    /// What is left of the last batch.
    rest: Option<RecordBatch>,
}

impl PortalRows {
    pub(super) fn new(result: QueryResult) -> Self {
        let columns = Arc::clone(result.schema());
        Self { result, columns, rest: None }
    }

    /// The rows of a statement, in the types that were told of it.
    ///
    /// # Errors
    /// When its table was altered since, so that a client could not read them.
    pub(super) fn of(
        result: QueryResult,
        prepared: &Prepared,
        formats: &[i16],
    ) -> Result<Self, Failure> {
        let mut rows = Self::new(result);
        if let PreparedKind::Statement(statement) = &prepared.kind
            && let Some(told) = statement.columns()
            && !rows.result.is_told_by_tag()
        {
            if !are_read(told, &rows.columns, formats) {
                let message = "cached plan must not change result type";
                // asyncpg and pgjdbc prepare the statement anew when they see this name.
                let routine = Some(Routine::RevalidateCachedQuery);
                return Err(ErrorFields { routine, ..ErrorFields::error("0A000", message) }.into());
            }
            rows.columns = Arc::clone(told);
        }
        Ok(rows)
    }

    /// What is told of so many rows at the end: PostgreSQL counts those of the last portion.
    pub(super) fn tag(&self, count: usize) -> String {
        let tag = self.result.tag();
        match tag.rsplit_once(' ') {
            Some((words, all)) if all.parse::<u64>().is_ok() => format!("{words} {count}"),
            _ => tag,
        }
    }

    /// Sends at most so many rows in these forms; how many there were. Where no forms are told they are passed over.
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

/// Whether rows of these columns are read by a client that was told of others.
fn are_read(told: &Schema, sent: &Schema, formats: &[i16]) -> bool {
    let is_same = |(at, (told, sent)): (usize, (&FieldRef, &FieldRef))| {
        let oid = |field: &Field| PgType::of(field.data_type()).oid;
        Format::of(formats, at) == Format::Text || oid(told) == oid(sent)
    };
    let columns = told.fields().iter().zip(sent.fields()).enumerate();
    told.fields().len() == sent.fields().len() && columns.into_iter().all(is_same)
}
