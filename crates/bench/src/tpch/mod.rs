//! TPC-H: Atoll against DuckDB and plain DataFusion.
//!
//! ```text
//! generator ──► one Parquet file a table ──► each engine loads them, one after the other
//! query 1, round 1:  atoll  duckdb  datafusion     each alone, the others idle
//!          round 2:  atoll  duckdb  datafusion     …
//! query 2, …
//! ```
//!
//! All engines have the same number of threads, and each is a process of its own, so that memory is
//! told apart. Their results are compared value by value in every round.

pub(crate) mod data;
mod markdown;
mod parameters;
pub mod report;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atoll_sql::tpch::QUERIES;
use atoll_topology::{Bytes, Machine};
use clap::ValueEnum;

use crate::compare::{self, RowOrder};
use crate::process::Engine;
use crate::python;
use crate::worker::EngineKind;
use crate::worker::protocol::{Answer, Loaded};
use crate::{Manifest, scan};
use report::{Measured, QueryRuns, Report, Settings};

/// Queries whose time is that of their scan.
const SCAN_BOUND: [u8; 2] = [1, 6];

/// What Atoll is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// DuckDB, from its Python package.
    Duckdb,
    /// DataFusion as it comes.
    Datafusion,
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program, which is started again for each engine.
    pub program: PathBuf,
    /// Where the rivals' programs are kept.
    pub cache: PathBuf,
    /// Where the data is or goes; a directory in the cache unless given.
    pub data: Option<PathBuf>,
    /// Scale factor; 1 is some six million order lines.
    pub scale_factor: f64,
    /// Threads of each engine; one for each usable cpu unless given.
    pub threads: Option<usize>,
    /// Rounds measured.
    pub runs: usize,
    /// Rounds before them.
    pub warmup: usize,
    /// Numbers of the queries.
    pub queries: Vec<u8>,
    /// What Atoll is compared with.
    pub rivals: Vec<Rival>,
    /// How long a load or a query may take.
    pub patience: Duration,
    /// Seed of fresh parameters for every round; those of the validation run unless given.
    pub fresh_seed: Option<u64>,
}

/// Measures.
///
/// # Errors
/// When an engine cannot be started, loaded or reached. Queries that fail and results that differ
/// are no error here but problems in the report.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    ensure!(options.runs > 0, "--runs is at least 1");
    let mut numbers = options.queries.iter();
    ensure!(numbers.all(|n| (1..=22).contains(n)), "TPC-H's queries are numbered 1 to 22");
    let machine = Arc::new(Machine::discover().context("this machine cannot be described")?);
    let mut manifest = Manifest::of(&machine);
    let threads = options.threads.unwrap_or(machine.cpus.len());
    progress("measuring the bandwidth of memory");
    let bandwidth = scan::bandwidth(&machine, threads)?;
    let (directory, generated) = prepare_data(options, threads, progress)?;
    let file_bytes = Bytes(data::warm(&directory)?);
    let mut engines = start(options, threads, &directory, progress)?;
    let mut queries = Vec::with_capacity(options.queries.len());
    for number in &options.queries {
        let runs = measure(&mut engines, *number, options)?;
        progress(&runs.progress());
        queries.push(runs);
    }
    let mut measured = Vec::with_capacity(engines.len());
    for engine in engines {
        let loaded = engine.loaded.clone();
        measured.push(Measured { peak_rss_bytes: engine.finish()?, loaded });
    }
    manifest.end();
    let settings = Settings {
        scale_factor: options.scale_factor,
        threads,
        runs: options.runs,
        warmup: options.warmup,
        fresh_seed: options.fresh_seed,
        file_bytes,
    };
    Ok(Report::new(manifest, settings, bandwidth, generated, measured, queries))
}

/// The directory of the data, written if it is not there; and what Atoll's own generator took.
fn prepare_data(
    options: &Options,
    threads: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<(PathBuf, Loaded)> {
    let scale_factor = options.scale_factor;
    let directory = options.data.clone();
    let directory =
        directory.unwrap_or_else(|| data::directory_default(&options.cache, scale_factor));
    let generate = |into: Option<&Path>| {
        let mut command = worker(options, EngineKind::Generator, threads, into);
        command.arg("--scale-factor").arg(scale_factor.to_string());
        Engine::start(EngineKind::Generator.name(), &mut command, options.patience)?.wait()
    };
    if data::is_complete(&directory, scale_factor)? {
        progress("generating the data with Atoll's own generator, to time it");
        return Ok((directory, generate(None)?));
    }
    progress(&format!("generating the data, and writing it to {}", directory.display()));
    let mut generated = None;
    data::make(&directory, scale_factor, |partial| {
        generated = Some(generate(Some(partial))?);
        Ok(())
    })?;
    Ok((directory, generated.context("the generator did not run")?))
}

/// The command that makes this program an engine.
fn worker(options: &Options, kind: EngineKind, threads: usize, data: Option<&Path>) -> Command {
    let mut command = Command::new(&options.program);
    command.args(["worker", "--engine", kind.name(), "--threads"]).arg(threads.to_string());
    if let Some(data) = data {
        command.arg("--data").arg(data);
    }
    command
}

/// Starts the engines, one after the other; Atoll is the first.
fn start(
    options: &Options,
    threads: usize,
    data: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Engine>> {
    let mut commands = vec![("atoll", worker(options, EngineKind::Atoll, threads, Some(data)))];
    for rival in &options.rivals {
        commands.push(match rival {
            Rival::Duckdb => ("duckdb", duckdb(options, threads, data, progress)?),
            Rival::Datafusion => {
                ("datafusion", worker(options, EngineKind::Datafusion, threads, Some(data)))
            }
        });
    }
    let mut engines = Vec::with_capacity(commands.len());
    for (name, mut command) in commands {
        progress(&format!("{name}: loading"));
        let engine = Engine::start(name, &mut command, options.patience)?;
        let Loaded { version, load_ms, rss_bytes, .. } = &engine.loaded;
        let resident = Bytes(*rss_bytes);
        progress(&format!("{name} {version}: loaded in {load_ms:.0} ms, {resident} resident"));
        engines.push(engine);
    }
    Ok(engines)
}

fn duckdb(
    options: &Options,
    threads: usize,
    data: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Command> {
    let rival = python::prepare(&options.cache, progress)?;
    let mut command = Command::new(rival.python);
    command.arg(rival.script).arg("--threads").arg(threads.to_string()).arg("--data").arg(data);
    Ok(command)
}

/// Runs one query in rounds, all engines in turn in each. The first problem ends it.
fn measure(engines: &mut [Engine], number: u8, options: &Options) -> Result<QueryRuns> {
    let mut runs = QueryRuns::new(number, engines.iter().map(|engine| engine.name().to_owned()));
    let validation = QUERIES[usize::from(number) - 1];
    for round in 0..options.warmup + options.runs {
        let sql = match options.fresh_seed {
            Some(seed) => parameters::fresh(number, validation, seed, round)?,
            None => validation.to_owned(),
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
            return Ok(runs);
        }
        runs.rows = answers[0].values.len();
        if round >= options.warmup {
            runs.add(answers.iter().map(|answer| answer.ms));
        }
    }
    // Fresh parameters read different rows in every round: one round's bytes fit no median.
    if SCAN_BOUND.contains(&number) && options.fresh_seed.is_none() {
        runs.scanned_bytes = engines[0].scanned_bytes(number, validation)?;
    }
    Ok(runs)
}

/// Q11 orders by a sum alone, which leaves rows with equal values in any order.
fn order(query: u8) -> RowOrder {
    if query == 11 { RowOrder::Any } else { RowOrder::Given }
}

/// Compares every rival's answer with Atoll's.
fn compare_all(engines: &[Engine], answers: &[Answer], runs: &mut QueryRuns) {
    for (engine, answer) in engines.iter().zip(answers).skip(1) {
        if let Some(difference) = compare::difference(&answers[0], answer, order(answer.query)) {
            let (atoll, rival) = (engines[0].name(), engine.name());
            runs.problem(format!("{atoll} and {rival} differ: {difference}"));
        }
    }
}
