//! `atoll-tools`: the commands of Atoll that need no SQL engine, as a small binary.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use atoll_tools::exit::{self, Exit};
use atoll_tools::{Command, terminal};
use clap::{CommandFactory, Parser};

/// Atoll's tools for a NUMA machine: know it, place programs on it, see where they live.
#[derive(Debug, Parser)]
#[command(name = "atoll-tools", version, max_term_width = 100, after_help = exit::HELP)]
struct Cli {
    /// What to do
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let Err(ends) = atoll_tools::run(&cli.command, Cli::command) else { return Exit::Done.into() };
    if let Some(message) = &ends.message {
        terminal::say_error(message);
    }
    ends.exit.into()
}
