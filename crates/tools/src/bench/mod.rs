//! `bench`: benchmarks that need no SQL engine.

mod form;
mod memory;
mod reproduce;

use clap::Subcommand;

use crate::exit::Ends;

/// What `--help` shows.
pub const EXAMPLES: &str = memory::EXAMPLES;

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    benchmark: Benchmark,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
enum Benchmark {
    /// What remote memory, migrating threads and shared caches cost (Kiefer 2013, section 3)
    #[command(after_help = memory::EXAMPLES)]
    Memory(Box<memory::Args>),
    /// One process of a run of several
    #[command(hide = true)]
    Part(memory::PartArgs),
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Ends> {
    match &args.benchmark {
        Benchmark::Memory(memory) => memory::run(memory),
        Benchmark::Part(part) => memory::part(part),
    }
}
