//! The rounds: in each, every case runs on Atoll and then on each rival, one after the other.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use atoll_runtime::Runtime;
use atoll_tools::bench::Better;
use serde_json::json;

use super::disk::{Disk, bytes_in};
use super::ours::OurDatabase;
use super::work::{INDEXES, RowStore, StoreDurability, StoreWork};
use crate::paired::PairedCase;
use crate::rivals::store::StoreEngine;

/// Statements over whole tables, and what makes room for them again.
const BULK: [(&str, &str, &str); 3] = [
    ("create table as", "CREATE TABLE made AS SELECT * FROM source", "DROP TABLE made"),
    ("insert select", "INSERT INTO loaded SELECT * FROM source", "DELETE FROM loaded"),
    ("create index", CREATE_INDEX, DROP_INDEX),
];

const CREATE_INDEX: &str = "CREATE INDEX made_index ON source (value)";

const DROP_INDEX: &str = "DROP INDEX made_index";

/// Where 1 % of the rows lie.
const CHANGES: [(&str, &str); 2] = [
    ("random", "id * 7919 % 1000003 % 100 = 7"),
    ("clustered", "id < (SELECT count(*) FROM source) / 100"),
];

/// The rivals' database in which whole tables are written.
const BULK_DATABASE: &str = "bulk";

/// The plan of the measurements.
pub(super) struct StorePlan {
    pub(super) work: Vec<StoreWork>,
    pub(super) sessions: Vec<u16>,
    /// The databases with a table of single rows.
    pub(super) stores: Vec<RowStore>,
    /// Time of each run with single rows.
    pub(super) time: Duration,
    pub(super) rows: u64,
    pub(super) bulk_rows: u64,
    pub(super) directory: PathBuf,
    pub(super) seed: u64,
    /// Those that do not count, and those that do.
    pub(super) rounds: (u32, u32),
}

impl StorePlan {
    fn has(&self, work: StoreWork) -> bool {
        self.work.contains(&work)
    }

    fn rounds(&self) -> impl Iterator<Item = u32> + use<> {
        let (warmup, runs) = self.rounds;
        0..warmup + runs
    }

    /// Sums up cases, or, before the first round that counts, forgets them.
    fn end_round(&self, round: u32, cases: &mut [PairedCase]) {
        if round + 1 == self.rounds.0 {
            cases.iter_mut().for_each(PairedCase::forget);
        }
    }
}

/// Measures all of a plan.
pub(super) fn measure(
    plan: &StorePlan,
    runtime: &Runtime,
    mut engines: Vec<StoreEngine>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PairedCase>> {
    let disk = Disk::new(&plan.directory)?;
    let mut cases = Vec::new();
    for &store in &plan.stores {
        let RowStore { durability, indexes } = store;
        progress(&format!("single rows, {}, {indexes} indexes", durability.name()));
        let mut rows = SingleRows { plan, runtime, engines: &mut engines, disk: &disk, store };
        cases.extend(rows.measure()?);
    }
    if plan.has(StoreWork::Bulk) {
        progress("bulk loads");
        cases.extend(bulk(plan, runtime, &mut engines, &disk)?);
    }
    drop(engines);
    if plan.has(StoreWork::Checkpoint) || plan.has(StoreWork::Recovery) {
        progress("checkpoints and recovery");
        cases.extend(checkpoints(plan, runtime)?);
    }
    if plan.has(StoreWork::Recovery) {
        cases.push(recovery_with_key(plan, runtime)?);
    }
    cases.retain(|case| !case.subjects.is_empty());
    cases.iter_mut().for_each(PairedCase::finish);
    Ok(cases)
}

/// Transactions of one row, in one database.
struct SingleRows<'a> {
    plan: &'a StorePlan,
    runtime: &'a Runtime,
    engines: &'a mut [StoreEngine],
    disk: &'a Disk<'a>,
    store: RowStore,
}

impl SingleRows<'_> {
    fn measure(&mut self) -> Result<Vec<PairedCase>> {
        let (plan, RowStore { durability, indexes }) = (self.plan, self.store);
        let works: Vec<StoreWork> = plan.work.iter().copied().filter(|it| self.has(*it)).collect();
        if works.is_empty() {
            return Ok(Vec::new());
        }
        let mut database = self.open()?;
        let mut cases = Vec::new();
        for work in &works {
            cases.extend(plan.sessions.iter().map(|sessions| {
                let mut settings = json!({ "work": work.name(), "sessions": sessions });
                if work.is_write() {
                    settings["durability"] = json!(durability);
                    settings["indexes"] = json!(indexes);
                }
                PairedCase::new(settings, "transactions/s", Better::More)
            }));
        }
        for round in plan.rounds() {
            let kinds = works.iter().flat_map(|work| plan.sessions.iter().map(|it| (*work, *it)));
            for (case, (work, sessions)) in cases.iter_mut().zip(kinds) {
                self.run(case, &mut database, work, sessions, round)?;
            }
            plan.end_round(round, &mut cases);
        }
        database.check()?;
        Ok(cases)
    }

    /// Whether this kind of work runs in this database: reads in the first one that can serve them.
    fn has(&self, work: StoreWork) -> bool {
        let serves = |store: &&RowStore| !work.is_lookup() || store.indexes > 0;
        let is_read = work == StoreWork::Select || work.is_lookup();
        work.is_write() || (is_read && self.plan.stores.iter().find(serves) == Some(&self.store))
    }

    /// The name of the database for rivals, and of its directory.
    fn name(&self) -> String {
        format!("{}-{}", self.store.durability.name(), self.store.indexes)
    }

    fn open(&mut self) -> Result<OurDatabase> {
        let name = self.name();
        let directory = self.plan.directory.join(format!("atoll-{name}"));
        let mut database = OurDatabase::open(self.runtime, Some(directory))?;
        database.fill(self.store, self.plan.rows)?;
        let indexes = &INDEXES[..usize::from(self.store.indexes)];
        for engine in self.engines.iter_mut() {
            engine.open(&name, self.store.durability.name(), self.plan.rows, indexes)?;
        }
        Ok(database)
    }

    fn run(
        &mut self,
        case: &mut PairedCase,
        database: &mut OurDatabase,
        work: StoreWork,
        sessions: u16,
        round: u32,
    ) -> Result<()> {
        let (time, seed) = (self.plan.time, self.plan.seed + u64::from(round));
        let name = self.name();
        case.add("atoll", database.rate(work, sessions, time, seed)?);
        for engine in self.engines.iter_mut() {
            let seconds = time.as_secs_f64();
            let rate = engine.rate(&name, work.name(), sessions, seconds)?;
            case.add(engine.rival.name(), rate);
        }
        if work.is_write() && self.store.durability == StoreDurability::Fsync {
            case.add("fdatasync", self.disk.syncs_per_second(time)?);
        }
        Ok(())
    }
}

/// Whole tables into a directory, and into memory.
fn bulk(
    plan: &StorePlan,
    runtime: &Runtime,
    engines: &mut [StoreEngine],
    disk: &Disk<'_>,
) -> Result<Vec<PairedCase>> {
    let directory = plan.directory.join("atoll-bulk");
    let stored = OurDatabase::open(runtime, Some(directory.clone()))?;
    let memory = OurDatabase::open(runtime, None)?;
    let empty = "CREATE TABLE loaded AS SELECT * FROM source WHERE false";
    for database in [&stored, &memory] {
        database.source(plan.bulk_rows)?;
        database.run(empty)?;
    }
    for engine in engines.iter_mut() {
        engine.open(BULK_DATABASE, StoreDurability::Fsync.name(), 1, &[])?;
        engine.source(BULK_DATABASE, plan.bulk_rows)?;
        engine.time(BULK_DATABASE, empty)?;
    }
    let case = |(name, ..): &(&str, _, _)| {
        let settings = json!({ "work": "bulk", "statement": name, "rows": plan.bulk_rows });
        PairedCase::new(settings, "s", Better::Less)
    };
    let mut cases: Vec<PairedCase> = BULK.iter().map(case).collect();
    for round in plan.rounds() {
        for (case, (_, statement, undo)) in cases.iter_mut().zip(BULK) {
            let before = bytes_in(&directory)?;
            case.add("atoll", stored.time(statement)?);
            let bytes = bytes_in(&directory)?.saturating_sub(before);
            let (in_memory, on_disk) = (memory.time(statement)?, disk.write_seconds(bytes)?);
            case.add("atoll in memory", in_memory);
            case.add("atoll in memory, and the disk", in_memory + on_disk);
            for engine in engines.iter_mut() {
                case.add(engine.rival.name(), engine.time(BULK_DATABASE, statement)?);
                engine.time(BULK_DATABASE, undo)?;
            }
            stored.run(undo)?;
            memory.run(undo)?;
        }
        plan.end_round(round, &mut cases);
    }
    cases.push(index_bytes(plan, &memory, engines)?);
    Ok(cases)
}

/// Bytes for each row of an index: of memory, and for rivals of the file.
fn index_bytes(
    plan: &StorePlan,
    database: &OurDatabase,
    engines: &mut [StoreEngine],
) -> Result<PairedCase> {
    let settings = json!({ "work": "bulk", "statement": "create index", "rows": plan.bulk_rows });
    let mut case = PairedCase::new(settings, "bytes/row", Better::Less);
    let bytes =
        || database.number("SELECT index_bytes FROM atoll.tables WHERE \"table\" = 'source'");
    let before = bytes()?;
    database.run(CREATE_INDEX)?;
    let index = bytes()?.saturating_sub(before);
    database.run(DROP_INDEX)?;
    case.add("atoll", index as f64 / plan.bulk_rows as f64);
    for engine in engines {
        let Some(before) = engine.index_bytes(BULK_DATABASE, "source")? else { continue };
        engine.time(BULK_DATABASE, CREATE_INDEX)?;
        let index = engine.index_bytes(BULK_DATABASE, "source")?.unwrap_or(before) - before;
        engine.time(BULK_DATABASE, DROP_INDEX)?;
        case.add(engine.rival.name(), index as f64 / plan.bulk_rows as f64);
    }
    Ok(case)
}

/// Checkpoints after few changes, and opening the result.
fn checkpoints(plan: &StorePlan, runtime: &Runtime) -> Result<Vec<PairedCase>> {
    let directory = plan.directory.join("atoll-checkpoint");
    let mut database = OurDatabase::open(runtime, Some(directory.clone()))?;
    database.source(plan.bulk_rows)?;
    let mut cases = Vec::new();
    for (place, _) in CHANGES {
        let settings = json!({ "work": "checkpoint", "changed": place });
        cases.push(PairedCase::new(settings.clone(), "% of the table written", Better::Less));
        cases.push(PairedCase::new(settings, "s", Better::Less));
    }
    cases.push(PairedCase::new(json!({ "work": "recovery" }), "MB/s", Better::More));
    for round in plan.rounds() {
        let (recovery, checkpoints) = cases.split_last_mut().context("there is a case")?;
        let bytes = table_bytes(&database)?;
        if plan.has(StoreWork::Checkpoint) {
            for (cases, (_, rows)) in checkpoints.chunks_mut(2).zip(CHANGES) {
                checkpoint(&database, rows, bytes, cases)?;
            }
        }
        if plan.has(StoreWork::Recovery) {
            let (opened, seconds) = database.reopen(&directory)?;
            recovery.add("atoll", bytes as f64 / 1e6 / seconds);
            database = opened;
        }
        plan.end_round(round, &mut cases);
    }
    Ok(cases)
}

/// Opening a table with a primary key, whose index is built then.
fn recovery_with_key(plan: &StorePlan, runtime: &Runtime) -> Result<PairedCase> {
    let directory = plan.directory.join("atoll-keyed");
    let mut database = OurDatabase::open(runtime, Some(directory.clone()))?;
    database.keyed_source(plan.bulk_rows)?;
    let settings = json!({ "work": "recovery", "key": "primary" });
    let mut case = PairedCase::new(settings, "MB/s", Better::More);
    for round in plan.rounds() {
        let bytes = table_bytes(&database)?;
        let (opened, seconds) = database.reopen(&directory)?;
        case.add("atoll", bytes as f64 / 1e6 / seconds);
        database = opened;
        plan.end_round(round, std::slice::from_mut(&mut case));
    }
    Ok(case)
}

fn table_bytes(database: &OurDatabase) -> Result<u64> {
    database.number("SELECT memory_bytes FROM atoll.tables WHERE \"table\" = 'source'")
}

fn checkpoint(
    database: &OurDatabase,
    rows: &str,
    bytes: u64,
    cases: &mut [PairedCase],
) -> Result<()> {
    let runtime = database.database().runtime().clone();
    runtime.block_on(database.database().checkpoint())?;
    database.run(&format!("UPDATE source SET value = value + 1 WHERE {rows}"))?;
    let start = Instant::now();
    let report = runtime.block_on(database.database().checkpoint())?;
    let seconds = start.elapsed().as_secs_f64();
    let report = report.context("a database in a directory has checkpoints")?;
    let written = report.chunk_bytes + report.table_bytes;
    for (case, sample) in cases.iter_mut().zip([written as f64 / bytes as f64 * 100.0, seconds]) {
        case.add("atoll", sample);
    }
    Ok(())
}
