//! Why a process cannot be looked at.

use std::path::PathBuf;

use atoll_sys::{CallError, RootError};

/// Why a process cannot be looked at, or a part of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// No such process, or no longer.
    #[error("process {pid} does not exist: it has ended, or the number is from another container")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// No process of that name.
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
    /// No such control group.
    #[error("control group {path} was not found: no cgroup.procs in {looked}")]
    NoGroup {
        /// As named.
        path: String,
        /// The directories tried.
        looked: String,
    },
    /// A file of the kernel says something that cannot be understood.
    #[error("{}:{line}: expected {expected}, found '{found}'", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What should stand there.
        expected: &'static str,
        /// What does, its first 60 characters.
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
    /// Whether it only says that a process or thread has ended.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::NoProcess { .. })
    }
}
