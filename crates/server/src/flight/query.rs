//! Rows on their way to a client: from planned statements that run when fetched, or from memory.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Context;
use std::time::Duration;

use arrow_flight::FlightData;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoder, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::arrow::datatypes::SchemaRef;
use atoll_sql::{PreparedStatement, QueryResult, SqlError};
use futures::stream::try_unfold;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc::{Sender, channel};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::connection::{FlightConnection, OpenRequest};
use super::guard::panicked;
use super::handles::Secret;
use super::parameters::{ParameterRows, Parameters};
use super::rows::{MessageStream, pieces, sent_batch};
use super::session::{FlightSession, RunningStatement};
use crate::error_fields::error_fields;
use crate::log_ins::LogInKey;
use crate::wire::ErrorFields;

/// How long a statement waits for its rows to be fetched.
pub(super) const TICKET_LASTS: Duration = Duration::from_secs(300);

/// Messages in the queue, at most; the query waits when it is full.
const MESSAGES: usize = 2;

/// Rows that wait to be fetched.
pub(super) struct Waiting {
    pub(super) session: Arc<FlightSession>,
    pub(super) sql: Arc<str>,
    /// The columns as they are sent.
    pub(super) schema: SchemaRef,
    pub(super) rows: WaitingRows,
}

/// The source of the rows.
pub(super) enum WaitingRows {
    /// A statement that runs when they are fetched.
    Planned(Arc<PreparedStatement>, Parameters),
    /// A batch in memory.
    Ready(Vec<RecordBatch>),
}

/// A statement whose rows are being fetched, known by its ticket until it ends.
pub(super) struct Fetched {
    pub(super) of: LogInKey,
    pub(super) connection: Arc<FlightConnection>,
    pub(super) secret: Secret,
}

impl Fetched {
    /// Running; the token cancels it.
    fn runs(&self, cancelled: CancellationToken) {
        self.connection.running.keep_as(self.secret, self.of, cancelled);
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        self.connection.running.forget(&self.secret);
    }
}

/// The pending rows as a stream, which a task reads and encodes. The request counts as open until all of them are sent.
pub(super) fn fetch(
    waiting: Waiting,
    fetched: Option<Fetched>,
    open: OpenRequest,
) -> Result<MessageStream, ErrorFields> {
    let running = match &waiting.rows {
        WaitingRows::Planned(..) => Some(waiting.session.begin(&waiting.sql)?),
        WaitingRows::Ready(_) => None,
    };
    if let (Some(fetched), Some(running)) = (&fetched, &running) {
        fetched.runs(running.cancelled.clone());
    }
    let (sender, mut messages) = channel(MESSAGES);
    tokio::spawn(async move {
        send(waiting, running, &sender).await;
        drop(fetched);
    });
    let next = move |context: &mut Context<'_>| {
        let _open = &open;
        messages.poll_recv(context)
    };
    Ok(futures::stream::poll_fn(next).boxed())
}

/// Sends all rows, and the error if the statement fails. Stops when the client disconnects.
async fn send(
    waiting: Waiting,
    running: Option<RunningStatement>,
    sender: &Sender<Result<FlightData, Status>>,
) {
    let session = Arc::clone(&waiting.session);
    // What a statement does is unknown until it has begun.
    let only_reads = Arc::new(AtomicBool::new(running.is_none()));
    let count = running.as_ref().map_or_else(Arc::default, |running| Arc::clone(&running.rows));
    let watched = Watched { only_reads: Arc::clone(&only_reads), count };
    let sending = send_all(waiting, watched, sender);
    // A task that ended silently would look like the end of the rows.
    let sending = AssertUnwindSafe(sending).catch_unwind();
    let sending = sending.map(|sent| sent.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
    let sent = tokio::select! {
        biased;
        () = sender.closed() => None,
        sent = unless_ended(running.as_ref(), sending) => Some(sent),
    };
    let end = |error: Option<&ErrorFields>| running.map(|running| running.end(error));
    match sent {
        Some(Ok(())) => drop(end(None)),
        Some(Err(error)) => {
            end(Some(&error));
            // The client may be gone.
            let _ = sender.send(Err(error.into())).await;
        }
        // A query may be abandoned; a write may be incomplete.
        None if !only_reads.load(Ordering::Acquire) => session.engine.fail_transaction(),
        None => {}
    }
}

async fn unless_ended(
    running: Option<&RunningStatement>,
    sending: impl Future<Output = Result<(), ErrorFields>>,
) -> Result<(), ErrorFields> {
    match running {
        Some(running) => running.unless_ended(sending).await,
        None => sending.await,
    }
}

/// The state of a statement while its rows are sent.
struct Watched {
    /// Cancelled once the statement is known to be read-only.
    only_reads: Arc<AtomicBool>,
    /// Its rows so far.
    count: Arc<AtomicU64>,
}

async fn send_all(
    waiting: Waiting,
    watched: Watched,
    sender: &Sender<Result<FlightData, Status>>,
) -> Result<(), ErrorFields> {
    let mut messages = encoded(waiting, watched);
    while let Some(message) = messages.next().await {
        if sender.send(Ok(message.map_err(of_flight)?)).await.is_err() {
            // The client is gone, which the caller notices too.
            return std::future::pending().await;
        }
    }
    Ok(())
}

/// The rows as messages.
fn encoded(waiting: Waiting, watched: Watched) -> FlightDataEncoder {
    let Waiting { sql, schema, rows, .. } = waiting;
    let encoder = FlightDataEncoderBuilder::new()
        .with_schema(Arc::clone(&schema))
        // The batches are already cut and their dictionaries decoded.
        .with_max_flight_data_size(usize::MAX)
        .with_dictionary_handling(DictionaryHandling::Resend);
    let (pieces, source) = match rows {
        WaitingRows::Planned(statement, parameters) => {
            (VecDeque::new(), Some((statement, parameters.rows())))
        }
        WaitingRows::Ready(rows) => (rows.into_iter().flat_map(pieces).collect(), None),
    };
    let rows = SentRows { schema, sql, source, result: None, pieces, watched };
    encoder.build(try_unfold(rows, SentRows::next))
}

/// Rows of a statement that runs for one row of parameters after the other.
struct SentRows {
    schema: SchemaRef,
    sql: Arc<str>,
    /// The statement with the remaining parameters.
    source: Option<(Arc<PreparedStatement>, ParameterRows)>,
    result: Option<QueryResult>,
    /// The current rows.
    pieces: VecDeque<RecordBatch>,
    watched: Watched,
}

impl SentRows {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>, FlightError> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Ok(Some((sent_batch(&self.schema, &piece)?, self)));
            }
            if let Some(result) = &mut self.result {
                let next = result.next().await.map_err(|error| of_sql(&error, &self.sql))?;
                match next {
                    Some(batch) => {
                        let rows = batch.num_rows() as u64;
                        self.watched.count.fetch_add(rows, Ordering::Relaxed);
                        self.pieces = pieces(batch);
                    }
                    None => self.result = None,
                }
                continue;
            }
            let Some((statement, parameters)) = &mut self.source else { return Ok(None) };
            let Some(values) = parameters.next() else { return Ok(None) };
            let values = values.map_err(RowsError::flight)?;
            let result = statement.execute(&values).await;
            let result = result.map_err(|error| of_sql(&error, &self.sql))?;
            let only_reads = result.tag().starts_with("SELECT");
            self.watched.only_reads.store(only_reads, Ordering::Release);
            self.result = Some(result);
        }
    }
}

/// A statement's error, passed through the encoder.
#[derive(Debug)]
struct RowsError(ErrorFields);

impl RowsError {
    fn flight(error: ErrorFields) -> FlightError {
        FlightError::ExternalError(Box::new(Self(error)))
    }
}

impl fmt::Display for RowsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for RowsError {}

fn of_sql(error: &SqlError, sql: &str) -> FlightError {
    RowsError::flight(error_fields(error, sql, 0))
}

fn of_flight(error: FlightError) -> ErrorFields {
    let other = |message| ErrorFields::error("XX000", format!("cannot send rows: {message}"));
    match error {
        FlightError::ExternalError(error) => match error.downcast::<RowsError>() {
            Ok(error) => error.0,
            Err(error) => other(error.to_string()),
        },
        error => other(error.to_string()),
    }
}
