//! A client: a task with its own session, which waits for each answer before its next query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{Database, PreparedStatement, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedReceiver;

use super::attributes::ATTRIBUTES;
use super::queries::{PER_STATEMENT, ScanQueries};
use super::relation::Relation;
use crate::latency::LatencyHistogram;

/// Statements that a client prepares at least.
const STATEMENTS_MIN: usize = 4;
/// One in this many changes is an insert, the others are updates of a row by its key.
const INSERT_OF: u64 = 4;
const UPDATE: &str =
    "UPDATE bookings SET status = $2, changes = changes + 1, points = $3 WHERE booking_id = $1";

/// How queries reach Atoll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementPath {
    /// Prepared once, run with values.
    Prepared,
    /// As text, with the values in it.
    Text,
}

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientLoad {
    pub(super) clients: usize,
    pub(super) path: StatementPath,
    /// Share of changes, kept to in every stretch of a client's statements.
    pub(super) changes: f64,
    pub(super) seed: u64,
}

/// State shared by all clients.
#[derive(Debug)]
pub(super) struct Bookings {
    pub(super) relation: Relation,
    pub(super) queries: ScanQueries,
    /// The row that is inserted next.
    pub(super) next_row: AtomicU64,
}

/// Results of one client, or the sum of all.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientRun {
    pub(super) queries: LatencyHistogram,
    pub(super) changes: LatencyHistogram,
    /// Rows that each query found.
    pub(super) found: Vec<u32>,
    pub(super) updated: u64,
    pub(super) inserted: u64,
}

/// A client.
#[derive(Debug)]
pub(super) struct ScanClient {
    number: usize,
    session: Session,
    /// Some statements of all, by their number.
    statements: Vec<(usize, PreparedStatement)>,
    update: PreparedStatement,
    insert: PreparedStatement,
}

impl ClientRun {
    /// Adds what another one did.
    pub(super) fn merge(&mut self, other: Self) {
        self.queries.merge(&other.queries);
        self.changes.merge(&other.changes);
        self.found.extend(other.found);
        self.updated += other.updated;
        self.inserted += other.inserted;
    }

    /// Statements in all.
    pub(super) fn count(&self) -> u64 {
        self.queries.count() + self.changes.count()
    }
}

impl ScanClient {
    /// Prepares the statements of a client. The first clients have many, so that few clients ask for as
    /// much as many do.
    pub(super) async fn prepare(
        database: Database,
        number: usize,
        bookings: Arc<Bookings>,
        settings: Vec<String>,
    ) -> Result<Self> {
        let session = database.session()?;
        for setting in &settings {
            session.run(setting).await?.collect().await?;
        }
        let all = bookings.queries.statements.len();
        let own = (all / (number + 1)).max(STATEMENTS_MIN).min(all);
        let mut statements = Vec::with_capacity(own);
        for at in 0..own {
            let statement = (number * STATEMENTS_MIN + at) % all;
            let sql = bookings.queries.statements[statement].sql();
            statements.push((statement, session.prepare(&sql).await?));
        }
        let parameters: Vec<String> = (1..=ATTRIBUTES).map(|number| format!("${number}")).collect();
        let insert = format!("INSERT INTO bookings VALUES ({})", parameters.join(", "));
        let (update, insert) = (session.prepare(UPDATE).await?, session.prepare(&insert).await?);
        Ok(Self { number, session, statements, update, insert })
    }

    /// Asks again and again, until a moment.
    pub(super) async fn run_until(
        self: Arc<Self>,
        bookings: Arc<Bookings>,
        load: ClientLoad,
        end: Instant,
    ) -> Result<ClientRun> {
        let mut turn = ClientTurn::new(&self, bookings, load);
        while Instant::now() < end {
            turn.next(Instant::now()).await?;
            // One whose statements never wait lets the others of its worker go on, as if it were remote.
            tokio::task::yield_now().await;
        }
        Ok(turn.run)
    }

    /// Asks at each moment at which a client is to ask, until there are no more.
    pub(super) async fn run_arrivals(
        self: Arc<Self>,
        bookings: Arc<Bookings>,
        load: ClientLoad,
        arrivals: Arc<Mutex<UnboundedReceiver<Instant>>>,
    ) -> Result<ClientRun> {
        let mut turn = ClientTurn::new(&self, bookings, load);
        loop {
            let arrival = arrivals.lock().await.recv().await;
            let Some(arrival) = arrival else { return Ok(turn.run) };
            turn.next(arrival).await?;
        }
    }
}

/// A client at work.
struct ClientTurn<'a> {
    client: &'a ScanClient,
    bookings: Arc<Bookings>,
    load: ClientLoad,
    random: StdRng,
    /// Changes that are due, and a part of one.
    due: f64,
    run: ClientRun,
}

impl<'a> ClientTurn<'a> {
    fn new(client: &'a ScanClient, bookings: Arc<Bookings>, load: ClientLoad) -> Self {
        let mut random = StdRng::seed_from_u64(load.seed ^ ((client.number as u64) << 32));
        let due = random.random::<f64>();
        Self { client, bookings, load, random, due, run: ClientRun::default() }
    }

    /// Runs a statement, whose latency counts from a moment.
    async fn next(&mut self, from: Instant) -> Result<()> {
        self.due += self.load.changes;
        if self.due >= 1.0 {
            self.due -= 1.0;
            match self.random.random_range(0..INSERT_OF) {
                0 => self.insert().await?,
                _ => self.update().await?,
            }
            self.run.changes.add(from.elapsed());
        } else {
            let found = self.query().await?;
            self.run.queries.add(from.elapsed());
            self.run.found.push(found);
        }
        Ok(())
    }

    async fn query(&mut self) -> Result<u32> {
        let own = self.random.random_range(0..self.client.statements.len());
        let (statement, prepared) = &self.client.statements[own];
        let query = ScanQueries::of_statement(*statement).start
            + self.random.random_range(0..PER_STATEMENT);
        let queries = &self.bookings.queries;
        let result = match self.load.path {
            StatementPath::Prepared => prepared.execute(&queries.values(query)).await?,
            StatementPath::Text => self.client.session.run(&queries.sql(query)).await?,
        };
        let rows: usize = result.collect().await?.iter().map(RecordBatch::num_rows).sum();
        Ok(rows as u32)
    }

    /// Changes a row that no other client changes.
    async fn update(&mut self) -> Result<()> {
        let (rows, clients) = (self.bookings.relation.rows, self.load.clients as u64);
        let own = self.random.random_range(0..(rows / clients).max(1));
        let key = (own * clients + self.client.number as u64) % rows + 1;
        let values = [
            ScalarValue::Int64(Some(key as i64)),
            ScalarValue::Int16(Some(self.random.random_range(0..6))),
            ScalarValue::Int32(Some(self.random.random_range(0..10_000))),
        ];
        changed_one(&self.client.update, &values).await?;
        self.run.updated += 1;
        Ok(())
    }

    async fn insert(&mut self) -> Result<()> {
        let row = self.bookings.next_row.fetch_add(1, Ordering::Relaxed);
        changed_one(&self.client.insert, &self.bookings.relation.row(row)).await?;
        self.run.inserted += 1;
        Ok(())
    }
}

/// Runs a statement that changes one row.
async fn changed_one(statement: &PreparedStatement, values: &[ScalarValue]) -> Result<()> {
    let rows = statement.execute(values).await?.collect().await?;
    let rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
    ensure!(rows == 1, "a change of one row changed {rows} rows");
    Ok(())
}
