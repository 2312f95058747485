//! `atoll bench sql`: queries of one kind over one generated table, against DuckDB.
//!
//! ```text
//! events.sql ──► each engine makes the table itself, from the same text
//! query 1, round 1:  atoll  duckdb     each alone, the other idle
//!          round 2:  atoll  duckdb     …
//! query 2, …
//! ```
//!
//! The kinds of queries are files beside this one. Their results are compared value by value in every round.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result};
use atoll_tools::bench::{Manifest, Measurement, own_words};
use atoll_tools::exit::{CommandError, Exit};
use atoll_tools::terminal;
use atoll_topology::{Bytes, Machine};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answers::RowOrder;
use crate::flags::ContestArgs;
use crate::queries::{
    EngineMeasured, EnginePrograms, QueryRounds, QueryRuns, ReadBandwidth, TimedQueries, finish,
    measure_query,
};
use crate::rivals::{Rival, SqlEngine};
use crate::trials::{
    CaseResult, ResultArgs, RunStop, TrialCase, TrialReport, TrialResults, until_signal,
};

/// What `--help` shows.
pub(crate) const EXAMPLES: &str = "\
Examples:
  atoll bench sql --work order                            sorts, top-k, windows and groups of 2 million rows
  atoll bench sql --work order --list                     the names of its queries
  atoll bench sql --work order --queries 'top 10 by string;rollup' --rows 10000000
  atoll bench sql --work order --results kept             keeps each query; with --resume goes on when stopped

Each engine is its own process, which makes the same table; queries alternate between them, and results are
compared value by value. The exit code is 1 if a query fails or results differ.";

/// The statement that makes the table; `{last_id}` stands for the largest id.
const EVENTS: &str = include_str!("events.sql");
/// Rows without which the queries of the last ten rows mean nothing.
const ROWS_MIN: u64 = 10;
/// Ids are multiplied in 64 bits while the table is made.
const ROWS_MAX: u64 = 2_000_000_000;
/// Engines that run these queries here.
const RIVALS: [Rival; 1] = [Rival::Duckdb];

/// A kind of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum SqlWork {
    /// Sorts, top-k, windows, and groups whose values are ordered
    Order,
}

impl SqlWork {
    /// Its queries: names and texts, in the order in which they run.
    fn queries(self) -> Vec<(&'static str, &'static str)> {
        let text = match self {
            Self::Order => include_str!("order.sql"),
        };
        let named = text.split("\n\n-- ").skip(1);
        named.filter_map(|query| query.split_once('\n')).collect()
    }
}

/// Arguments of `atoll bench sql`.
#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// Kind of queries
    #[arg(long, value_name = "KIND", value_enum, default_value_t = SqlWork::Order)]
    work: SqlWork,
    /// Print the names of the queries, and run none
    #[arg(long)]
    list: bool,
    /// Queries by name, separated by semicolons [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ';')]
    queries: Vec<String>,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 2_000_000,
          value_parser = clap::value_parser!(u64).range(ROWS_MIN..=ROWS_MAX))]
    rows: u64,
    /// Threads of each engine [default: one for each cpu]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    results: ResultArgs,
    #[command(flatten)]
    contest: ContestArgs,
}

/// Settings that all kept queries share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SqlPlan {
    machine: String,
    work: SqlWork,
    rows: u64,
    threads: usize,
    rivals: Vec<String>,
    runs: u32,
    warmup: u32,
}

/// A query by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SqlCase {
    query: String,
}

impl fmt::Display for SqlCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.query)
    }
}

impl TrialCase for SqlCase {
    fn key(&self) -> String {
        self.query.clone()
    }
}

/// The report, apart from the measurements. The first engine is Atoll.
#[derive(Debug, Serialize)]
struct SqlReport {
    settings: SqlPlan,
    bandwidth: ReadBandwidth,
    engines: Vec<EngineMeasured>,
    #[serde(flatten)]
    timed: TimedQueries<SqlCase>,
}

/// Measures and writes the results.
pub(crate) fn run(args: &SqlArgs) -> Result<(), CommandError> {
    let queries = chosen(args)?;
    if args.list {
        queries.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    if args.contest.seed.is_some() {
        return Err(CommandError::with(
            Exit::Usage,
            "the table has no random numbers: leave --seed out",
        ));
    }
    let outputs = args.contest.run.output.outputs(false)?;
    let (manifest, report, is_stopped) = measure(args, &queries)?;
    if is_stopped && report.timed.queries.is_empty() {
        return Err(args.results.stopped());
    }
    report.end(&manifest, &outputs, is_stopped.then(|| args.results.stopped()))
}

/// The queries that were asked for.
fn chosen(args: &SqlArgs) -> Result<Vec<(&'static str, &'static str)>, CommandError> {
    let all = args.work.queries();
    let named = |name: &String| {
        let found = all.iter().find(|(known, _)| known == name);
        found.copied().ok_or_else(|| {
            let message = format!("no query is named '{name}'; --list prints the names");
            CommandError::with(Exit::Usage, message)
        })
    };
    match args.queries.is_empty() {
        true => Ok(all.clone()),
        false => args.queries.iter().map(named).collect(),
    }
}

/// Measures; also whether a signal ended it before the last query.
fn measure(
    args: &SqlArgs,
    queries: &[(&'static str, &'static str)],
) -> Result<(Manifest, SqlReport, bool), CommandError> {
    let contest = &args.contest;
    let programs = EnginePrograms {
        own: own_words()?,
        rivals: contest.rivals(&RIVALS)?,
        python: contest.python.clone(),
        patience: contest.patience(),
    };
    let machine = Arc::new(Machine::discover().context("this machine cannot be described")?);
    let mut manifest = Manifest::new(&machine, contest.run.runs, contest.run.warmup, 0);
    let plan = SqlPlan {
        machine: machine.name.clone(),
        work: args.work,
        rows: args.rows,
        threads: args.threads.unwrap_or(machine.cpus.len()),
        rivals: programs.rivals.iter().map(ToString::to_string).collect(),
        runs: contest.run.runs,
        warmup: contest.run.warmup,
    };
    terminal::say("measuring the bandwidth of memory");
    let bandwidth = ReadBandwidth::measure(&machine, plan.threads)?;
    let kept = TrialResults::of(&args.results, &plan)?;
    let (engines, runs, is_stopped) = until_signal(|stop| {
        let mut engines = programs.start(plan.threads, None, &mut |what| terminal::say(what))?;
        create_table(&mut engines, args.rows)?;
        let mut all = Vec::with_capacity(queries.len());
        for (number, query) in (0..).zip(queries) {
            if let Some(runs) = kept_query(&mut engines, number, query, &plan, &kept, stop)? {
                terminal::say(runs.progress());
                all.push(runs);
            }
        }
        Ok((finish(engines)?, all, stop.is_stopped()))
    })?;
    manifest.end(engines.iter().map(|it| (it.loaded.engine.clone(), it.loaded.version.clone())));
    let timed = TimedQueries::new(&engines, runs, bandwidth.bytes_per_second);
    Ok((manifest, SqlReport { settings: plan, bandwidth, engines, timed }, is_stopped))
}

fn create_table(engines: &mut [SqlEngine], rows: u64) -> Result<()> {
    let statement = EVENTS.replace("{last_id}", &(rows - 1).to_string());
    for engine in engines {
        terminal::say(format!("{}: making {rows} rows", engine.name()));
        let made = engine.reset(std::slice::from_ref(&statement))?;
        made.map_err(|error| anyhow::anyhow!("{} cannot make the table: {error}", engine.name()))?;
    }
    Ok(())
}

/// A query's runs, of an earlier command or measured now; `None` after a signal.
fn kept_query(
    engines: &mut [SqlEngine],
    number: u8,
    (name, text): &(&'static str, &'static str),
    plan: &SqlPlan,
    kept: &TrialResults<SqlPlan>,
    stop: &RunStop,
) -> Result<Option<QueryRuns<SqlCase>>> {
    let case = SqlCase { query: (*name).to_owned() };
    if let Some(CaseResult { answer, .. }) = kept.get(&case)? {
        return Ok(answer);
    }
    let SqlPlan { runs, warmup, .. } = *plan;
    let text = text.replace("{last}", &(plan.rows - ROWS_MIN).to_string());
    let rounds = QueryRounds { number, runs, warmup, order: RowOrder::Given };
    let measured = measure_query(engines, case.clone(), rounds, |_| Ok(text.clone()), stop)?;
    let Some(mut runs) = measured else { return Ok(None) };
    if runs.problems.is_empty() {
        runs.scanned_bytes = engines[0].scanned_bytes(number, &text)?;
    }
    let error = runs.problems.first().cloned();
    kept.put(&CaseResult { case, answer: Some(&runs), error })?;
    Ok(Some(runs))
}

impl TrialReport for SqlReport {
    const NAME: &'static str = "sql";

    fn measurements(&self) -> Vec<Measurement> {
        let SqlPlan { work, rows, threads, .. } = self.settings;
        self.timed.measurements(&json!({ "work": work, "rows": rows, "threads": threads }))
    }

    fn problems(&self) -> &[String] {
        &self.timed.problems
    }

    fn to_markdown(&self, manifest: &Manifest) -> String {
        let engines = self.engines.iter().map(|engine| engine.loaded.engine.as_str());
        let engines = engines.collect::<Vec<_>>().join(", ");
        let SqlPlan { rows, threads, .. } = self.settings;
        // The tables are made after the engines have started: their messages are those of empty engines.
        let peaks = self
            .engines
            .iter()
            .map(|engine| format!("{} {}", engine.loaded.engine, Bytes(engine.peak_rss_bytes)));
        let peaks = peaks.collect::<Vec<_>>().join(", ");
        let parts = [
            format!("# SQL that orders, {rows} rows: {engines}\n\n{manifest}"),
            format!("- {threads} threads each\n"),
            self.bandwidth.to_markdown(),
            format!("- peak memory: {peaks}\n"),
            self.timed.to_markdown(&self.engines),
            self.timed.problems_markdown(),
        ];
        parts.concat()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn queries_have_names_of_their_own_and_end_once() {
        let queries = SqlWork::Order.queries();
        assert!(queries.len() >= 40, "{}", queries.len());
        let names: HashSet<&str> = queries.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), queries.len());
        for (name, text) in queries {
            assert_eq!(text.matches(';').count(), 1, "{name}");
        }
    }
}
