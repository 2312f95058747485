//! Why a program was not started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use atoll_sys::CallError;

use super::obstacle::Obstacle;

/// Why a program was not started, or could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no such program.
    #[error("{}: no such program; give its path, or add its directory to PATH", program.display())]
    NotFound {
        /// As given.
        program: OsString,
    },
    /// The program is there and the kernel does not run it.
    #[error("{} cannot be run: {source}", program.display())]
    CannotRun {
        /// As given.
        program: OsString,
        /// The kernel's word for it.
        source: io::Error,
    },
    /// A part of the placement was refused, and none may be.
    #[error("{}", obstacles.iter().map(Obstacle::to_string).collect::<Vec<_>>().join("; "))]
    Refused {
        /// What was refused.
        obstacles: Vec<Obstacle>,
    },
    /// A log cannot be written.
    #[error("{}: {source}; choose another directory with --logs", path.display())]
    Log {
        /// The file or directory.
        path: PathBuf,
        /// The kernel's word for it.
        source: io::Error,
    },
    /// `{domain}` where instances have none.
    #[error("{{domain}} stands for a domain's number, which only --instances domains gives")]
    NoDomain,
    /// No thread to start the program from.
    #[error("no thread to start instance {instance} from: {source}; raise ulimit -u or pids.max")]
    NoThread {
        /// The instance.
        instance: usize,
        /// The kernel's word for it.
        source: io::Error,
    },
    /// A signal or child could not be waited for.
    #[error("the program cannot be watched: {0}")]
    Watch(#[from] CallError),
}

impl LaunchError {
    /// The error of a program that did not start.
    pub(super) fn of_start(program: OsString, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program },
            _ => Self::CannotRun { program, source },
        }
    }
}
