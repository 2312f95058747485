//! Traces of statements for a collector of OpenTelemetry, by OTLP over HTTP or HTTPS as JSON.
//!
//! ```text
//! a statement ends ──▶ queue ──▶ task: batches ──▶ POST /v1/traces
//!                        └─ full: the statement is not told of, and goes on
//! ```
//!
//! A statement is a span, with its steps and its operators as spans below it; one whose text has a comment such as
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

/// Statements that wait to be sent.
const WAITING_MAX: usize = 4096;

/// Statements that are sent at once.
const BATCH_MAX: usize = 512;

/// How long a statement waits for others to be sent with, and how long the collector may take.
const BATCH_WAIT: Duration = Duration::from_millis(500);
const SEND_MAX: Duration = Duration::from_secs(10);

/// How long the last ones may take when the server stops.
const LAST_MAX: Duration = Duration::from_secs(2);

/// What the task is told.
enum Told {
    Statement(Box<(StatementInfo, StatementSteps)>),
    /// What has come before is to be sent now.
    Flush(oneshot::Sender<()>),
}

/// Sends the spans of statements to a collector.
#[derive(Debug)]
pub(crate) struct Traces(mpsc::Sender<Told>);

impl Traces {
    /// Tells a collector of the statements of a database from now on.
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

    /// Sends what is left, for a short time.
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
    // What went wrong last, so that it is told of once.
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
                format_args!("traces of {count} statements are lost: {at}: {error}"),
            ),
            None if count > 0 => logs.say(
                LogLevel::Warning,
                format_args!("traces of {count} statements are lost: {at} is too slow for them"),
            ),
            _ => {}
        }
        if failed.is_some() || !statements.is_empty() {
            failing = failed;
        }
        for done in flushed {
            // Who asked waits no longer than it can.
            let _ = done.send(());
        }
    }
}
