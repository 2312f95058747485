//! What the server tells its operator: messages, statements that took long, and who did what.
//!
//! | log | goes to | what |
//! |---|---|---|
//! | messages | stderr, as text or JSON lines | listening, stopping, what was read anew, what went wrong |
//! | [`slow`] | a file or stdout, JSON lines | statements that took at least so long |
//! | [`audit`] | a file or stdout, JSON lines | log-ins and log-outs, definitions, grants, roles, backups, KILL |
//!
//! Files are opened for appending, for their owner alone, and opened anew at SIGHUP, so that logrotate can rename them.
//! What stands behind the word PASSWORD in a statement is in none of them, and neither are messages of errors, which
//! may quote a statement: errors are told by their SQLSTATE.

mod audit;
mod sink;
mod slow;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atoll_topology::calendar::civil_from_days;
use serde_json::json;

use crate::error::ServerError;
pub(crate) use audit::{AuditEvent, AuditedClient};
use sink::LogSink;
pub(crate) use slow::SlowStatement;

/// Characters of a statement in a log.
const TEXT_MAX: usize = 16 << 10;

const DAY_SECONDS: i64 = 86_400;

/// What is logged, and where.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// The form of messages.
    pub format: LogFormat,
    /// The least important messages that are told.
    pub level: LogLevel,
    /// Where statements go that took at least so long; none where they are not logged.
    pub slow: Option<(Duration, LogTarget)>,
    /// Where it is told who did what; none where it is not.
    pub audit: Option<LogTarget>,
}

/// The form of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people. They have no time: a terminal needs none, and systemd's journal adds its own.
    #[default]
    Text,
    /// A JSON object on each line, with its time.
    Json,
}

/// How important a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something cannot be done.
    Error,
    /// Something is not as it should be; the server goes on.
    #[default]
    Warning,
    /// What the server does, and log-ins that are refused.
    Info,
    /// Connections, and statements that fail.
    Debug,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// To stdout, which the server uses for nothing else.
    Stdout,
    /// To the end of a file.
    File(PathBuf),
}

/// The logs of a server.
#[derive(Debug)]
pub struct Logs {
    format: LogFormat,
    level: LogLevel,
    slow: Option<(Duration, LogSink)>,
    audit: Option<LogSink>,
    /// Whether the last line of a file could not be written: that is told once.
    is_failing: AtomicBool,
}

impl LogLevel {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("-"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Logs {
    /// Opens the files.
    pub(crate) fn open(options: &LogOptions) -> Result<Self, ServerError> {
        let slow = options.slow.as_ref();
        let slow =
            slow.map(|(least, target)| Ok::<_, ServerError>((*least, LogSink::open(target)?)));
        Ok(Self {
            format: options.format,
            level: options.level,
            slow: slow.transpose()?,
            audit: options.audit.as_ref().map(LogSink::open).transpose()?,
            is_failing: AtomicBool::new(false),
        })
    }

    /// Opens the files anew; those that cannot be opened stay as they are.
    pub(crate) fn reopen(&self) -> Result<(), ServerError> {
        let slow = self.slow.as_ref().map_or(Ok(()), |(_, sink)| sink.reopen());
        let audit = self.audit.as_ref().map_or(Ok(()), LogSink::reopen);
        slow.and(audit)
    }

    /// Tells a message on stderr, where it is important enough.
    pub fn say(&self, level: LogLevel, message: impl fmt::Display) {
        if level > self.level {
            return;
        }
        let line = match (self.format, level) {
            (LogFormat::Json, _) => {
                let (time, message) = (timestamp(SystemTime::now()), message.to_string());
                json!({ "time": time, "level": level.name(), "message": message }).to_string()
            }
            (LogFormat::Text, LogLevel::Info) => message.to_string(),
            (LogFormat::Text, _) => format!("{}: {message}", level.name()),
        };
        // Where stderr is closed there is nowhere left to say so.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Writes a line to a log, or tells once that it cannot.
    fn write(&self, sink: &LogSink, line: &serde_json::Value) {
        match sink.write(&line.to_string()) {
            Ok(()) => self.is_failing.store(false, Ordering::Relaxed),
            Err(error) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                let message =
                    format!("{} cannot be written: {error}; lines are lost", sink.target());
                self.say(LogLevel::Error, message);
            }
            Err(_) => {}
        }
    }
}

/// A moment as RFC 3339 writes it in UTC, to the millisecond.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let (year, month, day) = civil_from_days(seconds / DAY_SECONDS);
    let second = seconds % DAY_SECONDS;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_470_061_007);
        assert_eq!(timestamp(time), "2026-11-23T21:41:01.007Z");
        assert_eq!(timestamp(UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }
}
