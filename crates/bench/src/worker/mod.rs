//! An engine in its own process, driven by lines on standard input and output.
//!
//! The benchmark starts its own program again for Atoll and for plain DataFusion, so that the memory
//! of each is its own and all engines, the Python rival included, are measured alike.

mod atoll;
mod datafusion;
mod generator;
pub(crate) mod values;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ::datafusion::arrow::array::RecordBatch;
use anyhow::{Context, Result, bail};
use atoll_placement::{Kernel, LiveKernel};
use atoll_topology::Machine;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::memory;
use crate::protocol::{Answer, Failed, Last, Loaded, Placement, Request, Scanned, WasReset};

/// The engines this program can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Atoll, its tables loaded from files.
    Atoll,
    /// DataFusion as it comes, its tables loaded from files.
    Datafusion,
    /// Atoll, its tables generated; writes the files and ends.
    Generator,
}

impl EngineKind {
    /// As on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Atoll => "atoll",
            Self::Datafusion => "datafusion",
            Self::Generator => "generator",
        }
    }
}

/// Arguments of the worker.
#[derive(Args, Clone, Debug)]
pub struct WorkerArgs {
    /// What to be
    #[arg(long, value_enum)]
    pub engine: EngineKind,
    /// Threads of the engine
    #[arg(long)]
    pub threads: usize,
    /// Directory of the Parquet files; the generator writes them there, if given, and Atoll starts
    /// without tables where none is given
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// Bytes of memory that Atoll may use; unlimited unless given
    #[arg(long)]
    pub memory_limit: Option<u64>,
    /// Scale factor of the generator
    #[arg(long, default_value_t = 1.0)]
    pub scale_factor: f64,
}

/// An engine whose tables are loaded.
trait Engine {
    /// Its version.
    fn version(&self) -> String;

    /// Runs a query; all of its result.
    fn query(&self, sql: &str) -> Result<Vec<RecordBatch>>;

    /// Runs a query; the bytes that its scans read, where it counts them.
    fn scanned_bytes(&self, sql: &str) -> Result<Option<u64>>;

    /// Forgets all tables and settings, then runs the statements.
    fn reset(&mut self, _statements: &[String]) -> Result<()> {
        bail!("this engine keeps the tables it has loaded")
    }

    /// Placement of tables and threads, if the engine knows it.
    fn placement(&self) -> Result<Option<Placement>>;
}

/// A machine, and the kernel that places memory and threads on it.
pub type Host = (Arc<Machine>, Arc<dyn Kernel>);

/// This machine.
///
/// # Errors
/// When it cannot be described.
pub fn this_machine() -> Result<Host> {
    let machine = Machine::discover().context("this machine cannot be described")?;
    Ok((Arc::new(machine), Arc::new(LiveKernel::new())))
}

/// Loads, reports, answers until asked to quit or until the input ends, reports the peak. Atoll runs on
/// `host`.
///
/// # Errors
/// When the load fails, which is also reported, or when the output is closed.
pub fn run(
    options: &WorkerArgs,
    host: impl FnOnce() -> Result<Host>,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<()> {
    let directory =
        || options.data.as_deref().context("--data is missing: the directory of the files");
    match options.engine {
        EngineKind::Generator => generator::run(options, host()?, output),
        EngineKind::Atoll => {
            let load = || atoll::Atoll::load(options, host()?);
            serve(options.engine, load, input, output)
        }
        EngineKind::Datafusion => {
            let load = || datafusion::Plain::load(options.threads, directory()?);
            serve(options.engine, load, input, output)
        }
    }
}

fn serve<E: Engine>(
    kind: EngineKind,
    load: impl FnOnce() -> Result<E>,
    input: impl BufRead,
    output: &mut impl Write,
) -> Result<()> {
    let (mut engine, loaded) = match loaded(kind, load) {
        Ok(done) => done,
        Err(error) => {
            reply(output, &Failed { error: format!("{error:#}") })?;
            return Err(error);
        }
    };
    reply(output, &loaded)?;
    for line in input.lines() {
        let line = line.context("cannot read the requests")?;
        match serde_json::from_str(&line) {
            Ok(Request::Quit { .. }) => break,
            Ok(request) => respond(&mut engine, request, output)?,
            Err(error) => {
                let error = format!("not a request: {line:?}: {error}");
                reply(output, &Failed { error })?;
            }
        }
    }
    reply(output, &Last { peak_rss_bytes: memory::of_this_process("VmHWM")? })
}

/// Loads an engine and says what that took.
fn loaded<E: Engine>(kind: EngineKind, load: impl FnOnce() -> Result<E>) -> Result<(E, Loaded)> {
    let rss_before_load_bytes = memory::of_this_process("VmRSS")?;
    let started = Instant::now();
    let engine = load()?;
    let load_ms = milliseconds_since(started);
    let loaded = Loaded {
        engine: kind.name().to_owned(),
        version: engine.version(),
        load_ms,
        rss_before_load_bytes,
        rss_bytes: memory::of_this_process("VmRSS")?,
        peak_rss_bytes: memory::of_this_process("VmHWM")?,
        placement: engine.placement()?,
    };
    Ok((engine, loaded))
}

fn respond(engine: &mut impl Engine, request: Request, output: &mut impl Write) -> Result<()> {
    let failed = |error: anyhow::Error| Failed { error: format!("{error:#}") };
    match request {
        Request::Query { query, sql } => match answer(&*engine, query, &sql) {
            Ok(answer) => reply(output, &answer),
            Err(error) => reply(output, &failed(error)),
        },
        Request::Scan { scan, sql } => match engine.scanned_bytes(&sql) {
            Ok(bytes) => reply(output, &Scanned { scan, bytes }),
            Err(error) => reply(output, &failed(error)),
        },
        Request::Reset { reset } => match engine.reset(&reset) {
            Ok(()) => reply(output, &WasReset { reset: reset.len() }),
            Err(error) => reply(output, &failed(error)),
        },
        Request::Quit { .. } => Ok(()),
    }
}

/// Runs one query; only the way from its text to its whole result is timed.
fn answer(engine: &impl Engine, query: u8, sql: &str) -> Result<Answer> {
    let started = Instant::now();
    let batches = engine.query(sql)?;
    let ms = milliseconds_since(started);
    let (columns, values) = values::from_batches(&batches)?;
    Ok(Answer { query, ms, columns, values })
}

fn milliseconds_since(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

/// One line, at once.
fn reply(output: &mut impl Write, message: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(message).context("a reply cannot be written as JSON")?;
    writeln!(output, "{line}").and_then(|()| output.flush()).context("the output is closed")
}

#[cfg(test)]
mod tests {
    use ::datafusion::arrow::array::Int64Array;
    use anyhow::bail;

    use super::*;

    /// Answers `ok`, and fails at everything else.
    struct Fake;

    impl Engine for Fake {
        fn version(&self) -> String {
            "1".into()
        }

        fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
            match sql {
                "ok" => {
                    let column = Arc::new(Int64Array::from(vec![Some(7), None]));
                    Ok(vec![RecordBatch::try_from_iter([("a", column as _)])?])
                }
                other => bail!("table {other} does not exist"),
            }
        }

        fn scanned_bytes(&self, _: &str) -> Result<Option<u64>> {
            Ok(Some(42))
        }

        fn placement(&self) -> Result<Option<Placement>> {
            Ok(None)
        }
    }

    fn lines(input: &str) -> Vec<serde_json::Value> {
        let mut output = Vec::new();
        serve(EngineKind::Atoll, || Ok(Fake), input.as_bytes(), &mut output).expect("it serves");
        let text = String::from_utf8(output).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn requests_are_answered_in_order_until_quit() {
        let lines = lines(concat!(
            "{\"query\": 6, \"sql\": \"ok\"}\n",
            "{\"scan\": 6, \"sql\": \"ok\"}\n",
            "{\"quit\": true}\n",
            "{\"query\": 7, \"sql\": \"ok\"}\n",
        ));
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0]["engine"], "atoll");
        assert_eq!(lines[1]["columns"], serde_json::json!(["integer"]));
        assert_eq!(lines[1]["values"], serde_json::json!([["7"], [null]]));
        assert_eq!(lines[2], serde_json::json!({"scan": 6, "bytes": 42}));
        assert!(lines[3]["peak_rss_bytes"].as_u64() > Some(0));
    }

    #[test]
    fn an_error_is_a_reply_and_the_worker_goes_on() {
        let lines = lines("{\"query\": 1, \"sql\": \"bad\"}\nnonsense\n\n");
        assert_eq!(lines[1], serde_json::json!({"error": "table bad does not exist"}));
        assert!(lines[2]["error"].as_str().is_some_and(|text| text.contains("not a request")));
        assert_eq!(
            lines.len(),
            5,
            "an empty line is not a request either, and the peak comes last"
        );
    }

    #[test]
    fn a_failed_load_is_reported_before_the_worker_ends() {
        let mut output = Vec::new();
        let load = || -> Result<Fake> { bail!("no files") };
        assert!(serve(EngineKind::Datafusion, load, "".as_bytes(), &mut output).is_err());
        assert_eq!(output, b"{\"error\":\"no files\"}\n");
    }
}
