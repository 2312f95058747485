//! Databases in directories: single rows, bulk loads, checkpoints, recovery, against SQLite, DuckDB and
//! PostgreSQL with the same durability, and against the disk alone.

mod disk;
mod ours;
mod report;
mod rounds;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atoll_runtime::{Runtime, RuntimeOptions, THREADS_MAX};
use atoll_tools::bench::{Document, Form, Manifest, json};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use atoll_topology::Machine;
use clap::{Args, ValueEnum, ValueHint};

use crate::cache;
use crate::flags::{ContestArgs, seconds};
use crate::rivals::store::StoreEngine;
use crate::rivals::{self, Rival};
use crate::worker::this_machine;
use report::StoreReport;
use rounds::{StorePlan, measure};
use work::{INDEXES, RowStore, StoreDurability, StoreWork};

const RIVALS: [Rival; 3] = [Rival::Sqlite, Rival::Duckdb, Rival::Postgresql];

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench store
  atoll bench store --work insert,update --sessions 1,32 --durability fsync --directory /var/tmp
  atoll bench store --work insert,update,select,lookup --indexes 0,1,2 --durability off
  atoll bench store --work insert,update --indexes 1,2 --rivals postgresql,sqlite
  atoll bench store --work bulk,checkpoint,recovery --bulk-rows 10000000 --rivals none --json

Rates are transactions a second; 'fdatasync' is one write and sync of the disk after the other.";

/// Arguments of `atoll bench store`.
#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// What to measure [default: all]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    work: Vec<StoreWork>,
    /// Sessions of one process, for single rows
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 32],
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    sessions: Vec<u16>,
    /// What commits of single rows survive
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',',
          default_values_t = [StoreDurability::Fsync, StoreDurability::Off])]
    durability: Vec<StoreDurability>,
    /// Secondary indexes of the table of single rows: none, over a number, and over two
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [0, 1, 2],
          value_parser = clap::value_parser!(u8).range(..=INDEXES.len() as i64))]
    indexes: Vec<u8>,
    /// Seconds of each run with single rows
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Rows of the table of single rows
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,
    /// Rows of the table that is copied, checkpointed and recovered
    #[arg(long, value_name = "N", default_value_t = 2_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    bulk_rows: u64,
    /// Directory in which databases are created and removed [default: that of temporary files]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Workers, and threads of DuckDB [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Option<u16>,
    #[command(flatten)]
    contest: ContestArgs,
}

/// Measures and writes the results.
pub(crate) fn run(args: &StoreArgs) -> Result<(), CommandError> {
    let outputs = args.contest.run.output.outputs(false)?;
    let rivals = args.contest.rivals(&RIVALS)?;
    let (manifest, report) = contest(args, &rivals)?;
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "store",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        _ => Ok(format!("# bench store\n\n{manifest}{report}")),
    })
}

fn contest(args: &StoreArgs, rivals: &[Rival]) -> anyhow::Result<(Manifest, StoreReport)> {
    let (machine, kernel) = this_machine()?;
    let threads = args.threads.map_or(machine.cpus.len(), usize::from).clamp(1, THREADS_MAX);
    let (runs, warmup) = (args.contest.run.runs, args.contest.run.warmup);
    let mut manifest = Manifest::new(&machine, runs, warmup, args.contest.seed());
    let directory = cache::databases(args.directory.as_deref())?;
    let engines = start(args, rivals, threads, &directory)?;
    let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
    let runtime = Runtime::start(Arc::<Machine>::clone(&machine), kernel, options)?;
    let versions = engines.iter().map(|it| (it.rival.to_string(), it.version.clone()));
    let versions: Vec<_> = versions.collect();
    let plan = StorePlan {
        work: match args.work.is_empty() {
            true => StoreWork::value_variants().to_vec(),
            false => args.work.clone(),
        },
        sessions: args.sessions.clone(),
        stores: stores(args),
        time: Duration::from_secs_f64(args.seconds),
        rows: args.rows,
        bulk_rows: args.bulk_rows,
        directory: directory.path().to_owned(),
        seed: args.contest.seed(),
        rounds: (warmup, runs),
    };
    let cases = measure(&plan, &runtime, engines, &mut |what| terminal::say(what))?;
    manifest.end(versions);
    let (rows, bulk_rows) = (args.rows, args.bulk_rows);
    let directory = directory.path().parent().unwrap_or(directory.path()).display().to_string();
    Ok((manifest, StoreReport { rows, bulk_rows, directory, cases }))
}

/// The databases with a table of single rows.
fn stores(args: &StoreArgs) -> Vec<RowStore> {
    let of_durability = |durability: &StoreDurability| {
        let durability = *durability;
        args.indexes.iter().map(move |&indexes| RowStore { durability, indexes })
    };
    args.durability.iter().flat_map(of_durability).collect()
}

fn start(
    args: &StoreArgs,
    rivals: &[Rival],
    threads: usize,
    directory: &tempfile::TempDir,
) -> anyhow::Result<Vec<StoreEngine>> {
    if rivals.is_empty() {
        return Ok(Vec::new());
    }
    let python = rivals::python(args.contest.python.as_deref(), &mut |what| terminal::say(what))?;
    let patience = args.contest.patience();
    let mut started = Vec::new();
    for rival in rivals {
        let own = directory.path().join(rival.name());
        std::fs::create_dir(&own)?;
        match StoreEngine::start(*rival, &python, threads, &own, patience) {
            Ok(engine) => started.push(engine),
            Err(error) if args.contest.names_rivals() => return Err(error),
            Err(error) => terminal::say(format!("without {rival}: {error:#}")),
        }
    }
    Ok(started)
}
