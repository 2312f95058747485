//! `atoll demo`: the machine, TPC-H loaded into placed memory, its verified placement, the 22 queries, one plan with
//! metrics, and the memory used.
//!
//! Each part is a sibling that gathers facts; `facts` has their types, which `--json` prints; `text` prints them for
//! people, part by part.

mod ask;
mod facts;
mod load;
mod placement;
mod queries;
mod text;

use std::io::{self, IsTerminal, Write, stderr};
use std::time::Instant;

use atoll_formats::render;
use atoll_sql::Session;

use crate::cli::DemoArgs;
use crate::engine::Engine;
use crate::memory::ResidentMemory;
use atoll_tools::exit::{CommandError, Exit};
use facts::{DemoFacts, DemoSettings, MemoryFacts};

/// Query whose plan is shown: a join of two large tables, both of whose scans filter.
const EXPLAINED: usize = 12;

/// Runs the demo.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), CommandError> {
    let started = Instant::now();
    let has_progress = !args.engine.no_progress && stderr().is_terminal();
    let engine = Engine::start(&args.engine, None, false)?;
    let session = &engine.session;
    let printer = Printer { is_silent: args.json };

    printer.print(&text::machine(session.machine()))?;
    let settings = settings(args, &engine);
    printer.print(&text::settings(&settings))?;
    let load = load::load(session, args.scale_factor, has_progress).await?;
    printer.print(&text::load(&load))?;
    let placement = placement::verify(session).await;
    printer.print(&text::placement(&placement))?;
    printer.print(&text::queries_head())?;
    let mut queries = Vec::with_capacity(atoll_sql::tpch::QUERIES.len());
    for number in 1..=atoll_sql::tpch::QUERIES.len() {
        let query = queries::run(session, number).await;
        printer.print(&text::query(&query))?;
        queries.push(query);
    }
    printer.print(&text::queries_total(&queries))?;
    let plan = queries::explain(session, EXPLAINED).await;
    printer.print(&text::plan(&plan))?;
    let memory = memory(session, load.bytes, engine.memory_limit).await;
    printer.print(&text::memory(&memory))?;
    let total_seconds = started.elapsed().as_secs_f64();
    printer.print(&text::total(total_seconds))?;

    let machine = render::json(session.machine());
    let facts =
        DemoFacts { settings, machine, load, placement, queries, plan, memory, total_seconds };
    if args.json {
        writeln!(io::stdout(), "{}", facts.to_json().map_err(anyhow::Error::from)?)?;
    }
    judge(&facts)
}

/// Prints each part for people as soon as it is known; prints nothing with `--json`.
struct Printer {
    is_silent: bool,
}

impl Printer {
    fn print(&self, part: &str) -> io::Result<()> {
        if self.is_silent {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(part.as_bytes())?;
        out.flush()
    }
}

fn settings(args: &DemoArgs, engine: &Engine) -> DemoSettings {
    DemoSettings {
        atoll: env!("CARGO_PKG_VERSION"),
        scale_factor: args.scale_factor,
        placement: engine.session.placement().to_string(),
        strict: args.engine.strict,
        workers: engine.session.runtime().worker_count(),
        memory_limit_bytes: engine.memory_limit,
    }
}

async fn memory(session: &Session, loaded: u64, limit: atoll_topology::Bytes) -> MemoryFacts {
    let tables = ask::number(session, "SELECT sum(memory_bytes) FROM atoll.tables").await;
    MemoryFacts {
        tables_bytes: tables.unwrap_or(loaded),
        process: ResidentMemory::of_process(),
        limit_bytes: limit,
    }
}

/// The exit for the facts: a failed query takes precedence over a failed placement.
fn judge(facts: &DemoFacts) -> Result<(), CommandError> {
    let failed: Vec<String> = facts
        .queries
        .iter()
        .filter(|query| query.error.is_some())
        .map(|query| format!("Q{}", query.number))
        .collect();
    if !failed.is_empty() {
        return Err(CommandError::with(Exit::Statement, format!("failed: {}", failed.join(", "))));
    }
    if let Some(error) = &facts.plan.error {
        return Err(CommandError::with(
            Exit::Statement,
            format!("EXPLAIN ANALYZE failed: {error}"),
        ));
    }
    match facts.placement.problems.as_slice() {
        [] => Ok(()),
        problems => Err(CommandError::with(
            Exit::Placement,
            format!("placement failed: {}", problems.join("; ")),
        )),
    }
}
