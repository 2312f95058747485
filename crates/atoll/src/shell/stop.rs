//! Why a shell stopped before the next statement.

use std::io;

use atoll_sql::SqlError;

use atoll_tools::exit::{CommandError, Exit};

/// Why a statement, a command or a script ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// An error.
    Failed(StatementFailure),
    /// Ctrl-C.
    Interrupted,
    /// `.quit`, or the reader of the results went away.
    Left,
}

/// An error, and its position.
#[derive(Debug)]
pub(super) struct StatementFailure {
    message: String,
    /// Line of the statement with the error, from 1.
    line: u64,
    /// Whether the message has the position.
    is_located: bool,
}

impl Stop {
    /// A failure of the statement or command as a whole.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(StatementFailure { message: message.into(), line: 1, is_located: false })
    }

    /// A failure inside a statement that starts on line `first` of its source; `above` lines were put in front of it.
    pub(super) fn sql(mut error: SqlError, first: u64, above: u64) -> Self {
        let mut line = 1;
        if let Some(place) = &mut error.place {
            line = place.line.saturating_sub(above).max(1);
            place.line = line + first - 1;
        }
        Self::Failed(StatementFailure { message: error.to_string(), line, is_located: false })
    }

    /// The same with a name in its message replaced.
    pub(super) fn naming(self, name: &str, other: &str) -> Self {
        match self {
            Self::Failed(failure) => {
                let quoted = format!("'{name}'");
                let message = failure.message.replace(&quoted, other).replace(name, other);
                Self::Failed(StatementFailure { message, ..failure })
            }
            stop => stop,
        }
    }

    /// The same with its position in a source, for input that started on `line` there. The innermost source is the one
    /// reported.
    pub(super) fn at(self, source: &str, line: u64) -> Self {
        match self {
            Self::Failed(failure) if !failure.is_located => {
                let line = line + failure.line - 1;
                let message = format!("{source}:{line}: {}", failure.message);
                Self::Failed(StatementFailure { message, line: 1, is_located: true })
            }
            stop => stop,
        }
    }
}

impl StatementFailure {
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

/// An output error; if the reader went away, the shell just stops.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Left,
            _ => Self::failed(format!("cannot write the result: {error}")),
        }
    }
}

impl From<Stop> for CommandError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(failure) => Self::with(Exit::Statement, failure.message),
            Stop::Interrupted => Self::quietly(Exit::Interrupted),
            Stop::Left => Self::quietly(Exit::Done),
        }
    }
}
