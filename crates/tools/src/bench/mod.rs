//! `bench`: benchmarks that need no SQL engine.

pub(crate) mod aggregate;
pub(crate) mod form;
pub(crate) mod join;
mod memory;
pub(crate) mod partition;
mod reproduce;
pub(crate) mod rivals;
mod shuffle;
mod sort;

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
    /// Sums by key, beside DuckDB, Polars and DataFusion
    #[command(after_help = aggregate::EXAMPLES)]
    Aggregate(Box<aggregate::Args>),
    /// Join on equal keys, beside DuckDB, Polars and DataFusion
    #[command(after_help = join::EXAMPLES)]
    Join(Box<join::Args>),
    /// Sort, beside DuckDB, Polars, DataFusion and the standard library
    #[command(after_help = sort::EXAMPLES)]
    Sort(Box<sort::Args>),
    /// Radix partitioning, beside what memory allows
    #[command(after_help = partition::EXAMPLES)]
    Partition(Box<partition::Args>),
    /// Shuffles: pieces that every worker holds for every other (Li 2013, sections 3 and 4.1)
    #[command(after_help = shuffle::EXAMPLES)]
    Shuffle(Box<shuffle::Args>),
    /// One process of a run of several
    #[command(hide = true)]
    Part(memory::PartArgs),
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Ends> {
    match &args.benchmark {
        Benchmark::Memory(memory) => memory::run(memory),
        Benchmark::Aggregate(aggregate) => aggregate::run(aggregate),
        Benchmark::Join(join) => join::run(join),
        Benchmark::Sort(sort) => sort::run(sort),
        Benchmark::Partition(partition) => partition::run(partition),
        Benchmark::Shuffle(shuffle) => shuffle::run(shuffle),
        Benchmark::Part(part) => memory::part(part),
    }
}
