//! What a check finds.

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Costs a database speed or stability.
    Warning,
    /// Worth knowing; may be as it should be.
    Note,
}

/// A file and what it said.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileReading {
    /// Its path on the machine.
    pub file: String,
    /// What was read, on one line.
    pub value: String,
}

/// Something odd about a machine. As JSON its keys are those of the fields; they may grow in number,
/// never change their meaning.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Stable name of its kind, such as `numa_balancing`.
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is odd, one line.
    pub what: String,
    /// What it was concluded from.
    pub read: Vec<FileReading>,
    /// Why it matters to a database.
    pub why: String,
    /// The shell command that changes it until the next start of the machine.
    pub command: Option<String>,
    /// Whether the command has to run as root.
    pub as_root: bool,
    /// What to do where no command alone changes it.
    pub advice: Option<String>,
}

impl Finding {
    /// A finding that costs speed or stability.
    pub(super) fn warning(name: &'static str, what: impl Into<String>, why: &str) -> Self {
        Self::new(Severity::Warning, name, what.into(), why)
    }

    /// A finding worth knowing.
    pub(super) fn note(name: &'static str, what: impl Into<String>, why: &str) -> Self {
        Self::new(Severity::Note, name, what.into(), why)
    }

    pub(super) fn new(severity: Severity, name: &'static str, what: String, why: &str) -> Self {
        let (why, read) = (why.to_owned(), Vec::new());
        Self { name, severity, what, read, why, command: None, as_root: false, advice: None }
    }

    /// Adds what it was concluded from.
    pub(super) fn from(mut self, readings: impl IntoIterator<Item = FileReading>) -> Self {
        self.read.extend(readings);
        self
    }

    /// Sets the command, to be run as root.
    pub(super) fn command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), as_root: true, ..self }
    }

    /// Sets a command that the user may run.
    pub(super) fn command_of_user(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), as_root: false, ..self }
    }

    /// Sets the advice.
    pub(super) fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}
