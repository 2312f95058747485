//! The server's logs for its operator: messages, slow statements, and the audit log.
//!
//! | log | goes to | what |
//! |---|---|---|
//! | messages | stderr, as text or JSON lines | start, stop, reloads, problems |
//! | [`slow`] | a file or stdout, JSON lines | statements that took at least the configured time |
//! | [`audit`] | a file or stdout, JSON lines | log-ins and log-outs, definitions, grants, roles, backups, KILL |
//!
//! Files are opened for appending, readable by their owner only, and reopened at SIGHUP, so that logrotate can rename
//! them. No log contains the value after the word PASSWORD in a statement, nor error messages, which may quote a
//! statement: errors are logged by their SQLSTATE.

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

/// Characters of a statement that a log keeps.
const TEXT_MAX: usize = 16 << 10;

const DAY_SECONDS: i64 = 86_400;

/// Log options.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// The format of messages.
    pub format: LogFormat,
    /// The least important level that is logged.
    pub level: LogLevel,
    /// The destination of slow statements and their minimum time; None turns the log off.
    pub slow: Option<(Duration, LogTarget)>,
    /// The destination of the audit log; None turns it off.
    pub audit: Option<LogTarget>,
}

/// The format of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people, without a time: a terminal needs none, and systemd's journal adds its own.
    #[default]
    Text,
    /// One JSON object per line, with its time.
    Json,
}

/// The level of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is wrong, but the server goes on.
    #[default]
    Warning,
    /// What the server does, and refused log-ins.
    Info,
    /// Connections, and statements that fail.
    Debug,
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// To stdout, which the server uses for nothing else.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}

/// The logs of a server.
#[derive(Debug)]
pub struct Logs {
    format: LogFormat,
    level: LogLevel,
    slow: Option<(Duration, LogSink)>,
    audit: Option<LogSink>,
    /// Whether the last write to a file failed: only the first failure is reported.
    is_failing: AtomicBool,
}

impl LogLevel {
    /// The level's name.
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

    /// Reopens the files; those that cannot be opened stay as they are.
    pub(crate) fn reopen(&self) -> Result<(), ServerError> {
        let slow = self.slow.as_ref().map_or(Ok(()), |(_, sink)| sink.reopen());
        let audit = self.audit.as_ref().map_or(Ok(()), LogSink::reopen);
        slow.and(audit)
    }

    /// Writes a message to stderr if its level is logged.
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
        // If stderr is closed, there is nowhere left to report it.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Writes a line to a log; reports the first failure.
    fn write(&self, sink: &LogSink, line: &serde_json::Value) {
        match sink.write(&line.to_string()) {
            Ok(()) => self.is_failing.store(false, Ordering::Relaxed),
            Err(error) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                let message = format!("cannot write {}: {error}; lines are lost", sink.target());
                self.say(LogLevel::Error, message);
            }
            Err(_) => {}
        }
    }
}

/// A time in RFC 3339 format, UTC, with milliseconds.
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
