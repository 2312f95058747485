//! `lab`: programs on emulated NUMA machines, and what they do there counted.

mod compare;
mod guest;
mod list;
mod machine;
mod report;
mod run;
mod setup;
mod shell;

use clap::Subcommand;

use crate::exit::Ends;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:
  atoll lab setup                                     what the lab needs, and fetch it
  atoll lab list                                      machines that ship, as the lab boots them
  atoll lab run --machine westmere-ex-4 -- numactl -H
  atoll lab run --machine symas-8 -- atoll bench memory --experiment 1
  atoll lab run -m intel-8 --count off -- ./my-program data.bin
  atoll lab shell -m cxl-2                            a prompt on it; 'exit' powers off";

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Boot a machine, run a program on it, count what it does to memory, and power off
    #[command(after_help = run::EXAMPLES)]
    Run(Box<run::Args>),
    /// Boot a machine and open a shell on it
    Shell(Box<shell::Args>),
    /// List the machines that ship, as the lab boots them
    List(list::Args),
    /// Say what the lab needs, and fetch what is missing
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::Args),
    /// Show what was counted in a run, as text, JSON or a picture
    #[command(after_help = report::EXAMPLES)]
    Report(report::Args),
    /// Compare two runs
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Args),
    /// Commands that the lab runs inside a guest
    #[command(hide = true)]
    Guest(guest::Args),
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Ends> {
    match &args.command {
        Command::Run(args) => run::run(args),
        Command::Shell(args) => shell::run(args),
        Command::List(args) => list::run(args),
        Command::Setup(args) => setup::run(args),
        Command::Report(args) => report::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Guest(args) => guest::run(args),
    }
}
