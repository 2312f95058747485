//! Embedded Atoll: a database, and sessions on its workers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use atoll_runtime::{Runtime, WorkerId};
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{Database, DatabaseOptions, PreparedStatement, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::work::{INDEXES, RowStore, StoreWork};
use crate::session;

/// Statements after which a session lets the others of its worker go on, as one does that waits for a client.
const TURN: u64 = 32;

/// A database of Atoll, and what must be in its table.
#[derive(Debug)]
pub(super) struct OurDatabase {
    database: Database,
    session: Session,
    rows: u64,
    next: u64,
    inserted: u64,
    updated: u64,
}

impl OurDatabase {
    /// A new database in a directory, or in memory.
    pub(super) fn open(runtime: &Runtime, directory: Option<PathBuf>) -> Result<Self> {
        let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
        let database = Database::start(runtime.clone(), options)?;
        let session = database.session()?;
        Ok(Self { database, session, rows: 0, next: 0, inserted: 0, updated: 0 })
    }

    /// Makes the table of single rows.
    pub(super) fn fill(&mut self, store: RowStore, rows: u64) -> Result<()> {
        if self.database.open_report().is_some() {
            self.run(&format!("SET atoll.durability = '{}'", store.durability.name()))?;
        }
        self.run(
            "CREATE TABLE item (id BIGINT PRIMARY KEY, value BIGINT NOT NULL, name VARCHAR, code BIGINT)",
        )?;
        self.run(&format!(
            "INSERT INTO item SELECT i, 0, 'item ' || i, i FROM range(0, {rows}) AS n(i)"
        ))?;
        for index in &INDEXES[..usize::from(store.indexes)] {
            self.run(index)?;
        }
        (self.rows, self.next) = (rows, rows);
        Ok(())
    }

    /// Makes the table that is copied.
    pub(super) fn source(&self, rows: u64) -> Result<()> {
        self.run(&format!(
            "CREATE TABLE source AS SELECT i AS id, i * 7919 % 1000003 AS value, i * 0.5::DOUBLE AS amount, \
             'item ' || i AS name FROM range(0, {rows}) AS n(i)"
        ))?;
        Ok(())
    }

    /// The same with a primary key.
    pub(super) fn keyed_source(&self, rows: u64) -> Result<()> {
        self.run(
            "CREATE TABLE source (id BIGINT PRIMARY KEY, value BIGINT, amount DOUBLE, name VARCHAR)",
        )?;
        self.run(&format!(
            "INSERT INTO source SELECT i, i * 7919 % 1000003, i * 0.5::DOUBLE, 'item ' || i \
             FROM range(0, {rows}) AS n(i)"
        ))?;
        Ok(())
    }

    /// The database.
    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// Runs a statement.
    pub(super) fn run(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        session::run(&self.session, sql)
    }

    /// Seconds of a statement.
    pub(super) fn time(&self, sql: &str) -> Result<f64> {
        let start = Instant::now();
        self.run(sql)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// The number returned by a query.
    pub(super) fn number(&self, sql: &str) -> Result<u64> {
        session::number(&self.session, sql)
    }

    /// Transactions per second of this many sessions, each on a worker, at least one each.
    pub(super) fn rate(
        &mut self,
        work: StoreWork,
        sessions: u16,
        time: Duration,
        seed: u64,
    ) -> Result<f64> {
        let sql = work.statement().context("not a statement of one row")?;
        let runtime = self.database.runtime().clone();
        let mut prepared = Vec::with_capacity(usize::from(sessions));
        for _ in 0..sessions {
            let session = self.database.session()?;
            prepared.push(runtime.block_on(session.prepare(sql))?);
        }
        let own_rows = (self.rows / u64::from(sessions)).max(1);
        let start = Instant::now();
        let tasks = prepared.into_iter().enumerate().map(|(number, statement)| {
            let keys = SessionKeys {
                work,
                number: number as u64,
                sessions: u64::from(sessions),
                first: self.next,
                own_rows,
                random: StdRng::seed_from_u64(seed.wrapping_add(number as u64)),
            };
            let worker = WorkerId((number % runtime.worker_count()) as u32);
            runtime.spawn_on(worker, work_until(statement, keys, start + time))
        });
        let tasks: Vec<_> = tasks.collect();
        let counts = runtime.block_on(async {
            let mut counts = Vec::with_capacity(tasks.len());
            for task in tasks {
                counts.push(task.await.context("a worker failed")??);
            }
            anyhow::Ok(counts)
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let count: u64 = counts.iter().sum();
        let most = counts.into_iter().max().unwrap_or_default();
        self.next += (most + 1) * u64::from(sessions);
        match work {
            StoreWork::Insert => self.inserted += count,
            StoreWork::Update => self.updated += count,
            _ => {}
        }
        Ok(count as f64 / seconds)
    }

    /// Whether all that was acknowledged is in the table.
    pub(super) fn check(&self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let (rows, changes) = (
            self.number("SELECT count(*) FROM item")?,
            self.number("SELECT sum(value) FROM item")?,
        );
        let (wanted, updated) = (self.rows + self.inserted, self.updated);
        ensure!(rows == wanted, "Atoll has {rows} rows where {wanted} were acknowledged");
        ensure!(
            changes == updated,
            "Atoll has {changes} changes where {updated} were acknowledged"
        );
        Ok(())
    }

    /// Closes it and opens its directory again; returns the seconds.
    pub(super) fn reopen(self, directory: &Path) -> Result<(Self, f64)> {
        let Self { database, session, rows, next, inserted, updated } = self;
        let runtime = database.runtime().clone();
        drop((session, database));
        let start = Instant::now();
        let opened = Self::open(&runtime, Some(directory.to_owned()))?;
        let seconds = start.elapsed().as_secs_f64();
        Ok((Self { rows, next, inserted, updated, ..opened }, seconds))
    }
}

/// The keys of one session, which no other one changes.
struct SessionKeys {
    work: StoreWork,
    number: u64,
    sessions: u64,
    first: u64,
    own_rows: u64,
    random: StdRng,
}

impl SessionKeys {
    fn at(&mut self, count: u64) -> u64 {
        match self.work {
            StoreWork::Insert => self.first + count * self.sessions + self.number,
            _ => self.random.random_range(0..self.own_rows) * self.sessions + self.number,
        }
    }
}

/// Runs transactions until a moment; how many.
async fn work_until(
    statement: PreparedStatement,
    mut keys: SessionKeys,
    end: Instant,
) -> Result<u64> {
    let mut count = 0;
    while count == 0 || Instant::now() < end {
        let key = ScalarValue::Int64(Some(keys.at(count) as i64));
        let rows = statement.execute(&[key]).await?.collect().await?;
        ensure!(rows.iter().map(RecordBatch::num_rows).sum::<usize>() == 1, "not one row");
        count += 1;
        if count % TURN == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(count)
}
