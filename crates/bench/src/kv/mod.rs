//! Key-value engines under every placement (Symas 2014): loading, then readers beside a writer, each engine in
//! processes of its own, next to the published figures.
//!
//! | File | Owns |
//! |---|---|
//! | `engine` | the trait and the names of engines |
//! | `foreign` | engines behind C interfaces |
//! | `atoll`, `fjall`, `redb` | engines in Rust |
//! | `setup` | engines that are built from sources |
//! | `records` | keys and values |
//! | `work` | loading, and reading while writing |
//! | `case` | a case, its request and its answer |
//! | `worker` | the process of a case |
//! | `arms` | the arms in words |
//! | `plan`, `estimate` | all cases of a run; what they will take |
//! | `rounds` | running them, one after the other |
//! | `published`, `findings` | the report's figures, and whether ours agree |
//! | `report`, `plot` | tables and pictures |

mod arms;
mod atoll;
mod case;
mod engine;
mod estimate;
mod findings;
mod fjall;
#[expect(unsafe_code, reason = "C interfaces; all unsafe code of the crate is there")]
mod foreign;
mod plan;
mod plot;
mod published;
mod records;
mod redb;
mod report;
mod rounds;
mod setup;
mod work;
mod worker;

use std::path::PathBuf;

use anyhow::Context;
use atoll_placement::Strategy;
use atoll_tools::bench::{Manifest, OutputArgs};
use atoll_tools::exit::{CommandError, Exit};
use atoll_topology::Machine;
use clap::{Args, Subcommand, ValueHint};

use crate::flags::seconds;
use crate::trials::placement::strategy;
use crate::trials::{TrialReport, stopped};
use engine::EngineName;
use plan::KvPlan;
use records::VALUE_BYTES_MIN;
use report::KvReport;

pub(crate) use published::published_load_ratios;
pub(crate) use worker::serve as serve_worker;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench kv --seconds 10 --records 1000000 --directory /var/tmp
  atoll bench kv --engines lmdb,rocksdb,atoll --readers 1,16,64 --arms default,spread -o kv.md -o kv.svg
  atoll bench kv --results kv-results --resume       goes on where a run was stopped
  atoll bench kv setup                               builds HyperLevelDB, Basho LevelDB and libmdbx
  atoll bench kv setup --dry-run                     says what that would fetch, and where to

Engines come from the distribution's libraries; one that is missing is named with its package, and the others
go on. On a machine of one node all arms are the same; 'atoll lab run --machine symas-8' has eight.";

/// Arguments of `atoll bench kv`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct KvArgs {
    #[command(subcommand)]
    setup: Option<KvSetup>,
    /// Engines [default: all that are installed]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Placements, in turn: default, local, spread, subset(k), aligned
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = strategy,
          default_value = "default,local,spread,subset(1),aligned")]
    arms: Vec<Strategy>,
    /// Readers beside the writer; several numbers are compared
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    readers: Vec<u32>,
    /// Seconds of each number of readers
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = seconds)]
    seconds: f64,
    /// Records [default: as many as memory and disk hold, at most the report's 100 million]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    records: Option<u64>,
    /// Bytes of a value; the report does not say how many it had
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(VALUE_BYTES_MIN as i64..=4000))]
    value_bytes: u32,
    /// Orders of the load; the first database is the one that is read and written
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        default_value = "sequential,random"
    )]
    load: Vec<plan::LoadOrder>,
    /// Runs of each, the arms in turn
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Seed of the records and of what is read and written
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Directory in which databases are created and removed [default: that of temporary files]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Directory of the results of each case
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath,
          default_value = "kv-results")]
    results: PathBuf,
    /// Go on with the run whose results are in --results
    #[arg(long)]
    resume: bool,
    /// Longest time, in seconds, that one case may take
    #[arg(long, value_name = "SECONDS", default_value_t = 43_200.0, value_parser = seconds)]
    timeout: f64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Engines from sources.
#[derive(Debug, Subcommand)]
enum KvSetup {
    /// Build the engines that no distribution has
    Setup(setup::SetupArgs),
}

/// Measures and writes the results.
pub(crate) fn run(args: &KvArgs) -> Result<(), CommandError> {
    if let Some(KvSetup::Setup(setup)) = &args.setup {
        return setup::run(setup);
    }
    let outputs = args.output.outputs(true)?;
    let machine = Machine::discover().context("this machine cannot be described")?;
    let mut manifest = Manifest::new(&machine, args.runs, 0, args.seed);
    let (plan, databases) = KvPlan::new(args, &machine)?;
    let run = rounds::run(&plan, args, databases.path())?;
    drop(databases);
    let is_stopped = run.is_stopped;
    manifest.end(run.versions());
    if run.results.is_empty() && !is_stopped {
        return Err(CommandError::with(Exit::NotHere, "no engine can be measured here"));
    }
    let report = KvReport::new(plan, run, &machine, manifest.machine.is_lab)?;
    let stopped = is_stopped.then(|| stopped(Some(&args.results)));
    report.end(&manifest, &outputs, stopped)
}
