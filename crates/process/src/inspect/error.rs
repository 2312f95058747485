//! Why a process cannot be inspected.

use std::path::PathBuf;

use atoll_sys::{CallError, RootError};

/// Why a process, or a part of it, cannot be inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The process does not exist, or no longer.
    #[error("process {pid} does not exist: it has ended, or the number is from another container")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// No process has this name.
    #[error(
        "no process is named '{name}'; a name is that of `ps -o comm` or the file name of the \
         program, in full"
    )]
    NoName {
        /// The name.
        name: String,
    },
    /// A control group without processes.
    #[error("no visible process in control group {path} or below it")]
    EmptyGroup {
        /// Its directory.
        path: String,
    },
    /// The control group does not exist.
    #[error("control group {path} was not found: no cgroup.procs in {looked}")]
    NoGroup {
        /// As named.
        path: String,
        /// The directories tried.
        looked: String,
    },
    /// A file of the kernel cannot be parsed.
    #[error("{}:{line}: expected {expected}, found '{found}'", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What was expected.
        expected: &'static str,
        /// What was found, its first 60 characters.
        found: String,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Unread(#[from] RootError),
    /// A call that failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl InspectError {
    /// Whether it only means that a process or thread has ended.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::NoProcess { .. })
    }
}
