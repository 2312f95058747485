//! The commands that need no SQL engine: `topo` shows the machine, `run` starts programs under a
//! placement, `where` shows where a process lives, `elastic` gives one its cores, `data` looks after data directories, `bench` and `tune` measure what it can do.
//!
//! It owns their flags, their text and their JSON, and how a process of Atoll ends. It is a crate of
//! its own because it builds in seconds and makes a binary of a few megabytes (`atoll-tools`) that can
//! be copied to a server or into a container; `atoll` has the same commands besides its own.

#![forbid(unsafe_code)]

pub mod bench;
pub mod bytes;
pub mod data;
pub mod elastic;
pub mod exit;
pub mod lab;
pub mod manual;
pub mod run;
pub mod terminal;
pub mod topo;
pub mod tune;
pub mod whereabouts;
pub mod workload;

use clap::Subcommand;

use exit::CommandError;

/// The commands, but for `bench` and `backup`, which can do more in `atoll` than here.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the machine: packages, nodes, domains, cores, memory and distances
    #[command(after_help = topo::EXAMPLES)]
    Topo(topo::TopoArgs),
    /// Start a program with its threads and memory placed
    #[command(after_help = run::EXAMPLES)]
    Run(Box<run::LaunchArgs>),
    /// Show where a process lives: its threads, its memory, its policies
    #[command(after_help = whereabouts::EXAMPLES)]
    Where(whereabouts::WhereArgs),
    /// Give a program only the cores that it needs, where its data is
    #[command(after_help = elastic::EXAMPLES)]
    Elastic(Box<elastic::ElasticArgs>),
    /// Check data directories of databases, show their contents, make checkpoints
    #[command(after_help = data::EXAMPLES)]
    Data(data::DataArgs),
    /// Say whether this version can open a data directory, and what an upgrade would write
    #[command(after_help = data::UPGRADE_EXAMPLES)]
    UpgradeCheck(data::DirectoryArgs),
    /// Fit the primitives to this machine and keep the result
    #[command(after_help = tune::EXAMPLES)]
    Tune(tune::TuneArgs),
    /// Run programs on emulated NUMA machines and count what they do to memory
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::LabArgs),
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions(manual::CompletionsArgs),
    /// Write the man pages
    #[command(hide = true)]
    Man(manual::ManArgs),
}

/// Runs a command; `whole` is the command line of the binary, for its manual.
pub fn run(command: &Command, whole: impl FnOnce() -> clap::Command) -> Result<(), CommandError> {
    match command {
        Command::Topo(args) => topo::run(args),
        Command::Run(args) => run::run(args),
        Command::Where(args) => whereabouts::run(args),
        Command::Elastic(args) => elastic::run(args),
        Command::Data(args) => data::run(args),
        Command::UpgradeCheck(args) => data::upgrade_check(args),
        Command::Tune(args) => tune::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Completions(args) => manual::completions(args, whole()),
        Command::Man(args) => manual::man(args, whole()),
    }
}
