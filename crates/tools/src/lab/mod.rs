//! `lab`: runs programs on emulated NUMA machines and counts their accesses.

mod compare;
mod guest;
mod list;
mod machine;
mod report;
mod run;
mod setup;
mod shell;

use clap::Subcommand;

use crate::exit::CommandError;

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
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Boot a machine, run a program on it, count what it does to memory, and power off
    #[command(after_help = run::EXAMPLES)]
    Run(Box<run::LabRunArgs>),
    /// Boot a machine and open a shell on it
    Shell(Box<shell::ShellArgs>),
    /// List the machines that ship, as the lab boots them
    List(list::ListArgs),
    /// List the requirements of the lab, and fetch the missing ones
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::SetupArgs),
    /// Show the counts of a run as text, JSON or a picture
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Compare two runs
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// Commands that the lab runs inside a guest
    #[command(hide = true)]
    Guest(guest::AgentArgs),
}

/// Runs it.
pub(crate) fn run(args: &LabArgs) -> Result<(), CommandError> {
    match &args.command {
        LabCommand::Run(args) => run::run(args),
        LabCommand::Shell(args) => shell::run(args),
        LabCommand::List(args) => list::run(args),
        LabCommand::Setup(args) => setup::run(args),
        LabCommand::Report(args) => report::run(args),
        LabCommand::Compare(args) => compare::run(args),
        LabCommand::Guest(args) => guest::run(args),
    }
}
