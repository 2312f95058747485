//! TPC-H: Atoll against DuckDB and plain DataFusion.
//!
//! ```text
//! generator ──► one Parquet file a table ──► each engine loads them, one after the other
//! query 1, round 1:  atoll  duckdb  datafusion     each alone, the others idle
//!          round 2:  atoll  duckdb  datafusion     …
//! query 2, …
//! ```
//!
//! All engines have the same number of threads, and each is its own process, so that memory is
//! attributed. Their results are compared value by value in every round.

mod markdown;
pub(crate) mod parameters;
mod report;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use atoll_sql::tpch::QUERIES;
use atoll_tools::bench::{Manifest, own_words};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use atoll_topology::{Bytes, Machine};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};

use crate::answers::RowOrder;
use crate::cache;
use crate::flags::ContestArgs;
use crate::protocol::Loaded;
use crate::queries::{
    EnginePrograms, QueryRounds, QueryRuns, ReadBandwidth, finish, measure_query, worker,
};
use crate::rivals::{Rival, SqlEngine};
use crate::tpch_data;
use crate::trials::{
    CaseResult, ResultArgs, RunStop, TrialCase, TrialReport, TrialResults, until_signal,
};
use crate::worker::EngineKind;
use report::{TpchReport, TpchSettings};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench tpch
  atoll bench tpch --queries 1,6,18 --rivals datafusion --runs 11
  atoll bench tpch --fresh-parameters --seed 7 -o report.json -o report.md
  atoll bench tpch --scale-factor 10 --results kept     keeps each query; with --resume goes on when stopped

Each engine is its own process, which loads the same Parquet files; queries alternate between them,
and results are compared value by value. The exit code is 1 if a query fails or results differ.";

/// Queries whose time is that of their scan.
const SCAN_BOUND: [u8; 2] = [1, 6];
/// Engines that run TPC-H here.
const RIVALS: [Rival; 2] = [Rival::Duckdb, Rival::Datafusion];

/// Arguments of `atoll bench tpch`.
#[derive(Args, Debug)]
pub(crate) struct TpchArgs {
    /// Scale factor; 1 is some six million order lines
    #[arg(long, value_name = "SCALE", default_value_t = 1.0)]
    scale_factor: f64,
    /// Threads of each engine [default: one for each cpu]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Queries by number, such as 1,6,18 [default: all 22]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = clap::value_parser!(u8).range(1..=22))]
    queries: Vec<u8>,
    /// New parameters for every round, as TPC-H prescribes; the same for all engines
    #[arg(long)]
    fresh_parameters: bool,
    /// Directory of the Parquet files, made if it is not there [default: one in the cache directory]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    contest: ContestArgs,
}

/// Settings that all kept queries share.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct TpchPlan {
    machine: String,
    scale_factor: f64,
    threads: usize,
    rivals: Vec<String>,
    runs: u32,
    warmup: u32,
    seed: u64,
    fresh_parameters: bool,
}

/// A query by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TpchCase {
    /// 1 to 22.
    query: u8,
}

impl fmt::Display for TpchCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Q{}", self.query)
    }
}

impl TrialCase for TpchCase {
    fn key(&self) -> String {
        self.to_string()
    }
}

/// Measures and writes the results.
pub(crate) fn run(args: &TpchArgs) -> Result<(), CommandError> {
    let outputs = args.contest.run.output.outputs(false)?;
    if args.contest.seed.is_some() && !args.fresh_parameters {
        return Err(CommandError::with(Exit::Usage, "--seed is that of --fresh-parameters"));
    }
    let options = TpchOptions::try_from_args(args)?;
    let (manifest, report, is_stopped) =
        measure(&options, &args.results, &mut |what| terminal::say(what))?;
    if is_stopped && report.is_empty() {
        return Err(args.results.stopped());
    }
    report.end(&manifest, &outputs, is_stopped.then(|| args.results.stopped()))
}

/// The options of the benchmark.
#[derive(Clone, Debug)]
struct TpchOptions {
    /// How engines are started.
    programs: EnginePrograms,
    /// Where the data is or goes.
    data: PathBuf,
    scale_factor: f64,
    /// Threads of each engine; one for each usable cpu unless given.
    threads: Option<usize>,
    /// Rounds measured.
    runs: u32,
    /// Rounds before them.
    warmup: u32,
    queries: Vec<u8>,
    seed: u64,
    /// Whether every round has parameters of its own, or all those of the validation run.
    is_fresh: bool,
}

impl TpchOptions {
    fn try_from_args(args: &TpchArgs) -> Result<Self, CommandError> {
        let contest = &args.contest;
        let data = match &args.data {
            Some(directory) => directory.clone(),
            None => tpch_data::directory_default(&cache::directory()?, args.scale_factor),
        };
        let queries = match args.queries.is_empty() {
            true => (1..=22).collect(),
            false => args.queries.clone(),
        };
        Ok(Self {
            programs: EnginePrograms {
                own: own_words()?,
                rivals: contest.rivals(&RIVALS)?,
                python: contest.python.clone(),
                patience: contest.patience(),
            },
            data,
            scale_factor: args.scale_factor,
            threads: args.threads,
            runs: contest.run.runs,
            warmup: contest.run.warmup,
            queries,
            seed: contest.seed(),
            is_fresh: args.fresh_parameters,
        })
    }

    /// What kept queries are only reused with.
    fn plan(&self, machine: &Machine, threads: usize) -> TpchPlan {
        TpchPlan {
            machine: machine.name.clone(),
            scale_factor: self.scale_factor,
            threads,
            rivals: self.programs.rivals.iter().map(ToString::to_string).collect(),
            runs: self.runs,
            warmup: self.warmup,
            seed: self.seed,
            fresh_parameters: self.is_fresh,
        }
    }
}

/// Measures; also whether a signal ended it before the last query.
///
/// # Errors
/// When an engine cannot be started, loaded or reached. Queries that fail and results that differ
/// are not errors here but problems in the report.
fn measure(
    options: &TpchOptions,
    results: &ResultArgs,
    progress: &mut dyn FnMut(&str),
) -> Result<(Manifest, TpchReport, bool)> {
    let machine = Arc::new(Machine::discover().context("this machine cannot be described")?);
    let mut manifest = Manifest::new(&machine, options.runs, options.warmup, options.seed);
    let threads = options.threads.unwrap_or(machine.cpus.len());
    progress("measuring the bandwidth of memory");
    let bandwidth = ReadBandwidth::measure(&machine, threads)?;
    let generated = prepare_data(options, threads, progress)?;
    let file_bytes = Bytes(tpch_data::warm(&options.data)?);
    let kept = TrialResults::of(results, &options.plan(&machine, threads))?;
    let (measured, queries, is_stopped) = until_signal(|stop| {
        let mut engines = options.programs.start(threads, Some(&options.data), progress)?;
        let mut queries = Vec::with_capacity(options.queries.len());
        for number in &options.queries {
            if let Some(runs) = kept_query(&mut engines, *number, options, &kept, stop)? {
                progress(&runs.progress());
                queries.push(runs);
            }
        }
        Ok((finish(engines)?, queries, stop.is_stopped()))
    })?;
    manifest.end(measured.iter().map(|it| (it.loaded.engine.clone(), it.loaded.version.clone())));
    let settings = TpchSettings {
        scale_factor: options.scale_factor,
        threads,
        fresh_parameters: options.is_fresh,
        file_bytes,
    };
    let report = TpchReport::new(settings, bandwidth, generated, measured, queries);
    Ok((manifest, report, is_stopped))
}

/// A query's runs, of an earlier command or measured now; `None` after a signal.
fn kept_query(
    engines: &mut [SqlEngine],
    query: u8,
    options: &TpchOptions,
    kept: &TrialResults<TpchPlan>,
    stop: &RunStop,
) -> Result<Option<QueryRuns<TpchCase>>> {
    let case = TpchCase { query };
    if let Some(CaseResult { answer, .. }) = kept.get(&case)? {
        return Ok(answer);
    }
    let Some(runs) = measure_number(engines, query, options, stop)? else { return Ok(None) };
    let error = runs.problems.first().cloned();
    kept.put(&CaseResult { case, answer: Some(&runs), error })?;
    Ok(Some(runs))
}

/// Has the data written if it is not there; what Atoll's own generator took.
fn prepare_data(
    options: &TpchOptions,
    threads: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Loaded> {
    let (directory, scale_factor) = (&options.data, options.scale_factor);
    let generate = |into: Option<&Path>| {
        let own = &options.programs.own;
        let mut command = worker(own, EngineKind::Generator, threads, into);
        command.arg("--scale-factor").arg(scale_factor.to_string());
        SqlEngine::start(EngineKind::Generator.name(), &mut command, options.programs.patience)?
            .wait()
    };
    if tpch_data::is_complete(directory, scale_factor)? {
        progress("generating the data with Atoll's own generator, to time it");
        return generate(None);
    }
    progress(&format!("generating the data, and writing it to {}", directory.display()));
    let mut generated = None;
    tpch_data::make(directory, scale_factor, |partial| {
        generated = Some(generate(Some(partial))?);
        Ok(())
    })?;
    generated.context("the generator did not run")
}

/// Runs one query in rounds; `None` after a signal.
fn measure_number(
    engines: &mut [SqlEngine],
    number: u8,
    options: &TpchOptions,
    stop: &RunStop,
) -> Result<Option<QueryRuns<TpchCase>>> {
    let validation = QUERIES[usize::from(number) - 1];
    let text = |round: u32| match options.is_fresh {
        true => parameters::fresh(number, validation, options.seed, round as usize),
        false => Ok(validation.to_owned()),
    };
    let rounds =
        QueryRounds { number, runs: options.runs, warmup: options.warmup, order: order(number) };
    let measured = measure_query(engines, TpchCase { query: number }, rounds, text, stop)?;
    let Some(mut runs) = measured else { return Ok(None) };
    // Fresh parameters read different rows in every round: one round's bytes fit no median.
    if SCAN_BOUND.contains(&number) && !options.is_fresh && runs.problems.is_empty() {
        runs.scanned_bytes = engines[0].scanned_bytes(number, validation)?;
    }
    Ok(Some(runs))
}

/// Q11 orders by a sum alone, which leaves rows with equal values in any order.
fn order(query: u8) -> RowOrder {
    if query == 11 { RowOrder::Any } else { RowOrder::Given }
}
