//! `cargo xtask differential`: random queries, whose answers by Atoll under many settings are compared
//! with DuckDB's or PostgreSQL's.
//!
//! It is a separate crate because it runs Atoll on fake machines with simulated kernels, which the
//! product does not have. [`run`] describes how it works.

#![forbid(unsafe_code)]

mod calls;
mod data;
mod engines;
mod expression;
mod generate;
mod host;
mod outcome;
mod postgres;
mod query;
mod record;
mod run;
mod setting;
mod shrink;
mod special;
mod verdict;
mod written;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use atoll_bench::worker::{self, WorkerArgs};
use clap::{Args, Parser};

/// As in the `atoll` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Answers differ.
const DIFFERENT: u8 = 1;
/// The comparison itself failed.
const OWN: u8 = 125;

/// Random queries: Atoll under many settings against DuckDB or PostgreSQL
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask differential",
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  cargo xtask differential --minutes 10
  cargo xtask differential --seed 4711 --seeds 1
  PGHOST=/tmp PGUSER=postgres cargo xtask differential --against postgresql --minutes 10
  cargo xtask differential --calls --minutes 10
  cargo xtask differential --record random.slt --seeds 8 --queries 12

Each difference is made smaller and written to a script in --output. Exit code 1 where there is one, 125
where the comparison itself failed."
)]
struct Cli {
    /// An engine in its own process
    #[command(subcommand)]
    worker: Option<Worker>,
    #[command(flatten)]
    compare: CompareArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Worker {
    /// Atoll, driven by lines of JSON
    #[command(hide = true)]
    Worker {
        #[command(flatten)]
        worker: WorkerArgs,
        /// Fake machine to run on [default: this machine]
        #[arg(long)]
        machine: Option<String>,
    },
}

#[derive(Args, Debug)]
struct CompareArgs {
    /// The first seed: the same seed makes the same tables, queries and settings
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seeds at most [default: as many as the time allows, or 20]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Time after which no new seed begins
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Queries for each seed
    #[arg(long, value_name = "N", default_value_t = 30)]
    queries: usize,
    /// Settings of Atoll for each seed, besides a reference with one worker
    #[arg(long, value_name = "N", default_value_t = 4)]
    settings: usize,
    /// Longest time, in seconds, that an engine may take to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Python that has DuckDB and PyArrow [default: a virtual environment made on first use]
    #[arg(long, value_name = "FILE", env = "ATOLL_PYTHON")]
    python: Option<PathBuf>,
    /// Reference engine
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t)]
    against: engines::Against,
    /// Call every function and operator over values of all types instead of comparing: none may panic
    #[arg(long, conflicts_with_all = ["against", "record", "queries", "settings"])]
    calls: bool,
    /// Directory for scripts that show differences
    #[arg(
        short,
        long,
        visible_alias = "out",
        value_name = "DIRECTORY",
        default_value = "differences"
    )]
    output: PathBuf,
    /// Write the queries on which both agree to a file of SQL logic tests instead of comparing
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl CompareArgs {
    fn options(&self) -> Result<run::DifferentialOptions> {
        let default = if self.minutes.is_some() { u64::MAX } else { 20 };
        Ok(run::DifferentialOptions {
            program: std::env::current_exe().context("the path of this program is unknown")?,
            against: self.against,
            python: self.python.clone(),
            seed: self.seed,
            seeds: self.seeds.unwrap_or(default),
            time: self.minutes.map(|minutes| Duration::from_secs(60 * minutes)),
            queries: self.queries,
            settings: self.settings,
            patience: Duration::from_secs(self.timeout),
            out: self.output.clone(),
        })
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.worker {
        Some(Worker::Worker { worker, machine }) => {
            let host = || host::host(machine.as_deref());
            let (input, output) = (io::stdin().lock(), &mut io::stdout().lock());
            worker::run(worker, host, input, output).map(|()| ExitCode::SUCCESS)
        }
        None => compare(&cli.compare),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(OWN)
    })
}

fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let options = args.options()?;
    let mut progress = |what: &str| eprintln!("{what}");
    if let Some(file) = &args.record {
        write(file, &record::record(&options, &mut progress)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.calls {
        let report = calls::run(&options, &mut progress)?;
        return reported(&report, report.has_faults());
    }
    let report = run::run(&options, &mut progress)?;
    reported(&report, !report.findings.is_empty())
}

/// Writes a report.
fn reported(report: &impl ToString, is_different: bool) -> Result<ExitCode> {
    io::stdout().write_all(report.to_string().as_bytes()).context("cannot write the report")?;
    Ok(if is_different { ExitCode::from(DIFFERENT) } else { ExitCode::SUCCESS })
}

fn write(file: &Path, text: &str) -> Result<()> {
    atoll_sys::write_whole(file, text).with_context(|| format!("cannot write {}", file.display()))
}
