//! `atoll bench`: Atoll against other engines, paired in one run, with the conditions of every number.
//!
//! It owns the scenarios, the rival engines, the results and their comparison. It is a separate crate
//! because plain DataFusion is one of the rivals, and because what measures stands above what is
//! measured.
//!
//! | Module | Owns |
//! |---|---|
//! | `tpch` | whole queries, each engine in its own process ([`worker`]) |
//! | `planning` | the steps from a text to its plan |
//! | `primitives` | aggregation, join, sort and partitioning of columns |
//! | `runtime` | the pools against plain tokio |
//! | `store` | databases in directories: single rows, bulk loads, checkpoints, recovery |
//! | `scan` | many clients and their small queries over one wide table: shared scans |
//! | `server` | `atoll serve` against PostgreSQL, driven by pgbench |
//! | `elastic` | TPC-H of many clients with elastic cores, next to published figures; the cost of following |
//! | `kv` | key-value engines under every placement, next to published figures |
//! | `trials` | runs of many cases: results kept case by case, Ctrl-C, resuming, placement read back |
//! | `placement` | a server of the user's under every placement |
//! | `compare` | two results, with confidence |
//! | [`rivals`] | SQLite, PostgreSQL, DuckDB, Polars and DataFusion as processes |
//! | [`answers`] | whether two engines gave the same result |
//! | `paired` | measurements of Atoll and of others in turn |
//! | [`protocol`] | requests and replies of engines in their own processes |
//! | `programs` | this program again, and `atoll`, as processes |
//! | `latency` | latencies by time |
//! | `tpch_data`, `check` | the tables of TPC-H; sums that results are compared by |
//! | `rank` | how much larger some samples are than others |
//! | `flags`, `table`, `bars`, `cache`, `session` | shared helpers |

#![deny(unsafe_code)]

pub mod answers;
mod bars;
mod cache;
mod check;
mod compare;
mod elastic;
mod flags;
mod kv;
mod latency;
mod memory;
mod paired;
mod placement;
mod planning;
mod primitives;
mod programs;
pub mod protocol;
mod rank;
pub mod rivals;
mod runtime;
mod scan;
mod server;
mod session;
mod store;
mod table;
mod tpch;
mod tpch_data;
mod trials;
pub mod worker;

use std::fs::File;
use std::io::{self, LineWriter};

use anyhow::{Context, Result};
use atoll_sys::take_standard_output;
use atoll_tools::bench::Benchmark;
use atoll_tools::exit::CommandError;
use atoll_tools::manual::{self, CompletionsArgs, ManArgs};
use clap::{Args, Subcommand};

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:
  atoll bench tpch                             22 queries, against DuckDB and plain DataFusion
  atoll bench aggregate --groups 2^10,2^20     sums by key, against DuckDB, Polars and DataFusion
  atoll bench memory                           what remote memory costs on this machine
  atoll bench tpch --json -o monday.json
  atoll bench compare monday.json friday.json  what became slower; exit code 5 where anything did

All have --runs, --warmup, --threads, --seed, --json and -o where they mean something;
results have one JSON form. Measure on an idle machine.";

/// Arguments of `atoll bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    scenario: Scenario,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
enum Scenario {
    /// TPC-H, against DuckDB and plain DataFusion
    #[command(after_help = tpch::EXAMPLES)]
    Tpch(Box<tpch::TpchArgs>),
    /// The steps from the text of a query to its plan, for the 22 of TPC-H
    #[command(after_help = planning::EXAMPLES)]
    Planning(planning::PlanningArgs),
    /// Sums by key, against DuckDB, Polars and DataFusion
    #[command(after_help = primitives::aggregate::EXAMPLES)]
    Aggregate(Box<primitives::aggregate::AggregateArgs>),
    /// Join on equal keys, against DuckDB, Polars and DataFusion
    #[command(after_help = primitives::join::EXAMPLES)]
    Join(Box<primitives::join::JoinArgs>),
    /// Sort, against DuckDB, Polars, DataFusion and the standard library
    #[command(after_help = primitives::sort::EXAMPLES)]
    Sort(Box<primitives::sort::SortArgs>),
    /// Radix partitioning, against the limit of memory
    #[command(after_help = primitives::partition::EXAMPLES)]
    Partition(Box<primitives::partition::PartitionArgs>),
    /// Cost of bound pools: Atoll's runtime against plain tokio
    #[command(after_help = runtime::EXAMPLES)]
    Runtime(Box<runtime::RuntimeArgs>),
    /// Databases in directories, against SQLite, DuckDB and PostgreSQL
    #[command(after_help = store::EXAMPLES)]
    Store(Box<store::StoreArgs>),
    /// Many clients and their small queries over one wide table, against DuckDB
    #[command(after_help = scan::EXAMPLES)]
    Scan(Box<scan::ScanArgs>),
    /// `atoll serve` against PostgreSQL, driven by pgbench
    #[command(after_help = server::EXAMPLES)]
    Server(Box<server::ServerArgs>),
    /// TPC-H of many clients with the cores that elastic allocation gives
    #[command(after_help = elastic::EXAMPLES)]
    Elastic(Box<elastic::ElasticArgs>),
    /// Key-value engines under every placement: readers beside a writer (Symas 2014)
    #[command(after_help = kv::EXAMPLES)]
    Kv(Box<kv::KvArgs>),
    /// A server of yours under every placement, with a load of yours
    #[command(after_help = placement::EXAMPLES)]
    Placement(Box<placement::PlacementArgs>),
    /// Those that need neither SQL nor another engine
    #[command(flatten)]
    Tools(Benchmark),
    /// Two results, and what became slower
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// An engine in its own process, driven by lines of JSON
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
    /// The target of `elastic`, driven by lines of JSON
    #[command(hide = true)]
    ElasticClients(elastic::ElasticClientsArgs),
    /// The target of `elastic --overhead`
    #[command(hide = true)]
    ElasticLoad(elastic::ElasticLoadArgs),
    /// A case of `kv` in its own process
    #[command(hide = true)]
    KvWorker,
    /// A shard of `scan` in its own process, driven by messages
    #[command(hide = true)]
    Shard(scan::ShardArgs),
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Write the man pages
    #[command(hide = true)]
    Man(ManArgs),
}

impl BenchArgs {
    /// Runs the benchmark; `whole` is the command line of the binary, for its manual.
    ///
    /// # Errors
    /// How the process ends.
    pub fn run(&self, whole: impl FnOnce() -> clap::Command) -> Result<(), CommandError> {
        match &self.scenario {
            Scenario::Tpch(args) => tpch::run(args),
            Scenario::Planning(args) => planning::run(args),
            Scenario::Aggregate(args) => primitives::aggregate::run(args),
            Scenario::Join(args) => primitives::join::run(args),
            Scenario::Sort(args) => primitives::sort::run(args),
            Scenario::Partition(args) => primitives::partition::run(args),
            Scenario::Runtime(args) => runtime::run(args),
            Scenario::Store(args) => store::run(args),
            Scenario::Scan(args) => scan::run(args),
            Scenario::Server(args) => server::run(args),
            Scenario::Elastic(args) => elastic::run(args),
            Scenario::Kv(args) => kv::run(args),
            Scenario::Placement(args) => placement::run(args),
            Scenario::Tools(benchmark) => benchmark.run(),
            Scenario::Compare(args) => compare::run(args),
            Scenario::Worker(args) => {
                let host = worker::this_machine;
                Ok(worker::run(args, host, io::stdin().lock(), &mut replies()?)?)
            }
            Scenario::ElasticClients(args) => {
                Ok(elastic::serve_clients(args, io::stdin().lock(), &mut replies()?)?)
            }
            Scenario::ElasticLoad(args) => {
                Ok(elastic::run_load(args, io::stdin().lock(), &mut replies()?)?)
            }
            Scenario::KvWorker => Ok(kv::serve_worker(io::stdin().lock(), &mut replies()?)?),
            Scenario::Shard(args) => {
                Ok(scan::serve_shard(args, io::stdin().lock(), &mut replies()?)?)
            }
            Scenario::Completions(args) => manual::completions(args, whole()),
            Scenario::Man(args) => manual::man(args, whole()),
        }
    }
}

/// The way of a program that answers by lines to the one that asks it: nothing that an engine prints gets into it.
fn replies() -> Result<LineWriter<File>> {
    let output = take_standard_output().context("standard output cannot be kept for replies")?;
    Ok(LineWriter::new(output))
}
