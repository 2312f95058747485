//! Shared scans: many clients ask small unpredictable questions of one wide table while it changes, as in the
//! study of Giceva (2011) on CSCS, whose workload is that of an airline booking system.
//!
//! | File | Owns |
//! |---|---|
//! | `attributes`, `text` | the 48 attributes of the relation |
//! | `relation` | its rows, made of a seed, and the file that every engine loads |
//! | `queries` | statements and their parameters |
//! | `client` | a client, which queries and changes |
//! | `ours` | the database, and its clients in closed and open loops |
//! | `cycles` | statistics of the cycles of shared scans |
//! | `designs` | threads and processes, side by side |
//! | `rounds` | everyone in turn |
//! | `reports` | reports alongside the clients, with or without a separate pool |
//! | `report`, `plot` | the results |

mod attributes;
mod client;
mod cycles;
mod designs;
mod ours;
mod plot;
mod queries;
mod relation;
mod report;
mod reports;
mod rounds;
mod text;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use atoll_primitives::Tuning;
use atoll_runtime::{Runtime, RuntimeOptions, THREADS_MAX};
use atoll_tools::bench::{Document, Form, Manifest, json};
use atoll_tools::exit::CommandError;
use atoll_tools::terminal;
use atoll_tools::workload::Rig;
use atoll_topology::Machine;
use clap::{Args, ValueEnum, ValueHint};
use serde_json::json;

use crate::cache;
use crate::flags::{ContestArgs, seconds};
use crate::primitives::bandwidth::Meter;
use crate::rivals::scan::ScanEngine;
use crate::rivals::{self, Rival};
use crate::worker::this_machine;
use client::Bookings;
use designs::DesignSetup;
pub(crate) use designs::{ShardArgs, serve as serve_shard};
use ours::BookingDatabase;
use queries::ScanQueries;
use relation::{Relation, raw_bytes};
use report::{RelationReport, ScanCase, ScanReport};
use rounds::{ScanPlan, ScanRounds, start_rival};
use work::{ScanWork, SharedScan};

const RIVALS: [Rival; 1] = [Rival::Duckdb];
/// Passes over the memory when its bandwidth is measured.
const BANDWIDTH_PASSES: usize = 9;

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench scan
  atoll bench scan --work read --clients 1,1024 --shared-scan on --rivals none
  atoll bench scan --work changes,mix --changes 0,0.1,0.5 --rows 500000,2000000 --rivals none --json
  atoll bench scan --rivals none -o scan.md -o scan.json -o scan.svg
  atoll bench scan --work read --profile --rivals none
  atoll bench scan --work designs,pools --rivals none
  atoll bench scan --work read --rivals none --scale-up 1..128 --simulate --machine epyc-2-nps4
  atoll bench scan --statements 1     queries of one statement, which a rival's join answers best

Rates are statements a second. Latencies of 'open' count from the moment at which a query was to arrive.";

/// Arguments of `atoll bench scan`.
#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    /// What to measure [default: all]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    work: Vec<ScanWork>,
    /// Rows of the relation; several numbers are compared
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2_000_000],
          value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    rows: Vec<u64>,
    /// Clients, each of which waits for its answer
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 64, 256, 1024],
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: Vec<u16>,
    /// Shares of changes for 'changes'
    #[arg(long, value_name = "SHARES", value_delimiter = ',',
          default_values_t = [0.0, 0.02, 0.05, 0.1, 0.2, 0.5], value_parser = share)]
    changes: Vec<f64>,
    /// Arrivals for 'open', as shares of the fastest closed loop
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_values_t = [0.5, 0.8], value_parser = share)]
    load: Vec<f64>,
    /// Statements that queries are drawn from, of random attributes
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    statements: u16,
    /// Whether Atoll answers selections by shared scans [default: the database's setting]
    #[arg(long, value_name = "HOW", value_enum)]
    shared_scan: Option<SharedScan>,
    /// Leave out queries that are sent as text
    #[arg(long)]
    no_text: bool,
    /// Show where the time of cycles goes, and processor counters
    #[arg(long)]
    profile: bool,
    /// Numbers of threads, as 1..128, for which the fastest cycle is scaled up
    #[arg(long, value_name = "FROM..TO", value_parser = doubled, requires_all = ["simulate", "machine"])]
    scale_up: Option<ThreadCounts>,
    /// Scale up by a model of a machine
    #[arg(long, requires = "scale_up")]
    simulate: bool,
    /// The machine: a name that `atoll topo --machine` knows, or a file
    #[arg(long, value_name = "MACHINE", requires = "scale_up")]
    machine: Option<String>,
    /// Seconds of each run
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// Directory in which the database is created and removed [default: that of temporary files]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
    /// Workers, and threads of DuckDB; several numbers are compared [default: one for each cpu]
    #[arg(long, value_name = "N", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Vec<u16>,
    #[command(flatten)]
    contest: ContestArgs,
}

/// Numbers of threads, each twice the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ThreadCounts(Vec<usize>);

fn doubled(text: &str) -> Result<ThreadCounts, String> {
    let expected =
        || "expected the first and the last number of threads, such as 1..128".to_owned();
    let (first, last) = text.split_once("..").ok_or_else(expected)?;
    let number =
        |text: &str| text.parse::<usize>().ok().filter(|it| (1..=THREADS_MAX).contains(it));
    let (first, last) = number(first).zip(number(last)).ok_or_else(expected)?;
    if first > last {
        return Err(expected());
    }
    let all = std::iter::successors(Some(first), |it| Some(it * 2)).take_while(|it| *it < last);
    Ok(ThreadCounts(all.chain([last]).collect()))
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share from 0 to 1".to_owned()),
    }
}

/// Measures and writes the results.
pub(crate) fn run(args: &ScanArgs) -> Result<(), CommandError> {
    let outputs = args.contest.run.output.outputs(true)?;
    let rivals = args.contest.rivals(&RIVALS)?;
    let (manifest, report) = measure(args, !rivals.is_empty())?;
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "scan",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        Form::Svg => Ok(plot::plot(&report)),
        Form::Text => Ok(format!("# bench scan\n\n{manifest}{report}")),
    })
}

fn measure(args: &ScanArgs, has_rival: bool) -> anyhow::Result<(Manifest, ScanReport)> {
    let (machine, _) = this_machine()?;
    let run = &args.contest.run;
    let mut manifest = Manifest::new(&machine, run.runs, run.warmup, args.contest.seed());
    let cpus = machine.cpus.len().clamp(1, THREADS_MAX);
    let threads: Vec<usize> = match args.threads.is_empty() {
        true => vec![cpus],
        false => args.threads.iter().map(|threads| usize::from(*threads)).collect(),
    };
    let plan = ScanPlan {
        work: match args.work.is_empty() {
            true => ScanWork::value_variants().to_vec(),
            false => args.work.clone(),
        },
        clients: args.clients.iter().map(|clients| usize::from(*clients)).collect(),
        changes: args.changes.clone(),
        loads: args.load.clone(),
        text: !args.no_text,
        time: Duration::from_secs_f64(args.seconds),
        seed: args.contest.seed(),
        rounds: (run.warmup, run.runs),
    };
    let python = match has_rival {
        true => Some(rivals::python(args.contest.python.as_deref(), &mut |it| terminal::say(it))?),
        false => None,
    };
    let setup = ScanSetup { args, machine, plan, python };
    let mut report =
        ScanReport { relations: Vec::new(), has_profile: args.profile, cases: Vec::new() };
    let mut versions = Vec::new();
    for rows in &args.rows {
        for threads in &threads {
            let (relation, cases, version) = setup.measure(*rows, *threads)?;
            report.relations.push(relation);
            report.cases.extend(cases);
            versions.extend(version.map(|version| (Rival::Duckdb.to_string(), version)));
        }
    }
    manifest.end(versions);
    Ok((manifest, report))
}

/// Settings shared by all relations.
struct ScanSetup<'a> {
    args: &'a ScanArgs,
    machine: Arc<Machine>,
    plan: ScanPlan,
    python: Option<PathBuf>,
}

impl ScanSetup<'_> {
    /// Makes, loads and measures one relation; and the version of the rival.
    fn measure(
        &self,
        rows: u64,
        threads: usize,
    ) -> anyhow::Result<(RelationReport, Vec<ScanCase>, Option<String>)> {
        let (args, seed) = (self.args, self.args.contest.seed());
        let bandwidth = self.bandwidth(threads)?;
        terminal::say(format!("making {rows} bookings"));
        let relation = Relation::new(rows, seed);
        let file = relation.file(&cache::directory()?, threads)?;
        let queries = ScanQueries::draw(&relation, usize::from(args.statements), seed)?;
        let rival = self.rival(threads, &file, &queries)?;
        terminal::say("loading them");
        let directory = cache::databases(args.directory.as_deref())?;
        let (statements, raw_bytes) = (queries.statements.len(), raw_bytes(&relation));
        let start = Instant::now();
        let database = BookingDatabase::load(
            &self.runtime(threads)?,
            Some(directory.path().join("atoll")),
            &file,
            Bookings { relation, queries, next_row: AtomicU64::new(rows) },
            args.shared_scan.map(SharedScan::setting).into_iter().collect(),
        )?;
        let load_seconds = start.elapsed().as_secs_f64();
        let table_bytes = database.bytes()?;
        let version = rival.as_ref().map(|rival| rival.version.clone());
        let rival_empty_query_us = rival.as_ref().map(|rival| rival.empty_query_us);
        let (plan, setting) = (&self.plan, json!({ "rows": rows, "threads": threads }));
        let (designs, cases, found) = Default::default();
        let statements_of_all = database.bookings.queries.statements.iter().copied().collect();
        let machine = Arc::clone(&self.machine);
        let setup =
            DesignSetup { machine, rows, seed, shards: threads, statements: statements_of_all };
        let mut rounds =
            ScanRounds { plan, setting, database, rival, setup, designs, cases, found };
        rounds.measure(&mut |what| terminal::say(what))?;
        let found = rounds.found_rows()?;
        let (counted, no_counters) = match args.profile.then(|| rounds.counted()).transpose()? {
            Some(Ok(counted)) => (Some(counted), None),
            Some(Err(reason)) => (None, Some(reason)),
            None => (None, None),
        };
        let scale_up = match (&args.scale_up, &args.machine) {
            (Some(threads), Some(machine)) => Some(rounds.scale_up(machine, &threads.0)?),
            _ => None,
        };
        let report = RelationReport {
            rows,
            threads,
            nodes: self.machine.nodes_with_cpus().count(),
            statements,
            raw_bytes,
            table_bytes,
            load_seconds,
            bandwidth,
            found,
            rival_empty_query_us,
            counted,
            no_counters,
            scale_up,
        };
        Ok((report, rounds.cases, version))
    }

    fn rival(
        &self,
        threads: usize,
        file: &Path,
        queries: &ScanQueries,
    ) -> anyhow::Result<Option<ScanEngine>> {
        let Some(python) = &self.python else { return Ok(None) };
        terminal::say("DuckDB: loading the bookings");
        start_rival(python, threads, self.args.contest.patience(), file, queries).map(Some)
    }

    /// Read bandwidth of the idle workers, GB/s.
    fn bandwidth(&self, threads: usize) -> anyhow::Result<f64> {
        terminal::say("measuring the bandwidth of memory");
        let rig = Rig::start(&self.machine, threads, &Tuning::default())?;
        Meter::new(&rig)?.fastest_read(BANDWIDTH_PASSES)
    }

    fn runtime(&self, threads: usize) -> anyhow::Result<Runtime> {
        let (_, kernel) = this_machine()?;
        let options = RuntimeOptions { threads: Some(threads), ..RuntimeOptions::default() };
        Ok(Runtime::start(Arc::clone(&self.machine), kernel, options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_double_up_to_the_last() {
        let of = |text: &str| doubled(text).map(|counts| counts.0);
        assert_eq!(of("1..8"), Ok(vec![1, 2, 4, 8]));
        assert_eq!(of("3..20"), Ok(vec![3, 6, 12, 20]));
        assert_eq!(of("5..5"), Ok(vec![5]));
        for wrong in ["", "8", "0..4", "4..1", "1..x", "1..99999999"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
