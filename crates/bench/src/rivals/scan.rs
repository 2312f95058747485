//! DuckDB answering the queries of `bench scan`: a process of Python, which `rivals/scan_engine.py` of this
//! crate is.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Rival;
use super::process::RivalProcess;

const SCRIPT: &str = include_str!("../../rivals/scan_engine.py");

/// The process.
#[derive(Debug)]
pub(crate) struct ScanEngine {
    pub(crate) version: String,
    /// Microseconds of an empty query: mostly Python and planning.
    pub(crate) empty_query_us: f64,
    process: RivalProcess,
}

/// A statement as sent to the process.
pub(crate) struct RivalStatement {
    pub(crate) sql: String,
    /// The join with a table of parameters that is named `$parameters`.
    pub(crate) join: String,
    /// Types of the parameters.
    pub(crate) types: [&'static str; 4],
}

#[derive(Deserialize)]
struct LoadedBookings {
    empty_query_us: f64,
}

#[derive(Deserialize)]
struct Answered {
    count: u64,
    seconds: f64,
}

/// Rows of some queries, as texts.
#[derive(Deserialize)]
pub(crate) struct RivalAnswers {
    pub(crate) one: Vec<RivalRows>,
    pub(crate) joined: Vec<RivalRows>,
}

type RivalRows = Vec<Vec<Option<String>>>;

impl ScanEngine {
    /// Starts the engine with `threads` threads and loads the file.
    ///
    /// # Errors
    /// When it does not start, or does not answer within `patience`.
    pub(crate) fn start(
        python: &Path,
        threads: usize,
        patience: Duration,
        file: &Path,
        statements: &[RivalStatement],
        queries: &[(usize, [Value; 4])],
    ) -> Result<Self> {
        let threads = threads.to_string();
        let arguments = [OsStr::new(&threads)];
        let (process, version) =
            RivalProcess::serve(Rival::Duckdb, python, SCRIPT, &arguments, patience)?;
        let mut engine = Self { version, empty_query_us: 0.0, process };
        let file = file.to_str().context("the path of the bookings is not UTF-8")?;
        let statements = statements.iter().map(|RivalStatement { sql, join, types }| {
            json!({ "sql": sql, "join": join, "types": types })
        });
        let statements: Vec<Value> = statements.collect();
        let load = json!({ "load": file, "statements": statements, "queries": queries });
        engine.empty_query_us = engine.ask::<LoadedBookings>(&load)?.empty_query_us;
        Ok(engine)
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Value) -> Result<T> {
        let reply = self.process.ask::<T>(request)?;
        reply.map_err(|error| anyhow!("{}: {error}", Rival::Duckdb))
    }

    fn rate(&mut self, request: &Value) -> Result<f64> {
        let Answered { count, seconds } = self.ask(request)?;
        let is_time = seconds.is_finite() && seconds > 0.0;
        ensure!(is_time, "{} reported {seconds} s for a run", Rival::Duckdb);
        Ok(count as f64 / seconds)
    }

    /// Queries a second, one after the other.
    pub(crate) fn one_by_one(&mut self, time: Duration, seed: u64) -> Result<f64> {
        self.rate(&json!({ "seconds": time.as_secs_f64(), "seed": seed }))
    }

    /// Queries a second where so many are answered by joins.
    pub(crate) fn joined(&mut self, queries: usize, seed: u64) -> Result<f64> {
        self.rate(&json!({ "batch": queries, "seed": seed }))
    }

    /// The rows of some queries.
    pub(crate) fn answers(&mut self, queries: &[usize]) -> Result<RivalAnswers> {
        let answers: RivalAnswers = self.ask(&json!({ "answers": queries }))?;
        let counts = (answers.one.len(), answers.joined.len());
        ensure!(
            counts == (queries.len(), queries.len()),
            "{} answers {counts:?} queries where it was asked {}",
            Rival::Duckdb,
            queries.len()
        );
        Ok(answers)
    }
}
