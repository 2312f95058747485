//! Tests that cannot run on this machine report that, and are counted.
//!
//! A test that returns early in silence passes without testing anything. [`skip`] writes the test's name, its need and
//! why that is missing to the real stderr, and to the file in [`SKIPS`]: `cargo xtask ci` sets it, prints a summary,
//! and fails on an unexpected skip.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable with the file to which skipped tests are appended, one per line: test, need and reason,
/// separated by tabs.
pub const SKIPS: &str = "ATOLL_TEST_SKIPS";

/// A requirement of a test that a machine may lack. `cargo xtask ci` knows them by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A C compiler.
    Compiler,
    /// A C compiler with the libraries of its sanitizers.
    CompilerSanitizers,
    /// numactl, to compare with.
    Numactl,
    /// lstopo, to exchange files with.
    Lstopo,
    /// PostgreSQL with pgbench, as Debian installs it.
    Postgresql,
    /// MariaDB with its load generator, as Debian installs them.
    Mariadb,
    /// Libraries of key-value engines, as Debian installs them.
    KeyValueEngines,
    /// A Python with DuckDB, pandas, Polars and pyarrow.
    PythonEngines,
    /// PostgreSQL drivers for Python, Node.js or Java.
    Drivers,
    /// QEMU, busybox and a kernel image for the lab's guests.
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
            Self::KeyValueEngines => "key-value-engines",
            Self::PythonEngines => "python-engines",
            Self::Drivers => "drivers",
            Self::Lab => "lab",
            Self::Permission => "permission",
            Self::HugePages => "huge-pages",
            Self::OneNode => "one-node",
        }
    }
}

/// Reports the running test as skipped; the test returns afterwards.
///
/// # Panics
/// If the file of skips cannot be written: a skip must be counted.
pub fn skip(need: Need, reason: impl fmt::Display) {
    let thread = std::thread::current();
    // The harness names a test's thread after the test.
    let test = thread.name().unwrap_or("a test");
    let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let need = need.name();
    // Not `eprintln!`, which the harness captures.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: needs {need}: {reason}");
    if let Some(file) = std::env::var_os(SKIPS) {
        let opened = OpenOptions::new().create(true).append(true).open(&file);
        let line = format!("{test}\t{need}\t{reason}\n");
        opened
            .and_then(|mut opened| opened.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{SKIPS}: {}: {error}", file.display()));
    }
}
