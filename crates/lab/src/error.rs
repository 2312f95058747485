//! Why a run did not come to its end.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use atoll_simulation::SetupError;
use atoll_sys::CallError;

use crate::{DescribeError, MissingTool};

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The machine cannot be emulated.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// Something that the lab needs is not on this machine.
    #[error(transparent)]
    Missing(#[from] MissingTool),
    /// The program does not exist.
    #[error("{}: no such program; give its path, or add its directory to PATH", program.display())]
    NotFound {
        /// As given.
        program: OsString,
    },
    /// The program is there and cannot be run.
    #[error("{} cannot be run: {reason}", program.display())]
    CannotRun {
        /// As given.
        program: OsString,
        /// Why.
        reason: String,
    },
    /// A library of a program is not there.
    #[error(
        "{} needs the library {library}, which is not found here; add its directory to \
         LD_LIBRARY_PATH", program.display()
    )]
    Library {
        /// The program.
        program: PathBuf,
        /// The library.
        library: String,
    },
    /// A file cannot be packed or written.
    #[error("{}: {doing}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A text has a NUL byte, or a path is too long.
    #[error("{what} {reason}")]
    Unusable {
        /// The unusable text.
        what: String,
        /// Why, and what to do.
        reason: String,
    },
    /// More is packed than the guest's low memory holds.
    #[error(
        "{} MiB of files are too many for a guest, which unpacks them in memory; at most {} MiB, \
         so leave out some of --with",
        bytes >> 20,
        limit >> 20
    )]
    TooLarge {
        /// Bytes packed.
        bytes: u64,
        /// Bytes that may be.
        limit: u64,
    },
    /// The setup for the plugin is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// QEMU ended before the program did.
    #[error("the guest ended before the program did ({how}){}", tails(console, qemu))]
    Died {
        /// How QEMU ended.
        how: String,
        /// The last lines of the guest's console.
        console: String,
        /// The last lines printed by QEMU and the plugin.
        qemu: String,
    },
    /// The guest's own preparation failed.
    #[error("{reason}{}", tails("", qemu))]
    Prepare {
        /// Its message.
        reason: String,
        /// The last lines printed by QEMU and the plugin.
        qemu: String,
    },
    /// The report of the plugin cannot be read.
    #[error("the plugin's report cannot be read: {reason}{}", tails("", qemu))]
    Report {
        /// Why.
        reason: String,
        /// The last lines printed by QEMU and the plugin.
        qemu: String,
    },
    /// The run took too long.
    #[error(
        "stopped after {} s (--timeout){}\nits cpus at the timeout:\n{standing}", after.as_secs_f64(), tails(console, "")
    )]
    TimedOut {
        /// The limit.
        after: Duration,
        /// The last lines of the guest's console where the program was not yet started.
        console: String,
        /// What each cpu was doing.
        standing: String,
    },
    /// A signal asked for the end.
    #[error("stopped by {}", atoll_sys::signal_name(*signal))]
    Stopped {
        /// The signal.
        signal: i32,
    },
    /// The program's output cannot be forwarded.
    #[error("output cannot be written: {0}")]
    Output(#[source] io::Error),
    /// A shell needs a terminal.
    #[error("standard input or output is not a terminal; use 'lab run', which needs none")]
    NoTerminal,
    /// The emulator cannot be watched.
    #[error("the emulator cannot be watched: {0}")]
    Watch(#[from] CallError),
}

impl LabError {
    /// An error about a file.
    pub(crate) fn file(
        path: impl Into<PathBuf>,
        doing: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, doing, source }
    }
}

/// Last words, each under its title.
fn tails(console: &str, qemu: &str) -> String {
    let tail = |title: &str, text: &str| match text.trim_end() {
        "" => String::new(),
        text => format!("\n{title}:\n{text}"),
    };
    format!("{}{}", tail("the guest's console ended with", console), tail("QEMU said", qemu))
}
