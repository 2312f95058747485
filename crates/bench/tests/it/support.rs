//! Running the binary.

use std::path::Path;

pub(crate) use atoll_testkit::Ran;
use atoll_testkit::{program_in, run_with};

/// Its path.
pub(crate) const BENCH: &str = env!("CARGO_BIN_EXE_atoll-bench");

/// Runs it in a directory that vanishes.
pub(crate) fn bench(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    bench_in(home.path(), arguments)
}

/// Runs it in a directory, which is its home too.
pub(crate) fn bench_in(home: &Path, arguments: &[&str]) -> Ran {
    run_with(program_in(Path::new(BENCH), home).args(arguments), "")
}

/// Runs `atoll-tools`, which is built next to it.
pub(crate) fn tools_in(home: &Path, arguments: &[&str]) -> Ran {
    let tools = Path::new(BENCH).with_file_name("atoll-tools");
    run_with(program_in(&tools, home).args(arguments), "")
}
