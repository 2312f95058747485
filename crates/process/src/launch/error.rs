//! Why a program was not started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use atoll_sys::CallError;

use super::obstacle::Obstacle;

/// Why a program was not started, or could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program does not exist.
    #[error("{}: no such program; give its path, or add its directory to PATH", program.display())]
    NotFound {
        /// As given.
        program: OsString,
    },
    /// The program exists but the kernel cannot run it.
    #[error("{} cannot be run: {source}", program.display())]
    CannotRun {
        /// As given.
        program: OsString,
        /// The kernel's error.
        source: io::Error,
    },
    /// A part of the placement was refused, and strict placement allows none.
    #[error("{}", obstacles.iter().map(Obstacle::to_string).collect::<Vec<_>>().join("; "))]
    Refused {
        /// What was refused.
        obstacles: Vec<Obstacle>,
    },
    /// A log file cannot be written.
    #[error("{}: {source}; choose another directory with --logs", path.display())]
    Log {
        /// The file or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// `{domain}` without instances per domain.
    #[error("{{domain}} is the number of a domain and requires --instances domains")]
    NoDomain,
    /// No thread to start the program from.
    #[error(
        "cannot create a thread for instance {instance}: {source}; raise ulimit -u or pids.max"
    )]
    NoThread {
        /// The instance.
        instance: usize,
        /// The kernel's error.
        source: io::Error,
    },
    /// Waiting for a signal or child failed.
    #[error("the program cannot be watched: {0}")]
    Watch(#[from] CallError),
}

impl LaunchError {
    /// The error for a program that did not start.
    pub(super) fn of_start(program: OsString, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program },
            _ => Self::CannotRun { program, source },
        }
    }
}
