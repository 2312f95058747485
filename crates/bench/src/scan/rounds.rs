//! The rounds over one relation: those that only read, in which all competitors take turns, and then those that
//! change rows.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use atoll_tools::bench::{Better, MeasuredPass, ScaleUp, scale_up};
use datafusion::common::ScalarValue;
use serde_json::{Value, json};

use super::attributes::BOOKINGS;
use super::client::{ClientLoad, StatementPath};
use super::designs::{CountedPass, Design, DesignSetup};
use super::ours::{BookingDatabase, LoadRun};
use super::queries::ScanQueries;
use super::report::{FoundRows, ScanCase};
use super::work::ScanWork;
use crate::answers::{self, RowOrder};
use crate::protocol::{Answer, Kind};
use crate::rivals::scan::{RivalStatement, ScanEngine};

/// Share of changes of the real-like mix: nine queries to one change, in every stretch.
const MIX_CHANGES: f64 = 0.1;
/// Queries whose answers are compared with those of rivals.
const COMPARED: usize = 64;
/// Queries whose answers are compared with a row-by-row scan.
const CHECKED: usize = 8;

/// The plan of the measurements.
#[derive(Clone, Debug)]
pub(super) struct ScanPlan {
    pub(super) work: Vec<ScanWork>,
    pub(super) clients: Vec<usize>,
    /// Shares of changes.
    pub(super) changes: Vec<f64>,
    /// Arrivals, as shares of the measured maximum.
    pub(super) loads: Vec<f64>,
    /// Whether queries are sent as text too.
    pub(super) text: bool,
    /// Time of each run.
    pub(super) time: Duration,
    pub(super) seed: u64,
    /// Those that do not count, and those that do.
    pub(super) rounds: (u32, u32),
}

/// One relation, and its competitors.
pub(super) struct ScanRounds<'a> {
    pub(super) plan: &'a ScanPlan,
    /// Settings that all its cases share.
    pub(super) setting: Value,
    pub(super) database: BookingDatabase,
    pub(super) rival: Option<ScanEngine>,
    pub(super) setup: DesignSetup,
    /// Once they are measured.
    pub(super) designs: Vec<Design>,
    pub(super) cases: Vec<ScanCase>,
    /// Rows that queries found.
    pub(super) found: Vec<u32>,
}

impl ScanRounds<'_> {
    /// Compares answers, and measures all rounds.
    pub(super) fn measure(&mut self, progress: &mut dyn FnMut(&str)) -> Result<()> {
        progress("comparing answers");
        self.compare()?;
        let plan = self.plan;
        let asks = |work: &ScanWork| plan.work.contains(work);
        let (reads, changes) = (
            asks(&ScanWork::Read) || asks(&ScanWork::Open),
            asks(&ScanWork::Mix) || asks(&ScanWork::Changes),
        );
        let (warmup, runs) = plan.rounds;
        // Rows that change are not those that the rival has: reading comes first.
        let has_cores = self.database.cores() > 1;
        if asks(&ScanWork::Pools) && !has_cores {
            progress("pools are not measured: the machine has one core");
        }
        let kinds = [
            (Self::read as fn(&mut Self, u64) -> Result<()>, reads),
            (Self::change, changes),
            (Self::pool, asks(&ScanWork::Pools) && has_cores),
            (Self::design, asks(&ScanWork::Designs)),
        ];
        for (kind, asked) in kinds {
            let first = self.cases.len();
            for round in (0..warmup + runs).filter(|_| asked) {
                progress(&format!("round {} of {}", round + 1, warmup + runs));
                kind(self, plan.seed.wrapping_add(u64::from(round) << 16))?;
                if round + 1 == warmup {
                    self.cases[first..].iter_mut().for_each(ScanCase::forget);
                }
            }
        }
        self.database.check_changes()?;
        self.cases.iter_mut().for_each(|case| case.throughput.finish());
        Ok(())
    }

    /// Some queries, spread over the statements.
    fn sample(&self, count: usize) -> Vec<usize> {
        let all = self.database.bookings.queries.queries.len();
        (0..count.min(all)).map(|at| at * all / count.min(all)).collect()
    }

    fn compare(&mut self) -> Result<()> {
        let checked = self.sample(CHECKED);
        self.database.check_answers(&checked)?;
        let compared = self.sample(COMPARED);
        let Some(rival) = &mut self.rival else { return Ok(()) };
        let answers = rival.answers(&compared)?;
        let queries = &self.database.bookings.queries;
        for (way, all) in [("one by one", answers.one), ("joined", answers.joined)] {
            for (query, values) in compared.iter().zip(all) {
                let columns = queries.statement(*query).output.map(kind).to_vec();
                let theirs = Answer { columns, values, ..Answer::default() };
                let ours = self.database.answer(*query)?;
                if let Some(difference) = answers::difference(&ours, &theirs, RowOrder::Any) {
                    let sql = queries.sql(*query);
                    bail!("{sql}: Atoll and DuckDB, {way}, differ: {difference}");
                }
            }
        }
        Ok(())
    }

    fn clients_most(&self) -> usize {
        self.plan.clients.iter().copied().max().unwrap_or(1)
    }

    /// The case with these settings, created on first use.
    fn case(&mut self, own: Value) -> &mut ScanCase {
        let mut settings = own;
        if let (Some(all), Some(shared)) = (settings.as_object_mut(), self.setting.as_object()) {
            all.extend(shared.clone());
        }
        let at = self.cases.iter().position(|case| case.throughput.settings == settings);
        let at = at.unwrap_or_else(|| {
            self.cases.push(ScanCase::new(settings, "statements/s", Better::More));
            self.cases.len() - 1
        });
        &mut self.cases[at]
    }

    fn closed(
        &mut self,
        clients: usize,
        path: StatementPath,
        changes: f64,
        seed: u64,
    ) -> Result<LoadRun> {
        let load = ClientLoad { clients, path, changes, seed };
        let run = self.database.closed(load, self.plan.time)?;
        ensure!(run.did.count() > 0, "no statement was answered in a run");
        Ok(run)
    }

    /// A round that reads.
    fn read(&mut self, seed: u64) -> Result<()> {
        let (plan, time) = (self.plan, self.plan.time);
        let one_by_one = match &mut self.rival {
            Some(rival) if plan.work.contains(&ScanWork::Read) => {
                Some(rival.one_by_one(time, seed)?)
            }
            _ => None,
        };
        let mut fastest = 0.0_f64;
        for clients in plan.clients.clone() {
            let run = self.closed(clients, StatementPath::Prepared, 0.0, seed)?;
            fastest = fastest.max(run.rate());
            self.found.extend(&run.did.found);
            if !plan.work.contains(&ScanWork::Read) {
                continue;
            }
            let settings = json!({ "work": "read", "clients": clients });
            self.case(settings.clone()).add("atoll", &run);
            if plan.text {
                let run = self.closed(clients, StatementPath::Text, 0.0, seed)?;
                self.case(settings.clone()).add("atoll, as text", &run);
            }
            if let Some(rate) = one_by_one {
                self.case(settings.clone()).throughput.add("duckdb, one by one", rate);
            }
            if let Some(rival) = self.rival.as_mut().filter(|_| clients > 1) {
                let rate = rival.joined(clients, seed)?;
                self.case(settings).throughput.add("duckdb, joined", rate);
            }
        }
        if plan.work.contains(&ScanWork::Open) {
            self.open(fastest, seed)?;
        }
        Ok(())
    }

    /// Arrivals at shares of the rate of a closed loop.
    fn open(&mut self, fastest: f64, seed: u64) -> Result<()> {
        let clients = self.clients_most();
        for share in self.plan.loads.clone() {
            let load = ClientLoad { clients, path: StatementPath::Prepared, changes: 0.0, seed };
            let run = self.database.open(load, fastest * share, self.plan.time)?;
            let settings = json!({ "work": "open", "load": share, "clients": clients });
            self.case(settings).add("atoll", &run);
        }
        Ok(())
    }

    /// A round that changes rows.
    fn change(&mut self, seed: u64) -> Result<()> {
        let plan = self.plan;
        if plan.work.contains(&ScanWork::Mix) {
            for clients in plan.clients.clone() {
                let run = self.closed(clients, StatementPath::Prepared, MIX_CHANGES, seed)?;
                let settings = json!({ "work": "mix", "changes": MIX_CHANGES, "clients": clients });
                self.case(settings).add("atoll", &run);
            }
        }
        if plan.work.contains(&ScanWork::Changes) {
            let clients = self.clients_most();
            for changes in plan.changes.clone() {
                let run = self.closed(clients, StatementPath::Prepared, changes, seed)?;
                let settings = json!({ "work": "changes", "changes": changes, "clients": clients });
                self.case(settings).add("atoll", &run);
            }
        }
        Ok(())
    }

    /// A round of queries alongside reports.
    fn pool(&mut self, seed: u64) -> Result<()> {
        let (clients, path) = (self.clients_most(), StatementPath::Prepared);
        let load = ClientLoad { clients, path, changes: 0.0, seed };
        for (name, has_pool) in [("atoll", false), ("atoll, reports in a pool", true)] {
            let run = self.database.run_with_reports(load, self.plan.time, has_pool)?;
            let settings = json!({ "work": "pools", "clients": clients });
            self.case(settings).add(name, &run.clients);
            let settings = json!({ "work": "pools", "of": "reports", "clients": clients });
            self.case(settings).throughput.add(name, run.reports);
        }
        Ok(())
    }

    /// A round of the designs.
    fn design(&mut self, seed: u64) -> Result<()> {
        let queries = &self.database.bookings.queries;
        if self.designs.is_empty() {
            self.designs = self.setup.start(queries, seed)?;
        }
        let time = self.plan.time;
        for clients in self.plan.clients.clone() {
            let mut rates = Vec::new();
            for design in &mut self.designs {
                let queries = &self.database.bookings.queries;
                rates.push((design.name, design.measure(queries, clients, time, seed)?));
            }
            let case = self.case(json!({ "work": "designs", "clients": clients }));
            rates.into_iter().for_each(|(name, rate)| case.throughput.add(name, rate));
        }
        Ok(())
    }

    /// What the processor counts in a pass for the most clients, or why it counts nothing.
    pub(super) fn counted(&self) -> Result<Result<CountedPass, String>> {
        let queries = &self.database.bookings.queries;
        self.setup.counted_pass(queries, self.clients_most(), self.plan.seed)
    }

    /// The cycles of the most clients on more threads of a machine.
    pub(super) fn scale_up(&self, machine: &str, threads: &[usize]) -> Result<ScaleUp> {
        let most = self.clients_most();
        let read = self.cases.iter().find(|case| {
            let settings = &case.throughput.settings;
            settings["work"] == "read" && settings["clients"] == most
        });
        let cycle = read.and_then(|case| case.cycles().next());
        let (_, cycle) = cycle.context("--scale-up needs cycles of shared scans: --work read")?;
        let pass = MeasuredPass {
            items: cycle.batch,
            bytes: cycle.bytes.max(1.0),
            thread_ns: cycle.profile.scanning * 1e6,
            serial_ns: cycle.profile.preparing * 1e6,
        };
        scale_up(machine, &pass, threads)
    }

    /// How many rows the queries found.
    pub(super) fn found_rows(&mut self) -> Result<Option<FoundRows>> {
        let found = FoundRows::from_counts(&mut self.found);
        if let Some(FoundRows { median, p99, .. }) = found {
            ensure!(
                median <= 10 && p99 <= 1000,
                "queries find {median} rows in the median and {p99} at the 99th percentile; expected 10 and 1000"
            );
        }
        Ok(found)
    }
}

fn kind(attribute: usize) -> Kind {
    use super::attributes::AttributeKind::{Day, Text};
    match BOOKINGS[attribute].kind {
        Day | Text(_) => Kind::Text,
        _ => Kind::Integer,
    }
}

/// Starts DuckDB with the same rows, statements and queries.
pub(super) fn start_rival(
    python: &Path,
    threads: usize,
    patience: Duration,
    file: &Path,
    queries: &ScanQueries,
) -> Result<ScanEngine> {
    let statements = queries.statements.iter().map(|statement| RivalStatement {
        sql: statement.sql(),
        join: statement.join_sql("$parameters"),
        types: statement.parameters().map(|attribute| BOOKINGS[attribute].kind.sql()),
    });
    let statements: Vec<_> = statements.collect();
    let all = queries.queries.iter().enumerate();
    let all: Vec<_> =
        all.map(|(number, query)| (query.statement, queries.values(number).map(plain))).collect();
    ScanEngine::start(python, threads, patience, file, &statements, &all)
}

/// A parameter in JSON: a number, or a text.
fn plain(value: ScalarValue) -> Value {
    match value {
        ScalarValue::Int16(Some(number)) => json!(number),
        ScalarValue::Int32(Some(number)) => json!(number),
        ScalarValue::Int64(Some(number)) => json!(number),
        other => json!(other.to_string()),
    }
}
