//! What is to be run in the lab, and what came of it.

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
    /// Files and directories that it needs besides; they are at the same paths in the guest.
    pub with: Vec<PathBuf>,
    /// Variables of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// File that is its standard input; without one it is empty.
    pub stdin: Option<PathBuf>,
    /// Directory that it starts in.
    pub directory: PathBuf,
    /// Which accesses count; none counts nothing, and nothing is slowed.
    pub counting: Option<Counting>,
    /// Automatic NUMA balancing; none leaves it as the kernel has it.
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

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The program's exit code; 128 + the signal where one ended it.
    pub code: u8,
    /// What was counted, where something was.
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
    /// What is worth knowing of the packing: symbolic links that lead nowhere, libraries not found.
    pub notes: Vec<String>,
}
