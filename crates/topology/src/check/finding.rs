//! Findings of the checks.

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Costs a database speed or stability.
    Warning,
    /// Worth knowing; may be as it should be.
    Note,
}

/// A file and the value read from it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FileReading {
    /// Its path on the machine.
    pub file: String,
    /// The value, on one line.
    pub value: String,
}

/// An anomaly of a machine. Its JSON keys are the field names; keys may be added, but never change their meaning.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Stable name of its kind, such as `numa_balancing`.
    pub name: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The anomaly, in one line.
    pub what: String,
    /// The readings it is based on.
    pub read: Vec<FileReading>,
    /// Why it matters to a database.
    pub why: String,
    /// The shell command that changes it until the next reboot.
    pub command: Option<String>,
    /// Whether the command has to run as root.
    pub as_root: bool,
    /// What to do if a command alone is not enough.
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

    /// Adds the readings it is based on.
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
