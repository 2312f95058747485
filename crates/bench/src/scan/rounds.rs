//! The rounds over one relation: those that only read, in which everyone takes turns, and then those that
//! change rows.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use atoll_tools::bench::Better;
use datafusion::common::ScalarValue;
use serde_json::{Value, json};

use super::attributes::BOOKINGS;
use super::client::{ClientLoad, StatementPath};
use super::ours::{BookingDatabase, LoadRun};
use super::queries::ScanQueries;
use super::report::{FoundRows, ScanCase};
use super::work::ScanWork;
use crate::answers::{self, RowOrder};
use crate::rivals::scan::{RivalStatement, ScanEngine};
use crate::worker::protocol::{Answer, Kind};

/// Share of changes of the real-like mix: nine queries to one change, in every stretch.
const MIX_CHANGES: f64 = 0.1;
/// Queries whose answers are compared with those of rivals.
const COMPARED: usize = 64;
/// Queries whose answers are compared with the rows looked at one by one.
const CHECKED: usize = 8;

/// What is measured.
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
    /// Of each run.
    pub(super) time: Duration,
    pub(super) seed: u64,
    /// Those that do not count, and those that do.
    pub(super) rounds: (u32, u32),
}

/// One relation, and who asks of it.
pub(super) struct ScanRounds<'a> {
    pub(super) plan: &'a ScanPlan,
    /// Settings that all its cases share.
    pub(super) setting: Value,
    pub(super) database: BookingDatabase,
    pub(super) rival: Option<ScanEngine>,
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
        for (kind, asked) in
            [(Self::read as fn(&mut Self, u64) -> Result<()>, reads), (Self::change, changes)]
        {
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

    /// The case with these settings, made where there is none.
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

    /// Arrivals at shares of what a closed loop reached.
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

    /// How many rows the queries found.
    pub(super) fn found_rows(&mut self) -> Result<Option<FoundRows>> {
        let found = FoundRows::of(&mut self.found);
        if let Some(FoundRows { median, p99, .. }) = found {
            ensure!(
                median <= 10 && p99 <= 1000,
                "queries find {median} rows in the median and {p99} in 99 of 100, where 10 and 1000 are meant"
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
