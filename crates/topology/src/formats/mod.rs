//! Machines as files: read with every mistake named by file and line, written so that reading gives
//! the same machine again.

/// Why a file does not describe a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {found}; expected {expected}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct FormatError {
    /// Name of the file, `-` for stdin.
    pub file: String,
    /// Line of the mistake, from 1, where it has one.
    pub line: Option<usize>,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}
