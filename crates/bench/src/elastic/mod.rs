//! Elastic cores (Dominico 2018): TPC-H of many clients on a DBMS that knows nothing of nodes, under the system's
//! own scheduling and with the cores that `atoll elastic` gives it, mode by mode in turn.
//!
//! | Work | Paper | Clients |
//! |---|---|---|
//! | `random` | figure 6 | `--clients`, each runs the queries in its own order |
//! | `sequence` | figure 5 | the most clients, all in TPC-H's order |
//! | `single` | figures 1, 3 and 4 | one, which repeats Q6 |
//! | `thresholds` | section 4 | the most clients, `adaptive` under several thresholds |
//! | `mixed` | section 3.3 | the most clients, every other one looks orders up |
//!
//! | File | Owns |
//! |---|---|
//! | `plan` | settings, and all runs in their order |
//! | `rounds` | run after run, each result kept at once |
//! | `target`, `clients` | the process that answers; its clients |
//! | `follow` | cores given meanwhile, and counters |
//! | `overhead` | what following costs |
//! | `published`, `report`, `plot` | the paper's figures, tables, pictures |

mod clients;
mod follow;
mod overhead;
mod plan;
mod plot;
mod published;
mod report;
mod rounds;
mod target;

use anyhow::{Context, Result};
use atoll_elastic::mode::Mode;
use atoll_tools::bench::{Manifest, OutputArgs};
use atoll_tools::exit::CommandError;
use atoll_topology::Machine;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::flags;
use crate::trials::{ResultArgs, TrialReport};
use clients::ElasticEngine;
use plan::{ElasticPlan, Thresholds, thresholds};
use report::ElasticReport;

pub(crate) use clients::{ElasticClientsArgs, serve_clients};
pub(crate) use overhead::{ElasticLoadArgs, run_load};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench elastic                                        DataFusion, followed from outside
  atoll bench elastic --engine atoll                         Atoll, which gives itself cores
  atoll bench elastic --work random --clients 1,16,256 -o elastic.md -o elastic.svg
  atoll bench elastic --work thresholds --thresholds 10:70,5:50,20:90
  atoll bench elastic --results elastic-results              keeps each run; with --resume goes on when stopped
  atoll bench elastic --overhead                             what following costs: 200 threads, 8 GB
  atoll lab run --machine opteron-8387-4 --count region -- \\
      atoll bench elastic --scale-factor 0.01 --clients 4 --queries 6 --runs 1     counted, by node

The modes take turns: os (all cores, the system schedules), dense, sparse, adaptive. Next to them stand the
published figures. On a machine of one node the modes differ in the number of cores only; the output says so.";

/// Arguments of `atoll bench elastic`.
#[derive(Args, Debug)]
pub(crate) struct ElasticArgs {
    /// Scale factor of TPC-H; the paper's is 1
    #[arg(long, value_name = "SCALE", default_value_t = 1.0)]
    scale_factor: f64,
    /// Engine
    #[arg(long, value_enum, default_value = "datafusion")]
    engine: ElasticEngine,
    /// Threads of the engine [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Clients that ask at a time; several numbers are compared
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,4,16,64,256",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    clients: Vec<u32>,
    /// Queries by number, such as 1,6,18 [default: all 22]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=22))]
    queries: Vec<u8>,
    /// Kinds of work
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_enum,
        default_value = "random,single,sequence,thresholds,mixed"
    )]
    work: Vec<WorkName>,
    /// Modes, in turn; os always runs
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "dense,sparse,adaptive"
    )]
    modes: Vec<Mode>,
    /// Lower and upper thresholds of the load for `thresholds`, percent
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = thresholds,
          default_value = "10:70,5:50,10:50,10:90,30:70")]
    thresholds: Vec<Thresholds>,
    /// Runs of each, in turn
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the orders
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Longest time, in seconds, that loading or a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0, value_parser = flags::seconds)]
    timeout: f64,
    /// Measure what following costs instead
    #[arg(long, conflicts_with = "results")]
    overhead: bool,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    load: overhead::OverheadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WorkName {
    Random,
    Single,
    Sequence,
    Thresholds,
    Mixed,
}

impl WorkName {
    fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Single => "single",
            Self::Sequence => "sequence",
            Self::Thresholds => "thresholds",
            Self::Mixed => "mixed",
        }
    }
}

/// Measures and writes the results.
pub(crate) fn run(args: &ElasticArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(!args.overhead)?;
    if args.overhead {
        return overhead::run(&args.load, &outputs);
    }
    let machine = Machine::discover().context("this machine cannot be described")?;
    let mut manifest = Manifest::new(&machine, args.runs, 1, args.seed);
    let plan = ElasticPlan::new(args, &machine);
    let outcome = rounds::run(&plan, args, &machine)?;
    let is_stopped = outcome.is_stopped;
    if is_stopped && outcome.results.is_empty() {
        return Err(args.results.stopped());
    }
    let report = ElasticReport::new(&plan, outcome.results, &machine)?;
    let version = match args.engine {
        ElasticEngine::Atoll => env!("CARGO_PKG_VERSION"),
        ElasticEngine::Datafusion => datafusion::DATAFUSION_VERSION,
    };
    manifest.end([(report.engine.clone(), version.to_owned())]);
    report.end(&manifest, &outputs, is_stopped.then(|| args.results.stopped()))
}
