//! `atoll-tools`: the commands of Atoll that need no SQL engine, as a small binary.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use atoll_tools::exit::{self, Exit};
use atoll_tools::{Command, bench, data, terminal};
use clap::{CommandFactory, Parser, Subcommand};

/// Atoll's tools for a NUMA machine: know it, place programs on it, see where they live.
#[derive(Debug, Parser)]
#[command(name = "atoll-tools", version, max_term_width = 100, after_help = exit::HELP)]
struct Cli {
    /// What to do
    #[command(subcommand)]
    command: ToolsCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// Those that `atoll` has too
    #[command(flatten)]
    Shared(Command),
    /// Copy the data directory of a database that is closed
    Backup(data::BackupArgs),
    /// Measure what memory costs on this machine
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::ToolsBenchArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ran = match &cli.command {
        ToolsCommand::Shared(command) => atoll_tools::run(command, Cli::command),
        ToolsCommand::Backup(args) => data::backup(args),
        ToolsCommand::Bench(args) => args.run(),
    };
    let Err(ends) = ran else { return Exit::Done.into() };
    if let Some(message) = &ends.message {
        terminal::say_error(message);
    }
    ends.exit.into()
}
