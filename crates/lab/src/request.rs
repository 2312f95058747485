//! Requests for runs in the lab, and their outcomes.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use atoll_simulation::{Counting, Report};

use crate::Guest;

/// Longest run by default.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A program and the machine to run it on.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The machine.
    pub guest: Guest,
    /// The program, as a path or a name on `$PATH`, and its arguments. Empty for a shell on this
    /// process's terminal.
    pub command: Vec<OsString>,
    /// Other files and directories that it needs; they are at the same paths in the guest.
    pub with: Vec<PathBuf>,
    /// Variables of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// File that is its standard input; without one it is empty.
    pub stdin: Option<PathBuf>,
    /// Directory that it starts in.
    pub directory: PathBuf,
    /// Which accesses count; None counts nothing, at full speed.
    pub counting: Option<Counting>,
    /// Automatic NUMA balancing; None keeps the kernel's setting.
    pub balancing: Option<bool>,
    /// Kernel to boot instead of the one that set-up fetched.
    pub kernel: Option<PathBuf>,
    /// More words for the kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// The guest is stopped after this time.
    pub timeout: Duration,
}

impl RunRequest {
    /// A program in this process's directory, for ten minutes at most, with nothing counted.
    pub fn new(guest: Guest, command: Vec<OsString>) -> Self {
        Self {
            guest,
            command,
            with: Vec::new(),
            environment: Vec::new(),
            stdin: None,
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            counting: None,
            balancing: None,
            kernel: None,
            kernel_arguments: Vec::new(),
            timeout: TIMEOUT,
        }
    }
}

/// Where a program's output goes, as it comes.
pub struct Streams<'a> {
    /// Its standard output.
    pub out: &'a mut (dyn Write + Send),
    /// Its standard error.
    pub err: &'a mut (dyn Write + Send),
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The program's exit code; 128 + the signal if one ended it.
    pub code: u8,
    /// The counts; None without any.
    pub report: Option<Report>,
    /// The machine as it was booted: with room for the packed files.
    pub guest: Guest,
    /// From starting QEMU to starting the program; calibration is part of it.
    pub boot: Duration,
    /// From starting QEMU to its end.
    pub wall: Duration,
    /// What `qemu-system-x86_64 --version` says of itself, such as `7.2.22`.
    pub qemu_version: String,
    /// The guest's kernel, as `uname -r` names it.
    pub kernel_release: String,
    /// Warnings of the packing: symbolic links that lead nowhere, libraries not found.
    pub notes: Vec<String>,
}
