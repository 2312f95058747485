//! Traces of statements for an OpenTelemetry collector, as OTLP JSON over HTTP or HTTPS.
//!
//! ```text
//! a statement ends ──▶ queue ──▶ task: batches ──▶ POST /v1/traces
//!                        └─ full: the statement is not traced, and goes on
//! ```
//!
//! A statement is a span, with its steps and operators as child spans. A statement with a comment such as
//! `/*traceparent='00-…-…-01'*/` is part of its client's trace.

mod collector;
mod spans;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atoll_sql::StatementSteps;
use atoll_sql::activity::{Activity, StatementInfo};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::log::{LogLevel, Logs};
pub use collector::Collector;
use spans::Spans;

/// Statements in the queue, at most.
const WAITING_MAX: usize = 4096;

/// Statements in a batch, at most.
const BATCH_MAX: usize = 512;

/// How long a statement waits for a batch to fill, and how long the collector may take.
const BATCH_WAIT: Duration = Duration::from_millis(500);
const SEND_MAX: Duration = Duration::from_secs(10);

/// How long the last batches may take when the server stops.
const LAST_MAX: Duration = Duration::from_secs(2);

/// A message to the task.
enum Told {
    Statement(Box<(StatementInfo, StatementSteps)>),
    /// Send everything queued so far.
    Flush(oneshot::Sender<()>),
}

/// Sends the spans of statements to a collector.
#[derive(Debug)]
pub(crate) struct Traces(mpsc::Sender<Told>);

impl Traces {
    /// Starts sending the spans of a database's statements to a collector.
    pub(crate) fn start(collector: Collector, activity: &Activity, logs: Arc<Logs>) -> Self {
        let (sender, told) = mpsc::channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let (tell, losing) = (sender.clone(), Arc::clone(&lost));
        activity.trace(move |statement, steps| {
            if tell.try_send(Told::Statement(Box::new((statement, steps)))).is_err() {
                losing.fetch_add(1, Ordering::Relaxed);
            }
        });
        tokio::spawn(export(collector, told, lost, logs));
        Self(sender)
    }

    /// Sends the remaining spans, within a short time limit.
    pub(crate) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            if self.0.send(Told::Flush(done)).await.is_ok() {
                let _ = is_done.await;
            }
        };
        let _ = timeout(LAST_MAX, flushed).await;
    }
}

async fn export(
    collector: Collector,
    mut told: mpsc::Receiver<Told>,
    lost: Arc<AtomicU64>,
    logs: Arc<Logs>,
) {
    let (mut spans, mut batch) = (Spans::new(), Vec::new());
    // The last error, so that a repeated one is reported once.
    let mut failing: Option<String> = None;
    while told.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if !batch.iter().any(|told| matches!(told, Told::Flush(_))) {
            sleep(BATCH_WAIT).await;
            while batch.len() < BATCH_MAX
                && let Ok(more) = told.try_recv()
            {
                batch.push(more);
            }
        }
        let (mut statements, mut flushed) = (Vec::new(), Vec::new());
        for told in batch.drain(..) {
            match told {
                Told::Statement(statement) => statements.push(*statement),
                Told::Flush(done) => flushed.push(done),
            }
        }
        let failed = match statements.is_empty() {
            true => None,
            false => {
                let sent = timeout(SEND_MAX, collector.send(spans.request(&statements))).await;
                let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                sent.err().map(|error| error.to_string())
            }
        };
        if failed.is_some() {
            lost.fetch_add(statements.len() as u64, Ordering::Relaxed);
        }
        let count = lost.swap(0, Ordering::Relaxed);
        let at = collector.authority();
        match &failed {
            Some(error) if failing.as_ref() != Some(error) => logs.say(
                LogLevel::Warning,
                format_args!("lost the traces of {count} statements: {at}: {error}"),
            ),
            None if count > 0 => logs.say(
                LogLevel::Warning,
                format_args!("lost the traces of {count} statements: {at} is too slow"),
            ),
            _ => {}
        }
        if failed.is_some() || !statements.is_empty() {
            failing = failed;
        }
        for done in flushed {
            // The receiver may have stopped waiting.
            let _ = done.send(());
        }
    }
}
