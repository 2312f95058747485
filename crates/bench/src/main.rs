//! `atoll-bench`: the benchmarks, with the engines that Atoll is compared with; `atoll bench` starts it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use atoll_bench::{BenchArgs, EXAMPLES};
use atoll_placement::CountedHeap;
use atoll_tools::exit::Exit;
use atoll_tools::terminal;
use clap::{CommandFactory, Parser};

/// The allocator of `atoll`: what is measured is what users run.
#[global_allocator]
static ALLOCATOR: CountedHeap<mimalloc::MiMalloc> = CountedHeap(mimalloc::MiMalloc);

/// Measure Atoll against other engines, and the cost of memory on this machine
#[derive(Debug, Parser)]
#[command(name = "atoll-bench", bin_name = "atoll bench", version, max_term_width = 100)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    args: BenchArgs,
}

fn main() -> ExitCode {
    let Err(ends) = Cli::parse().args.run(Cli::command) else { return Exit::Done.into() };
    if let Some(message) = &ends.message {
        terminal::say_error(message);
    }
    ends.exit.into()
}
