//! Running the binary with a store of its own and none of the user's settings.

use std::path::Path;
use std::process::{Command, Stdio};

use atoll_testkit::without_settings;

pub(crate) use atoll_testkit::Ran;

/// Runs it in a directory, which is its home and keeps its figures.
pub(crate) fn tools_in(home: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    without_settings(&mut command);
    command.env_remove("HWLOC_XMLFILE").env_remove("XDG_DATA_HOME").env("HOME", home);
    command.current_dir(home).stdin(Stdio::null()).args(arguments);
    command.output().expect("the binary starts").into()
}

/// Runs it in a directory that vanishes.
pub(crate) fn tools(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().expect("a temporary directory");
    tools_in(home.path(), arguments)
}
