//! Runs a request's statements in their own session, with limits on time, rows and bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_sql::activity::{ActiveSession, ClientInfo, Interrupt};
use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::datatypes::Schema;
use atoll_sql::temporal::TemporalStyle;
use atoll_sql::{QueryResult, Session, Splitter, Statement, TransactionState};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::ApiError;
use super::login::Caller;
use crate::connection::{canceled, rows_of_tag, timed_out};
use crate::error_fields::error_fields;
use crate::log::{AuditedClient, SlowStatement};
use crate::shared::Shared;
use crate::value::{plain, text_cells};
use crate::wire::ErrorFields;

/// Rows of a result that are returned, at most.
pub(super) const ROWS_MAX: usize = 1000;

/// Bytes of all values of a response, at most.
const BYTES_MAX: usize = 8 << 20;

/// Bytes of a value, at most.
const VALUE_MAX: usize = 10_000;

/// How long the statements of a request may take.
const TIME_MAX: Duration = Duration::from_secs(600);

/// The console's application name.
const APPLICATION: &str = "console";

/// The session of a request. Dropping it ends its statement, as closing a connection does.
pub(super) struct RequestSession {
    session: Session,
    active: ActiveSession,
    begun: Instant,
    address: String,
    server: Arc<Shared>,
    _place: OwnedSemaphorePermit,
}

impl RequestSession {
    /// Begins the session; `sql` is what other sessions see of it.
    pub(super) fn begin(
        server: &Arc<Shared>,
        caller: &Caller,
        sql: &str,
    ) -> Result<Self, ApiError> {
        let error = |state, message: String| ApiError::from(ErrorFields::error(state, message));
        let place = Arc::clone(&server.places).try_acquire_owned();
        let place = place.map_err(|_| error("53300", "too many connections".to_owned()))?;
        let address = caller.address.to_string();
        let client = ClientInfo {
            user: caller.user.to_string(),
            address: address.clone(),
            application: APPLICATION.to_owned(),
        };
        let secret = getrandom::u32().map_err(|failed| error("58000", failed.to_string()))?;
        let active = server.database.activity().enter(client, secret);
        let session = server.database.session_of(caller.identity(active.number()));
        let session = session.map_err(|failed| error("58000", failed.message().into_owned()))?;
        session.refuse_listen();
        server.begin_as_role(&session);
        active.begin(sql);
        let server = Arc::clone(server);
        Ok(Self { session, active, begun: Instant::now(), address, server, _place: place })
    }

    /// Counts the statements in a text.
    pub(super) fn count(&self, text: &str) -> Result<usize, ErrorFields> {
        Ok(split(&self.session, text)?.len())
    }

    /// Runs all statements of a text. Those before a failed one take effect.
    pub(super) async fn run(
        self,
        text: &str,
        results: &mut Results,
    ) -> Result<Duration, ErrorFields> {
        let ran = tokio::select! {
            biased;
            ran = self.run_all(text, results) => ran,
            interrupt = self.active.interrupted() => Err(match interrupt {
                Interrupt::Cancel => canceled(),
                Interrupt::Terminate => {
                    ErrorFields::error("57P01", "the session was ended by an administrator")
                }
            }),
            () = tokio::time::sleep(TIME_MAX) => Err(timed_out()),
            () = self.server.stopping.cancelled() => {
                Err(ErrorFields::error("57P01", "the server is shutting down"))
            }
        };
        let (took, state) = (self.begun.elapsed(), ran.as_ref().err().map(|error| error.state));
        self.active.end(state);
        self.server.metrics.ended(took, state);
        let ended = SlowStatement { took, rows: results.rows, error: state, statement: text };
        self.server.logs.slow(&self.active, &ended);
        ran.map(|()| took)
    }

    async fn run_all(&self, text: &str, results: &mut Results) -> Result<(), ErrorFields> {
        let session = &self.session;
        let mut searched = 0;
        for Statement { text: sql, .. } in &split(session, text)? {
            let start = text[searched..].find(sql.as_str()).map_or(searched, |at| searched + at);
            searched = start + sql.len();
            let start = text[..start].chars().count();
            let limit = session.statement_timeout().unwrap_or(TIME_MAX);
            let ran = tokio::time::timeout(limit, run_one(session, sql, start, results)).await;
            let ran = ran.map_err(|_| timed_out()).and_then(|ran| ran);
            self.audit(sql, &ran);
            ran?;
        }
        if session.transaction_state() != TransactionState::Idle {
            let undone = session.run("ROLLBACK").await;
            undone.map_err(|error| error_fields(&error, "ROLLBACK", 0))?;
            let told =
                "the open transaction was rolled back: run its COMMIT together with its BEGIN";
            results.all.push(json!({ "tag": "ROLLBACK", "notice": told }));
        }
        Ok(())
    }

    /// Logs a statement if its class is audited.
    fn audit(&self, sql: &str, ran: &Result<(), ErrorFields>) {
        let error = ran.as_ref().err().map(|error| error.state);
        let (role, session) = (&self.session.identity().user, Some(self.active.number()));
        let client = AuditedClient { role, address: &self.address, session };
        self.server.logs.audit_statement(&client, sql, error);
    }
}

/// Results, and their size.
#[derive(Default)]
pub(super) struct Results {
    pub(super) all: Vec<Value>,
    /// Rows that the statements returned or changed.
    rows: u64,
    bytes: usize,
}

/// The statements of a text, split as in a session.
fn split(session: &Session, text: &str) -> Result<Vec<Statement>, ErrorFields> {
    let failed = |error| error_fields(&error, text, 0);
    let mut splitter = Splitter::for_session(session);
    let mut statements = splitter.push(text).map_err(failed)?;
    statements.extend(splitter.finish().map_err(failed)?);
    Ok(statements)
}

/// Runs a statement that begins at character `start`, counted from 0, of the request's text.
async fn run_one(
    session: &Session,
    sql: &str,
    start: usize,
    results: &mut Results,
) -> Result<(), ErrorFields> {
    let begun = Instant::now();
    let failed = |error| {
        session.fail_transaction();
        error_fields(&error, sql, start)
    };
    let mut result = session.run(sql).await.map_err(failed)?;
    let has_rows = !result.is_told_by_tag();
    let mut table = ShownRows::new(session);
    // A read-only statement need not run to completion.
    let only_reads = result.tag().starts_with("SELECT");
    while let Some(batch) = result.next().await.map_err(failed)? {
        let is_whole = !has_rows || table.add(&batch, ROWS_MAX, &mut results.bytes)?;
        if !is_whole && only_reads {
            break;
        }
    }
    results.all.push(shown(&result, has_rows, table, begun.elapsed()));
    results.rows += rows_of_tag(&result.tag());
    Ok(())
}

fn shown(result: &QueryResult, has_rows: bool, table: ShownRows, took: Duration) -> Value {
    let mut shown = json!({ "tag": result.tag(), "seconds": took.as_secs_f64() });
    if has_rows {
        shown["columns"] = columns(result.schema());
        shown["rows"] = table.rows.into();
        shown["more"] = table.more.into();
    }
    shown
}

/// Names and types of columns.
pub(super) fn columns(schema: &Schema) -> Value {
    let column = |field: &Arc<atoll_sql::arrow::datatypes::Field>| {
        let is_number = field.data_type().is_numeric();
        json!({ "name": field.name(), "type": atoll_sql::sql_type(field), "is_number": is_number })
    };
    schema.fields().iter().map(column).collect()
}

/// The first rows of a result.
#[derive(Default)]
pub(super) struct ShownRows {
    /// How dates, times and intervals are shown.
    style: TemporalStyle,
    pub(super) rows: Vec<Value>,
    /// Whether there are more rows.
    pub(super) more: bool,
}

impl ShownRows {
    /// No rows yet of a session.
    pub(super) fn new(session: &Session) -> Self {
        Self { style: session.temporal_style(), ..Self::default() }
    }

    /// Adds rows of a batch up to a limit; returns whether all were added.
    pub(super) fn add(
        &mut self,
        batch: &RecordBatch,
        rows_max: usize,
        bytes: &mut usize,
    ) -> Result<bool, ErrorFields> {
        let failed =
            |error| ErrorFields::error("XX000", format!("cannot format a column: {error}"));
        let room = rows_max.saturating_sub(self.rows.len()).min(batch.num_rows());
        let is_whole = room == batch.num_rows();
        self.more |= !is_whole;
        // Rows beyond the limit are not formatted at all.
        let batch = &batch.slice(0, room);
        let arrays = batch.columns().iter().map(plain);
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, _>>().map_err(failed)?;
        let cells = arrays.iter().map(|array| text_cells(array, self.style));
        let cells = cells.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut text = Vec::new();
        for row in 0..room {
            if *bytes >= BYTES_MAX {
                self.more = true;
                return Ok(false);
            }
            let value = |cells: &crate::value::TextCells<'_>| {
                if cells.is_null(row) {
                    return Value::Null;
                }
                text.clear();
                cells.write(row, &mut text);
                let shown = beginning(&text);
                *bytes += shown.len();
                Value::String(shown)
            };
            self.rows.push(cells.iter().map(value).collect());
        }
        Ok(is_whole)
    }
}

/// A value, truncated if it is long.
fn beginning(text: &[u8]) -> String {
    match text.get(..VALUE_MAX) {
        Some(start) if text.len() > VALUE_MAX => {
            let end = start.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
            format!("{}… ({} bytes)", String::from_utf8_lossy(&start[..end]), text.len())
        }
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(beginning("ä".as_bytes()), "ä");
        let cut = beginning("ä".repeat(VALUE_MAX).as_bytes());
        assert!(cut.ends_with("ä… (20000 bytes)"), "{}", &cut[cut.len() - 30..]);
        let cut = beginning(format!("x{}", "ä".repeat(VALUE_MAX)).as_bytes());
        assert!(cut.ends_with("ä… (20001 bytes)"), "{}", &cut[cut.len() - 30..]);
    }
}
