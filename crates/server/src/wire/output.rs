//! Messages to clients, appended to a buffer.

use atoll_sql::arrow::error::ArrowError;
use atoll_sql::temporal::TemporalStyle;
use atoll_sql::{Notification, ViolatedConstraint};

use atoll_sql::{EncodingError, TextEncoding};

/// The output to a client, and how much of it is sent.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// The encoding of the texts.
    pub(crate) encoding: TextEncoding,
    /// How dates, times and intervals are written as text.
    pub(crate) style: TemporalStyle,
}

/// Bytes of the buffer that an idle connection keeps.
const KEPT: usize = 4 << 10;

/// The severity of an error or notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The connection ends.
    Fatal,
    /// The statement ends.
    Error,
    /// The statement continued.
    Warning,
    /// For information.
    Notice,
}

/// The fields of an error or notice.
#[derive(Clone, Debug)]
pub(crate) struct ErrorFields {
    pub(crate) severity: Severity,
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    /// Character of the statement, from 1.
    pub(crate) position: Option<usize>,
    pub(crate) violated: Option<Box<ViolatedConstraint>>,
    /// The source routine, for drivers that identify the error by it.
    pub(crate) routine: Option<Routine>,
}

/// PostgreSQL's function that reports the error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Routine {
    RevalidateCachedQuery,
}

impl ErrorFields {
    /// An error with a message only.
    pub(crate) fn error(state: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, state, message)
    }

    /// An error after which the connection ends.
    pub(crate) fn fatal(state: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Fatal, state, message)
    }

    /// Adds a hint.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn new(severity: Severity, state: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity,
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            violated: None,
            routine: None,
        }
    }
}

impl From<EncodingError> for ErrorFields {
    fn from(error: EncodingError) -> Self {
        Self::error(error.state, error.message)
    }
}

impl From<ArrowError> for ErrorFields {
    fn from(error: ArrowError) -> Self {
        Self::error("XX000", format!("cannot send a column: {error}"))
    }
}

impl Output {
    /// A message of a kind.
    pub(crate) fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        body(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// The messages so far, as a place to go back to.
    pub(crate) fn mark(&self) -> usize {
        self.bytes.len()
    }

    /// Takes back the messages after a place that are not sent.
    pub(crate) fn back_to(&mut self, mark: usize) {
        self.bytes.truncate(mark);
    }

    /// A message without a body.
    pub(crate) fn empty(&mut self, kind: u8) {
        self.message(kind, |_| {});
    }

    /// A one-byte response, without kind and length.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// A setting that is reported to clients.
    pub(crate) fn parameter_status(&mut self, name: &str, value: &str) {
        let encoding = self.encoding;
        self.message(b'S', |body| {
            encoding.write(body, name);
            encoding.write(body, value);
        });
    }

    /// A notification of a session that is listening.
    pub(crate) fn notification(&mut self, notification: &Notification) {
        let encoding = self.encoding;
        self.message(b'A', |body| {
            body.extend_from_slice(&notification.process.to_be_bytes());
            encoding.write(body, &notification.channel);
            encoding.write(body, &notification.payload);
        });
    }

    /// The end of a statement, with its tag.
    pub(crate) fn command_complete(&mut self, tag: &str) {
        let encoding = self.encoding;
        self.message(b'C', |body| encoding.write(body, tag));
    }

    /// Ready for the next messages: `I` outside of a transaction, `T` in one, `E` in a failed one.
    pub(crate) fn ready(&mut self, status: u8) {
        self.message(b'Z', |body| body.push(status));
    }

    /// An error or a notice.
    pub(crate) fn error(&mut self, error: &ErrorFields) {
        let (kind, severity) = match error.severity {
            Severity::Fatal => (b'E', "FATAL"),
            Severity::Error => (b'E', "ERROR"),
            Severity::Warning => (b'N', "WARNING"),
            Severity::Notice => (b'N', "NOTICE"),
        };
        let encoding = self.encoding;
        self.message(kind, |body| {
            let mut field = |code: u8, value: &str| {
                body.push(code);
                encoding.write(body, value);
            };
            field(b'S', severity);
            field(b'V', severity);
            field(b'C', error.state);
            field(b'M', &error.message);
            error.detail.iter().for_each(|detail| field(b'D', detail));
            error.hint.iter().for_each(|hint| field(b'H', hint));
            error.position.iter().for_each(|position| field(b'P', &position.to_string()));
            if let Some(violated) = &error.violated {
                field(b's', &violated.schema);
                field(b't', &violated.table);
                let named = [(b'c', &violated.column), (b'n', &violated.constraint)];
                for (letter, name) in named {
                    name.iter().for_each(|name| field(letter, name));
                }
            }
            error.routine.iter().for_each(|routine| field(b'R', &format!("{routine:?}")));
            body.push(0);
        });
    }

    /// The bytes that are not sent yet.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Marks bytes as sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
    }

    /// Frees the memory of a large buffer that has been sent.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }
}
