//! `bench placement -- CMD`: a server of the user's under each placement strategy, with a load of the user's; what
//! placement is worth to this system, beside what it was worth in two papers (Kiefer 2013, section 4; Symas 2014).
//!
//! Each case starts the server anew by `atoll run --placement ARM`, waits until it is ready, runs the load, looks
//! meanwhile where threads and pages are, and stops the server. A round has a case of every arm; rounds go forward
//! and backward in turn, so that what changes with time changes all arms alike. Rounds end early when the verdict
//! about every arm is clear.
//!
//! | File | Owns |
//! |---|---|
//! | `plan` | settings, and all cases in their order |
//! | `server` | the server: started under an arm, ready, stopped |
//! | `load` | the load, and the metric in its output |
//! | `shell` | a command of the user's that is waited for, with an end |
//! | `rounds` | case after case |
//! | `verdict` | what the rounds so far tell about an arm |
//! | `worth` | what placement was worth in the papers |
//! | `report`, `plot` | tables and the picture |

mod load;
mod plan;
mod plot;
mod report;
mod rounds;
mod server;
mod shell;
mod verdict;
mod worth;

use anyhow::Context;
use atoll_placement::Strategy;
use atoll_tools::bench::{Manifest, OutputArgs};
use atoll_tools::exit::CommandError;
use atoll_topology::Machine;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::compare::{confidence, threshold};
use crate::flags::seconds;
use crate::trials::placement::strategy;
use crate::trials::{ResultArgs, TrialReport};
use load::Metric;
use plan::PlacementPlan;
use report::PlacementReport;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench placement --ready pg_isready --load 'pgbench -T 30 -c 8' --metric 'tps = ([0-9.]+)' -- \\
      postgres -D /data
  atoll bench placement --ready 'mysqladmin ping' --load 'sysbench oltp_read_only run' \\
      --metric 'transactions: .*\\(([0-9.]+) per sec' --arms aligned,interleave -- mysqld --datadir=/data
  atoll bench placement --load './queries.sh' -o worth.md -o worth.svg -- ./server --port 9000
  atoll bench placement --results worth --resume --load ...   goes on where a run was stopped

Without --metric the time of the load counts. The server stays in the foreground and is started anew for each
case, as 'atoll run --placement ARM -- CMD' starts it; the load has to leave data as it found it, or to prepare
them itself. Both run on this machine: leave cpus for the load, or start it elsewhere by ssh. On a machine of one
node all arms are the same; 'atoll lab run' has machines of several.";

/// Arguments of `atoll bench placement`.
#[derive(Args, Debug)]
pub(crate) struct PlacementArgs {
    /// Command of the shell that puts load on the server, and ends
    #[arg(long, value_name = "COMMAND")]
    load: String,
    /// Command of the shell that succeeds once the server is ready [default: a second after the start]
    #[arg(long, value_name = "COMMAND")]
    ready: Option<String>,
    /// Regular expression with one group: the figure in the load's output, its last match [default: seconds
    /// that the load takes]
    #[arg(long, value_name = "REGEX", value_parser = Metric::parse)]
    metric: Option<Metric>,
    /// Whether more of the metric is better, or less [default: more of a metric, less of a time]
    #[arg(long, value_name = "WHICH", value_enum)]
    better: Option<BetterName>,
    /// Placements that are compared with default: local, interleave, subset(k), aligned, ahead(k), farthest
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = strategy,
          default_value = "local,interleave,aligned,ahead(1)")]
    arms: Vec<Strategy>,
    /// Rounds at most; in each every arm is measured once
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// How sure a verdict has to be
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = confidence)]
    confidence: f64,
    /// Differences up to this count as none
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = threshold)]
    threshold: f64,
    /// Longest time, in seconds, until the server is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    ready_timeout: f64,
    /// Longest time, in seconds, that the load may take
    #[arg(long, value_name = "SECONDS", default_value_t = 3600.0, value_parser = seconds)]
    timeout: f64,
    /// Signal that stops the server
    #[arg(long, value_name = "SIGNAL", value_enum, default_value = "term")]
    stop_signal: StopSignal,
    /// Time, in seconds, that the server has to stop before it is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    grace: f64,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    server: Vec<String>,
}

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BetterName {
    More,
    Less,
}

/// Signals that servers stop on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StopSignal {
    Term,
    Int,
    Quit,
}

/// Measures and writes the results.
pub(crate) fn run(args: &PlacementArgs) -> Result<(), CommandError> {
    let outputs = args.output.outputs(true)?;
    let machine = Machine::discover().context("this machine cannot be described")?;
    let mut manifest = Manifest::new(&machine, args.repetitions, 0, 0);
    let plan = PlacementPlan::new(args, &machine);
    let run = rounds::run(&plan, args, &machine)?;
    let is_stopped = run.is_stopped;
    manifest.end([]);
    if is_stopped && run.results.is_empty() {
        return Err(args.results.stopped());
    }
    let report = PlacementReport::new(plan, args, run, &manifest)?;
    report.end(&manifest, &outputs, is_stopped.then(|| args.results.stopped()))
}
