//! The `atoll` binary: `sql` is a shell and runs scripts, `serve` is a server, `bench` measures, `demo` shows them all;
//! the other commands are those of `tools`.
//!
//! It owns the flags, the terminal, exit codes and text output. It is a separate crate so that no library prints, reads
//! the command line or ends the process.

#![forbid(unsafe_code)]

mod backup;
mod bench;
mod cli;
mod demo;
mod engine;
mod memory;
mod output;
mod progress;
mod serve;
mod shell;

use std::ffi::OsString;
use std::process::ExitCode;

use atoll_placement::CountedHeap;
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use cli::{AtollCommand, Cli};

/// Serves all allocations but the memory of tables, from many threads, and counts them for the memory limit.
#[global_allocator]
static ALLOCATOR: CountedHeap<mimalloc::MiMalloc> = CountedHeap(mimalloc::MiMalloc);

fn main() -> ExitCode {
    let arguments = cli::with_mode_flags(std::env::args_os().collect());
    let matches = Cli::command().get_matches_from(&arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let Err(ends) = run(&cli, &matches, &arguments) else { return Exit::Done.into() };
    if let Some(message) = &ends.message {
        terminal::say_error(message);
    }
    ends.exit.into()
}

fn run(cli: &Cli, matches: &ArgMatches, arguments: &[OsString]) -> Result<(), CommandError> {
    match &cli.command {
        AtollCommand::Tools(command) => atoll_tools::run(command, Cli::command),
        AtollCommand::Backup(args) => on_this_thread(backup::run(args)),
        AtollCommand::Bench(args) => bench::run(args),
        AtollCommand::Sql(args) => {
            let scripts = matches.subcommand().map(|(_, matches)| args.scripts_in_order(matches));
            on_this_thread(shell::run(args, scripts.unwrap_or_default()))
        }
        AtollCommand::Serve(args) => serve::run(args, matches, arguments),
        AtollCommand::Demo(args) => on_this_thread(demo::run(args)),
    }
}

/// Runs the tasks that wait for queries, files and signals; the queries themselves run on the pools.
fn on_this_thread(
    work: impl Future<Output = Result<(), CommandError>>,
) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    // A thread may still be blocked reading a line of stdin; it is not joined.
    runtime.shutdown_background();
    result
}
