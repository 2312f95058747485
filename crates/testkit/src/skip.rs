//! Tests that cannot run on this machine say so, and are counted.
//!
//! A test that returns early without a word is a green light that means nothing. [`skip`] names the test,
//! what it needs and why that is missing, on the real stderr, and in the file that [`SKIPS`] names:
//! `cargo xtask ci` sets it, prints a summary, and fails on a skip that it does not expect.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable that names the file to which skipped tests are added, a line each:
/// test, need and reason, between tabs.
pub const SKIPS: &str = "ATOLL_TEST_SKIPS";

/// What a test needs and a machine may lack. `cargo xtask ci` knows them by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A C compiler.
    Compiler,
    /// A C compiler with the libraries of its sanitizers.
    CompilerSanitizers,
    /// numactl, which has to say the same.
    Numactl,
    /// lstopo, which has to read and write the same files.
    Lstopo,
    /// PostgreSQL with pgbench, as Debian installs it.
    Postgresql,
    /// MariaDB with its load generator, as Debian installs them.
    Mariadb,
    /// A Python with DuckDB, pandas, Polars and pyarrow.
    PythonEngines,
    /// Drivers of PostgreSQL: for Python, Node.js or Java.
    Drivers,
    /// QEMU, busybox and a kernel image: guests of the lab.
    Lab,
    /// A system call or a file of procfs that containers and kernels may refuse.
    Permission,
    /// Transparent huge pages.
    HugePages,
    /// A machine with one node.
    OneNode,
}

impl Need {
    /// Its name in the file of skips.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiler => "cc",
            Self::CompilerSanitizers => "cc-sanitizers",
            Self::Numactl => "numactl",
            Self::Lstopo => "lstopo",
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
            Self::PythonEngines => "python-engines",
            Self::Drivers => "drivers",
            Self::Lab => "lab",
            Self::Permission => "permission",
            Self::HugePages => "huge-pages",
            Self::OneNode => "one-node",
        }
    }
}

/// Says that the running test is skipped for want of something; the test returns after it.
///
/// # Panics
/// When the file of skips cannot be written: a skip must not go uncounted.
pub fn skip(need: Need, reason: impl fmt::Display) {
    let thread = std::thread::current();
    // The harness names a test's thread after the test.
    let test = thread.name().unwrap_or("a test");
    let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let need = need.name();
    // Not `eprintln!`, which the harness keeps to itself.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: needs {need}: {reason}");
    if let Some(file) = std::env::var_os(SKIPS) {
        let opened = OpenOptions::new().create(true).append(true).open(&file);
        let line = format!("{test}\t{need}\t{reason}\n");
        opened
            .and_then(|mut opened| opened.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{SKIPS}: {}: {error}", file.display()));
    }
}
