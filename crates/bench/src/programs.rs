//! Programs that benchmarks start: this one again, and `atoll` next to it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use atoll_tools::bench::own_words;

/// This program, whose next argument is the name of a benchmark.
pub(crate) fn own_command() -> Result<Command> {
    let words = own_words()?;
    let (program, arguments) = words.split_first().context("a program has a name")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// `atoll`, which is installed next to this program.
pub(crate) fn atoll_command() -> Result<Command> {
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let atoll = own.with_file_name("atoll");
    ensure!(atoll.is_file(), "{} is missing: atoll-bench needs it next to itself", atoll.display());
    Ok(Command::new(atoll))
}

/// `atoll run`, or `atoll-tools run`, which is the same; the one that is installed next to this program.
pub(crate) fn run_command() -> Result<Command> {
    let mut command = atoll_command().or_else(|missing| {
        let own = std::env::current_exe().context("the path of this program is unknown")?;
        let tools = own.with_file_name("atoll-tools");
        if tools.is_file() { Ok(Command::new(tools)) } else { Err(missing) }
    })?;
    command.arg("run");
    Ok(command)
}
