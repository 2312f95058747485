//! `tune`: fits the primitives to this machine, shows the gain, keeps the tuning with the machine's facts.

mod descent;
mod report;
mod work;

use std::sync::Arc;
use std::time::SystemTime;

use atoll_formats::store;
use atoll_primitives::Tuning;
use atoll_topology::Fact;

use crate::exit::CommandError;
use crate::terminal;
use crate::topo::live;
use crate::workload::{Rig, count};
use report::TuneReport;
use work::Works;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:
  atoll tune                     fit the primitives to this machine and keep the result
  atoll tune --dry-run --json    without keeping it
  atoll tune --rows 2^24         on more data, for machines with large caches

Partitioning, aggregation and joins of random rows are run with a few values of each size; a value is
taken when it is faster, pair by pair with what was best before. The result is kept with what 'topo
measure' found, and later commands use it. Tune on an idle machine.";

/// Fewer rows fit caches, and are worked on in less time than differs from run to run.
const ROWS_ENOUGH: u64 = 1 << 20;

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct TuneArgs {
    /// Number of rows
    #[arg(long, value_name = "N", default_value = "2^22", value_parser = count)]
    rows: u64,
    /// Workers [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=8192))]
    threads: Option<u16>,
    /// Pairs of runs for each value
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the data
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Do not keep the result for later commands
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Tunes, shows, keeps.
pub(crate) fn run(args: &TuneArgs) -> Result<(), CommandError> {
    if args.rows < ROWS_ENOUGH {
        let rows = args.rows;
        terminal::say(format_args!("warning: {rows} rows are few: the results are mostly noise"));
    }
    let machine = Arc::new(live()?.machine);
    let threads = args.threads.map_or(machine.cpus.len().max(1), usize::from);
    let untuned = Tuning::default();
    let rig = Rig::start(&machine, threads, &untuned)?;
    let works = Works::prepare(&rig, args.rows, args.seed)?;
    let (tuned, gains) = descent::tune(&works, &untuned, args.runs, &mut terminal::say)?;
    let kept = match args.dry_run {
        true => None,
        false => Some(keep(&tuned)?),
    };
    let report = TuneReport { rows: args.rows, threads, untuned, tuned, gains, kept };
    crate::bench::put(None, &report.written(args.json)?)
}

/// Keeps it; the file.
fn keep(tuned: &Tuning) -> Result<String, CommandError> {
    let now = SystemTime::now();
    let facts: Vec<Fact> =
        tuned.facts().into_iter().map(|fact| Fact { at: Some(now), ..fact }).collect();
    let file = store::save_live(&facts).map_err(anyhow::Error::from)?;
    Ok(file.display().to_string())
}
