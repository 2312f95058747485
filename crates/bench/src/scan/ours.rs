//! Embedded Atoll: a database, and clients on its workers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use atoll_runtime::{Runtime, WorkerId};
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::{Database, DatabaseOptions, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::attributes::{BOOKINGS, create_table};
use super::client::{Bookings, ClientLoad, ClientRun, ScanClient};
use super::cycles::CycleSums;
use crate::answers::{self, RowOrder};
use crate::protocol::Answer;
use crate::session;
use crate::worker::values;

/// Shortest time for which the thread of the arrivals sleeps.
const NAP: Duration = Duration::from_micros(50);

/// A database of Atoll with the bookings, and its clients.
pub(super) struct BookingDatabase {
    runtime: Runtime,
    database: Database,
    session: Session,
    pub(super) bookings: Arc<Bookings>,
    /// Statements that every session begins with.
    settings: Vec<String>,
    clients: Vec<Arc<ScanClient>>,
    /// Changes that all rows had when they were loaded.
    changes: u64,
    done: ClientRun,
}

/// The outcome of a run: its seconds, what the clients did, and the cycles that answered them.
pub(super) struct LoadRun {
    pub(super) seconds: f64,
    pub(super) did: ClientRun,
    pub(super) cycles: CycleSums,
}

impl LoadRun {
    /// Statements a second.
    pub(super) fn rate(&self) -> f64 {
        self.did.count() as f64 / self.seconds
    }
}

impl BookingDatabase {
    /// Loads the bookings from their file, into a directory or into memory.
    pub(super) fn load(
        runtime: &Runtime,
        directory: Option<PathBuf>,
        file: &Path,
        bookings: Bookings,
        settings: Vec<String>,
    ) -> Result<Self> {
        let options = DatabaseOptions { directory, ..DatabaseOptions::default() };
        let database = Database::start(runtime.clone(), options)?;
        let session = database.session()?;
        let (runtime, bookings, clients) = (runtime.clone(), Arc::new(bookings), Vec::new());
        let done = ClientRun::default();
        let mut loaded =
            Self { runtime, database, session, bookings, settings, clients, changes: 0, done };
        loaded.run(&create_table())?;
        let file = file.to_str().context("the path of the bookings is not UTF-8")?;
        loaded
            .run(&format!("INSERT INTO bookings SELECT * FROM '{}'", file.replace('\'', "''")))?;
        for setting in loaded.settings.clone() {
            loaded.run(&setting)?;
        }
        loaded.changes = loaded.number("SELECT sum(changes) FROM bookings")?;
        Ok(loaded)
    }

    /// Cores of the machine.
    pub(super) fn cores(&self) -> usize {
        self.runtime.machine().cores.len()
    }

    /// Opens a session.
    pub(super) fn session(&self) -> Result<Session> {
        Ok(self.database.session()?)
    }

    /// Runs a task as one of the clients.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        number: usize,
        task: impl Future<Output = Result<T>> + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        self.runtime.spawn_on(self.worker(number), task)
    }

    pub(super) fn run(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        session::run(&self.session, sql)
    }

    fn number(&self, sql: &str) -> Result<u64> {
        session::number(&self.session, sql)
    }

    /// Memory of the table, bytes.
    pub(super) fn bytes(&self) -> Result<u64> {
        self.number("SELECT memory_bytes FROM atoll.tables WHERE \"table\" = 'bookings'")
    }

    /// The answer to a query.
    pub(super) fn answer(&self, query: usize) -> Result<Answer> {
        answer(&self.run(&self.bookings.queries.sql(query))?)
    }

    /// Compares the answers to some queries with the rows that pass their tests one by one.
    pub(super) fn check_answers(&self, queries: &[usize]) -> Result<()> {
        let bookings = &self.bookings;
        for query in queries {
            let rows = bookings.queries.rows_of(*query, &bookings.relation);
            let output = bookings.queries.statement(*query).output;
            let wanted = answer(&[bookings.relation.batch(rows.into_iter(), &output)?])?;
            let found = self.answer(*query)?;
            if let Some(difference) = answers::difference(&found, &wanted, RowOrder::Any) {
                let sql = bookings.queries.sql(*query);
                bail!("{sql}: Atoll and a row-by-row scan differ: {difference}");
            }
        }
        Ok(())
    }

    /// Whether all that was acknowledged is in the table.
    pub(super) fn check_changes(&self) -> Result<()> {
        let loaded = self.bookings.relation.rows;
        let rows = self.number("SELECT count(*) FROM bookings")?;
        let changes = self.number(&format!(
            "SELECT sum(changes) FROM bookings WHERE {} <= {loaded}",
            BOOKINGS[0].name
        ))?;
        let wanted = (loaded + self.done.inserted, self.changes + self.done.updated);
        ensure!(
            (rows, changes) == wanted,
            "Atoll has {rows} bookings with {changes} changes where {} with {} were acknowledged",
            wanted.0,
            wanted.1
        );
        Ok(())
    }

    /// Makes the clients that are not there yet.
    pub(super) fn prepare(&mut self, clients: usize) -> Result<()> {
        let missing = self.clients.len()..clients.max(self.clients.len());
        let made = missing.map(|number| {
            let (bookings, settings) = (Arc::clone(&self.bookings), self.settings.clone());
            let client = ScanClient::prepare(self.database.clone(), number, bookings, settings);
            self.runtime.spawn_on(self.worker(number), client)
        });
        let made: Vec<_> = made.collect();
        let made = self.wait(made)?;
        self.clients.extend(made.into_iter().map(Arc::new));
        Ok(())
    }

    fn worker(&self, client: usize) -> WorkerId {
        WorkerId((client % self.runtime.worker_count()) as u32)
    }

    pub(super) fn wait<T>(&self, tasks: Vec<JoinHandle<Result<T>>>) -> Result<Vec<T>> {
        self.runtime.block_on(async {
            let mut results = Vec::with_capacity(tasks.len());
            for task in tasks {
                results.push(task.await.context("a worker failed")??);
            }
            Ok(results)
        })
    }

    fn finish(
        &mut self,
        (start, before): (Instant, CycleSums),
        tasks: Vec<JoinHandle<Result<ClientRun>>>,
    ) -> Result<LoadRun> {
        let runs = self.wait(tasks)?;
        let seconds = start.elapsed().as_secs_f64();
        let mut did = ClientRun::default();
        runs.into_iter().for_each(|run| did.merge(run));
        self.done.updated += did.updated;
        self.done.inserted += did.inserted;
        let cycles = CycleSums::now(&self.session)?.since(before);
        Ok(LoadRun { seconds, did, cycles })
    }

    /// A closed loop: each client sends its next query after the answer.
    pub(super) fn closed(&mut self, load: ClientLoad, time: Duration) -> Result<LoadRun> {
        self.prepare(load.clients)?;
        let before = CycleSums::now(&self.session)?;
        let start = Instant::now();
        let tasks = self.clients[..load.clients].iter().enumerate().map(|(number, client)| {
            let (client, bookings) = (Arc::clone(client), Arc::clone(&self.bookings));
            self.runtime
                .spawn_on(self.worker(number), client.run_until(bookings, load, start + time))
        });
        let tasks = tasks.collect();
        self.finish((start, before), tasks)
    }

    /// An open loop: statements arrive whether or not the ones before are answered, so many a second on
    /// average, at random moments. Latencies count from these.
    pub(super) fn open(&mut self, load: ClientLoad, rate: f64, time: Duration) -> Result<LoadRun> {
        self.prepare(load.clients)?;
        let (sender, arrivals) = unbounded_channel();
        let arrivals = Arc::new(Mutex::new(arrivals));
        let before = CycleSums::now(&self.session)?;
        let start = Instant::now();
        let tasks = self.clients[..load.clients].iter().enumerate().map(|(number, client)| {
            let (client, bookings) = (Arc::clone(client), Arc::clone(&self.bookings));
            let arrivals = Arc::clone(&arrivals);
            self.runtime
                .spawn_on(self.worker(number), client.run_arrivals(bookings, load, arrivals))
        });
        let tasks = tasks.collect();
        let clock = thread::spawn(move || arrive(&sender, start, rate, time, load.seed));
        let run = self.finish((start, before), tasks)?;
        clock.join().map_err(|_| anyhow!("the thread of the arrivals panicked"))?;
        Ok(run)
    }
}

/// Schedules the clients' queries: the moments of a Poisson process.
fn arrive(
    clients: &UnboundedSender<Instant>,
    start: Instant,
    rate: f64,
    time: Duration,
    seed: u64,
) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut at = 0.0;
    loop {
        at += -(1.0 - random.random::<f64>()).ln() / rate;
        if at >= time.as_secs_f64() {
            return;
        }
        let due = start + Duration::from_secs_f64(at);
        let wait = due.saturating_duration_since(Instant::now());
        if wait > NAP {
            thread::sleep(wait);
        }
        if clients.send(due).is_err() {
            return;
        }
    }
}

/// Rows as texts, to be compared.
fn answer(batches: &[RecordBatch]) -> Result<Answer> {
    let (columns, values) = values::from_batches(batches)?;
    Ok(Answer { columns, values, ..Answer::default() })
}
