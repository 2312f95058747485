//! The log of slow statements.

use std::time::{Duration, SystemTime};

use atoll_sql::activity::{ActiveSession, without_passwords};
use serde_json::json;

use super::{Logs, TEXT_MAX, timestamp};

/// A statement that has ended, for the log.
#[derive(Debug)]
pub(crate) struct SlowStatement<'a> {
    pub(crate) took: Duration,
    /// Rows that it returned or changed.
    pub(crate) rows: u64,
    /// The SQLSTATE of its error.
    pub(crate) error: Option<&'a str>,
    pub(crate) statement: &'a str,
}

impl Logs {
    /// The text to keep until the statement ends; None if slow statements are not logged.
    pub(crate) fn slow_text(&self, statement: &str) -> Option<Box<str>> {
        self.slow.as_ref().map(|_| without_passwords(statement, TEXT_MAX).into())
    }

    /// Logs a statement if it was slow.
    pub(crate) fn slow(&self, active: &ActiveSession, ended: &SlowStatement<'_>) {
        let Some((least, sink)) = &self.slow else { return };
        if ended.took < *least {
            return;
        }
        let client = active.client();
        let microseconds = ended.took.as_micros() as f64;
        self.write(
            sink,
            &json!({
                "time": timestamp(SystemTime::now()),
                "session": active.number(),
                "role": client.user,
                "application": client.application,
                "address": client.address,
                "duration_ms": microseconds / 1000.0,
                "rows": ended.rows,
                "result": ended.error.unwrap_or("ok"),
                "statement": without_passwords(ended.statement, TEXT_MAX),
            }),
        );
    }
}
