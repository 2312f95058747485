//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use atoll_bench::differential;
use atoll_bench::tpch::{self, Rival};
use atoll_bench::{cache, runtime, worker};
use atoll_topology::Bytes;
use clap::{Args, Parser, Subcommand};

/// Benchmarks of Atoll against other engines, paired in one run.
#[derive(Debug, Parser)]
#[command(
    name = "atoll-bench",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes:
  0    done
  1    a query failed, or engines gave different results
  2    the command line cannot be understood
  125  the benchmark itself failed: an engine cannot be started, a file not written"
)]
pub(crate) struct Cli {
    /// What to measure
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// TPC-H: Atoll against DuckDB and plain DataFusion
    #[command(after_help = "\
Examples:
  atoll-bench tpch
  atoll-bench tpch --queries 1,6,18 --rivals datafusion --runs 11
  atoll-bench tpch --fresh-parameters --seed 7 --json report.json --out report.md")]
    Tpch(TpchArgs),
    /// Random queries: Atoll under many settings against DuckDB
    #[command(after_help = "\
Examples:
  cargo xtask differential --minutes 10
  cargo xtask differential --seed 4711 --seeds 1
  cargo xtask differential --record random.slt --seeds 8 --queries 12

Each difference is made smaller and written to a script in --out. Exit code 1 where there is one.")]
    Differential(DifferentialArgs),
    /// What bound pools cost: Atoll's runtime against plain tokio
    Runtime(RuntimeArgs),
    /// An engine in a process of its own, driven by lines of JSON
    #[command(hide = true)]
    Worker(worker::Options),
}

/// Arguments of `atoll-bench tpch`.
#[derive(Args, Debug)]
pub(crate) struct TpchArgs {
    /// Scale factor; 1 is some six million order lines
    #[arg(long, value_name = "SCALE", default_value_t = 1.0)]
    scale_factor: f64,
    /// Threads of each engine [default: one for each cpu this process may use]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Rounds measured for each query
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Rounds before them, which do not count
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: usize,
    /// Queries by number, such as 1,6,18 [default: all 22]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=22))]
    queries: Vec<u8>,
    /// Engines to compare with
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "duckdb,datafusion"
    )]
    rivals: Vec<Rival>,
    /// Parameters drawn anew for every round, as TPC-H prescribes; the same for all engines
    #[arg(long)]
    fresh_parameters: bool,
    /// Seed of the fresh parameters
    #[arg(long, value_name = "N", default_value_t = 1, requires = "fresh_parameters")]
    seed: u64,
    /// How long a load or a query may take before the engine counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Directory of the Parquet files, made if it is not there [default: one in the cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Write the report as JSON, with every sample; '-' is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

impl TpchArgs {
    /// What the library takes.
    pub(crate) fn options(&self) -> Result<tpch::Options> {
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let queries = match self.queries.is_empty() {
            true => (1..=22).collect(),
            false => self.queries.clone(),
        };
        Ok(tpch::Options {
            program,
            cache: cache::directory()?,
            data: self.data.clone(),
            scale_factor: self.scale_factor,
            threads: self.threads,
            runs: self.runs,
            warmup: self.warmup,
            queries,
            rivals: self.rivals.clone(),
            patience: Duration::from_secs(self.timeout),
            fresh_seed: self.fresh_parameters.then_some(self.seed),
        })
    }
}

/// Arguments of `atoll-bench differential`.
#[derive(Args, Debug)]
pub(crate) struct DifferentialArgs {
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
    /// Settings of Atoll for each seed, beside a reference with one worker
    #[arg(long, value_name = "N", default_value_t = 4)]
    settings: usize,
    /// How long an answer may take before the engine counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// A Python that has DuckDB and PyArrow [default: a virtual environment made on first use]
    #[arg(long, value_name = "FILE", env = "ATOLL_PYTHON")]
    python: Option<PathBuf>,
    /// Directory for scripts that show differences
    #[arg(long, value_name = "DIRECTORY", default_value = "differences")]
    out: PathBuf,
    /// Write the queries on which both agree to a file of SQL logic tests instead of comparing
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl DifferentialArgs {
    /// What the library takes.
    pub(crate) fn options(&self) -> Result<differential::Options> {
        let default = if self.minutes.is_some() { u64::MAX } else { 20 };
        Ok(differential::Options {
            program: std::env::current_exe().context("cannot tell which program this is")?,
            cache: cache::directory()?,
            python: self.python.clone(),
            seed: self.seed,
            seeds: self.seeds.unwrap_or(default),
            time: self.minutes.map(|minutes| Duration::from_secs(60 * minutes)),
            queries: self.queries,
            settings: self.settings,
            patience: Duration::from_secs(self.timeout),
            out: self.out.clone(),
        })
    }
}

/// Arguments of `atoll-bench runtime`.
#[derive(Args, Debug)]
pub(crate) struct RuntimeArgs {
    /// Threads of each runtime [default: one for each cpu this process may use]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Pairs measured, after one that does not count
    #[arg(long, value_name = "N")]
    pairs: Option<usize>,
    /// Small tasks in each measurement
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// Memory that the scan reads, in MiB
    #[arg(long, value_name = "MIB")]
    scan: Option<u64>,
}

impl RuntimeArgs {
    /// What the library takes.
    pub(crate) fn options(&self) -> runtime::Options {
        let default = runtime::Options::default();
        runtime::Options {
            threads: self.threads,
            pairs: self.pairs.unwrap_or(default.pairs),
            tasks: self.tasks.unwrap_or(default.tasks),
            scan: self.scan.map_or(default.scan, |mib| Bytes(mib.saturating_mul(1 << 20))),
        }
    }
}
