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
mod parameters;
mod report;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use atoll_primitives::Tuning;
use atoll_sql::tpch::QUERIES;
use atoll_tools::bench::{Document, Form, Manifest, json, own_words};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use atoll_tools::workload::Rig;
use atoll_topology::{Bytes, Machine};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};

use crate::answers::{self, RowOrder};
use crate::cache;
use crate::flags::ContestArgs;
use crate::primitives::bandwidth::Meter;
use crate::protocol::{Answer, Loaded};
use crate::rivals::{self, Rival, SqlEngine};
use crate::tpch_data;
use crate::trials::{CaseResult, ResultArgs, RunStop, TrialCase, TrialResults, until_signal};
use crate::worker::EngineKind;
use report::{Bandwidth, EngineMeasured, QueryRuns, TpchReport, TpchSettings};

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
/// Passes over the memory when its bandwidth is measured.
const BANDWIDTH_PASSES: usize = 9;
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TpchCase {
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
    outputs.write(|form| match form {
        Form::Json => json(&Document {
            benchmark: "tpch",
            manifest: &manifest,
            measurements: report.measurements(),
            details: &report,
        }),
        _ => Ok(report.to_markdown(&manifest)),
    })?;
    report.problems.iter().for_each(terminal::say_error);
    match (is_stopped, report.problems.is_empty()) {
        (true, _) => Err(args.results.stopped()),
        (false, true) => Ok(()),
        (false, false) => Err(CommandError::quietly(Exit::Statement)),
    }
}

/// The options of the benchmark.
#[derive(Clone, Debug)]
struct TpchOptions {
    /// The words that start this program again, as each engine.
    own: Vec<OsString>,
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
    rivals: Vec<Rival>,
    python: Option<PathBuf>,
    /// How long a load or a query may take.
    patience: Duration,
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
            own: own_words()?,
            data,
            scale_factor: args.scale_factor,
            threads: args.threads,
            runs: contest.run.runs,
            warmup: contest.run.warmup,
            queries,
            rivals: contest.rivals(&RIVALS)?,
            python: contest.python.clone(),
            patience: contest.patience(),
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
            rivals: self.rivals.iter().map(ToString::to_string).collect(),
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
    let bandwidth = bandwidth(&machine, threads)?;
    let generated = prepare_data(options, threads, progress)?;
    let file_bytes = Bytes(tpch_data::warm(&options.data)?);
    let kept = TrialResults::of(results, &options.plan(&machine, threads))?;
    let (measured, queries, is_stopped) = until_signal(|stop| {
        let mut engines = start(options, threads, progress)?;
        let mut queries = Vec::with_capacity(options.queries.len());
        for number in &options.queries {
            if let Some(runs) = kept_query(&mut engines, *number, options, &kept, stop)? {
                progress(&runs.progress());
                queries.push(runs);
            }
        }
        let mut measured = Vec::with_capacity(engines.len());
        for engine in engines {
            let loaded = engine.loaded.clone();
            measured.push(EngineMeasured { peak_rss_bytes: engine.finish()?, loaded });
        }
        Ok((measured, queries, stop.is_stopped()))
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
) -> Result<Option<QueryRuns>> {
    let case = TpchCase { query };
    if let Some(CaseResult { answer, .. }) = kept.get(&case)? {
        return Ok(answer);
    }
    let Some(runs) = measure_query(engines, query, options, stop)? else { return Ok(None) };
    let error = runs.problems.first().cloned();
    kept.put(&CaseResult { case, answer: Some(&runs), error })?;
    Ok(Some(runs))
}

/// How fast memory can be read by as many bound threads, each reading its own node.
fn bandwidth(machine: &Arc<Machine>, threads: usize) -> Result<Bandwidth> {
    let rig = Rig::start(machine, threads, &Tuning::default())?;
    let meter = Meter::new(&rig)?;
    Ok(Bandwidth {
        threads: rig.threads,
        buffer_bytes: Bytes(meter.bytes() as u64),
        passes: BANDWIDTH_PASSES,
        bytes_per_second: meter.fastest_read(BANDWIDTH_PASSES)? * 1e9,
    })
}

/// Has the data written if it is not there; what Atoll's own generator took.
fn prepare_data(
    options: &TpchOptions,
    threads: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Loaded> {
    let (directory, scale_factor) = (&options.data, options.scale_factor);
    let generate = |into: Option<&Path>| {
        let mut command = worker(options, EngineKind::Generator, threads, into);
        command.arg("--scale-factor").arg(scale_factor.to_string());
        SqlEngine::start(EngineKind::Generator.name(), &mut command, options.patience)?.wait()
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

/// The command that makes this program an engine.
fn worker(options: &TpchOptions, kind: EngineKind, threads: usize, data: Option<&Path>) -> Command {
    let (program, words) = options.own.split_first().expect("a program has a name");
    let mut command = Command::new(program);
    command.args(words).args(["worker", "--engine", kind.name(), "--threads"]);
    command.arg(threads.to_string());
    if let Some(data) = data {
        command.arg("--data").arg(data);
    }
    command
}

/// Starts the engines, one after the other; Atoll is the first.
fn start(
    options: &TpchOptions,
    threads: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<SqlEngine>> {
    let data = options.data.as_path();
    let mut commands = vec![("atoll", worker(options, EngineKind::Atoll, threads, Some(data)))];
    for rival in &options.rivals {
        commands.push(match rival {
            Rival::Duckdb => ("duckdb", duckdb(options, threads, progress)?),
            _ => ("datafusion", worker(options, EngineKind::Datafusion, threads, Some(data))),
        });
    }
    let mut engines = Vec::with_capacity(commands.len());
    for (name, mut command) in commands {
        progress(&format!("{name}: loading"));
        let engine = SqlEngine::start(name, &mut command, options.patience)?;
        let Loaded { version, load_ms, rss_bytes, .. } = &engine.loaded;
        let resident = Bytes(*rss_bytes);
        progress(&format!("{name} {version}: loaded in {load_ms:.0} ms, {resident} resident"));
        engines.push(engine);
    }
    Ok(engines)
}

fn duckdb(
    options: &TpchOptions,
    threads: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Command> {
    let python = rivals::python(options.python.as_deref(), progress)?;
    let mut command = Command::new(python);
    command.args(["-c", rivals::DUCKDB_SCRIPT, "--threads", &threads.to_string(), "--data"]);
    command.arg(&options.data);
    Ok(command)
}

/// Runs one query in rounds, all engines in turn in each. The first problem ends it; `None` after a signal.
fn measure_query(
    engines: &mut [SqlEngine],
    number: u8,
    options: &TpchOptions,
    stop: &RunStop,
) -> Result<Option<QueryRuns>> {
    let mut runs = QueryRuns::new(number, engines.iter().map(|engine| engine.name().to_owned()));
    let validation = QUERIES[usize::from(number) - 1];
    for round in 0..options.warmup + options.runs {
        if stop.is_stopped() {
            return Ok(None);
        }
        let sql = match options.is_fresh {
            true => parameters::fresh(number, validation, options.seed, round as usize)?,
            false => validation.to_owned(),
        };
        let mut answers = Vec::with_capacity(engines.len());
        for engine in engines.iter_mut() {
            match engine.ask(number, &sql)? {
                Ok(answer) => answers.push(answer),
                Err(error) => runs.problem(format!("{} failed: {error}", engine.name())),
            }
        }
        if runs.problems.is_empty() {
            compare_all(engines, &answers, &mut runs);
        }
        if !runs.problems.is_empty() {
            return Ok(Some(runs));
        }
        runs.rows = answers[0].values.len();
        if round >= options.warmup {
            runs.add(answers.iter().map(|answer| answer.ms));
        }
    }
    // Fresh parameters read different rows in every round: one round's bytes fit no median.
    if SCAN_BOUND.contains(&number) && !options.is_fresh {
        runs.scanned_bytes = engines[0].scanned_bytes(number, validation)?;
    }
    Ok(Some(runs))
}

/// Q11 orders by a sum alone, which leaves rows with equal values in any order.
fn order(query: u8) -> RowOrder {
    if query == 11 { RowOrder::Any } else { RowOrder::Given }
}

/// Compares every rival's answer with Atoll's.
fn compare_all(engines: &[SqlEngine], answers: &[Answer], runs: &mut QueryRuns) {
    for (engine, answer) in engines.iter().zip(answers).skip(1) {
        if let Some(difference) = answers::difference(&answers[0], answer, order(answer.query)) {
            let (atoll, rival) = (engines[0].name(), engine.name());
            runs.problem(format!("{atoll} and {rival} differ: {difference}"));
        }
    }
}
