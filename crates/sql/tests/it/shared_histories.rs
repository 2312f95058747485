//! Histories of clients that share scans while others write, checked for consistency; and the state after a process was
//! killed in the middle of it.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_placement::{LiveKernel, Strategy};
use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::datafusion::common::ScalarValue;
use atoll_sql::{DatabaseOptions, PreparedStatement, Session};
use atoll_sys::SplitMix64;
use atoll_testkit::history::{
    Ending, HistoryStep, HistoryTransaction, NOT_COMMITTED_READS, NOT_SNAPSHOTS, anomalies,
};
use atoll_testkit::machines;
use atoll_topology::Machine;
use futures::future::join_all;

use crate::common::{fake, live, rows, session, texts};

/// Lists, and the parts to which they are assigned in turn.
const KEYS: u64 = 12;
const PARTS: u64 = 3;
/// Values that one statement appends follow its number, multiplied by this.
const STEP: u64 = 100;

/// Moments and numbers of statements.
#[derive(Default)]
struct HistoryClock {
    now: AtomicU64,
    statements: AtomicU64,
}

impl HistoryClock {
    fn now(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }
}

struct HistoryClient {
    read: PreparedStatement,
    append: PreparedStatement,
    append_to_part: PreparedStatement,
}

impl HistoryClient {
    async fn new(session: &Session) -> Self {
        let session = session.database().session().expect("a session");
        let prepare = async |sql: &'static str| session.prepare(sql).await.expect(sql);
        Self {
            read: prepare("SELECT id, list FROM lists WHERE part BETWEEN $1 AND $2").await,
            append: prepare("UPDATE lists SET list = list || ' ' || $2 WHERE id = $1").await,
            append_to_part: prepare(
                "UPDATE lists SET list = list || ' ' || CAST($2 + id AS VARCHAR) WHERE part = $1",
            )
            .await,
        }
    }

    async fn run(self, clock: &HistoryClock, seed: u64) -> Vec<HistoryTransaction> {
        let random = &mut SplitMix64::new(seed);
        let mut seen = Vec::new();
        for _ in 0..40 {
            seen.push(match random.below(4) {
                0 => self.append(clock, random.below(KEYS)).await,
                1 => self.append_to_part(clock, random.below(PARTS)).await,
                _ => {
                    let first = random.below(PARTS);
                    self.read(clock, (first, first + random.below(PARTS - first))).await
                }
            });
        }
        seen
    }

    async fn read(&self, clock: &HistoryClock, (first, last): (u64, u64)) -> HistoryTransaction {
        let since = clock.now();
        let found = done(&self.read, &[number(first), number(last)]).await.expect("it is read");
        let steps: Vec<HistoryStep> =
            found.iter().flat_map(texts).map(|row| read_step(&row, since)).collect();
        assert_eq!(steps.len() as u64, (last - first + 1) * (KEYS / PARTS));
        HistoryTransaction { steps, ending: Ending::Committed(clock.now()) }
    }

    async fn append(&self, clock: &HistoryClock, key: u64) -> HistoryTransaction {
        let value = clock.statements.fetch_add(1, Ordering::Relaxed) * STEP + key;
        let text = ScalarValue::Utf8View(Some(value.to_string()));
        let written = done(&self.append, &[number(key), text]).await;
        let steps = vec![HistoryStep::Append { key, value }];
        HistoryTransaction { steps, ending: ending(clock, written.is_ok()) }
    }

    async fn append_to_part(&self, clock: &HistoryClock, part: u64) -> HistoryTransaction {
        let first = clock.statements.fetch_add(1, Ordering::Relaxed) * STEP;
        let written = done(&self.append_to_part, &[number(part), number(first)]).await;
        let keys = (0..KEYS).filter(|key| key % PARTS == part);
        let steps = keys.map(|key| HistoryStep::Append { key, value: first + key }).collect();
        HistoryTransaction { steps, ending: ending(clock, written.is_ok()) }
    }
}

fn number(number: u64) -> ScalarValue {
    ScalarValue::Int64(Some(number as i64))
}

/// A statement may lose a deadlock.
fn ending(clock: &HistoryClock, is_written: bool) -> Ending {
    if is_written { Ending::Committed(clock.now()) } else { Ending::Aborted }
}

fn read_step(row: &[String], since: u64) -> HistoryStep {
    let values = row[1].split_whitespace().map(|value| value.parse().expect("a number"));
    HistoryStep::Read { key: row[0].parse().expect("a key"), list: values.collect(), since }
}

async fn done(
    statement: &PreparedStatement,
    values: &[ScalarValue],
) -> Result<Vec<RecordBatch>, atoll_sql::SqlError> {
    statement.execute(values).await?.collect().await
}

fn check_history(session: &Session, seed: u64) {
    rows(session, "CREATE TABLE lists (id BIGINT PRIMARY KEY, part BIGINT, list VARCHAR)");
    let fill = "INSERT INTO lists SELECT i, i % 3, '' FROM generate_series(0, 11) AS s(i)";
    rows(session, fill);
    let clock = HistoryClock::default();
    let mut history: Vec<HistoryTransaction> = session.runtime().block_on(async {
        let clients = (0..10).map(|client| {
            let clock = &clock;
            async move { HistoryClient::new(session).await.run(clock, seed * 100 + client).await }
        });
        join_all(clients).await.into_iter().flatten().collect()
    });
    let since = clock.now();
    let last = rows(session, "SELECT id, list FROM lists");
    let steps = last.iter().map(|row| read_step(row, since)).collect();
    history.push(HistoryTransaction { steps, ending: Ending::Committed(u64::MAX) });
    let found = anomalies(&history);
    for anomaly in NOT_COMMITTED_READS.into_iter().chain(NOT_SNAPSHOTS) {
        assert!(!found.contains(&anomaly), "{anomaly:?}, seed {seed}: {history:#?}");
    }
    let shared = rows(session, "SELECT queries FROM atoll.scans WHERE table_name = 'lists'");
    assert!(shared[0][0].parse::<u64>().expect("a number") > 50, "{shared:?}");
}

#[test]
fn every_client_sees_one_version_and_all_that_was_acknowledged() {
    check_history(&live(), 1);
    check_history(&fake(machines::four_nodes(), Strategy::Aligned), 2);
}

/// The directory of a child.
const DIRECTORY: &str = "ATOLL_SCAN_KILL_DIRECTORY";
const CHILD: &str = "shared_histories::the_child_answers_until_it_is_killed";
const WRITERS: u64 = 3;
const KILLS: usize = 5;
/// Acknowledgements after which a child is killed.
const ACKNOWLEDGED: usize = 40;

fn durable(directory: &Path) -> Session {
    let machine = Arc::new(Machine::discover().expect("the machine can be read"));
    let options =
        DatabaseOptions { directory: Some(directory.to_owned()), ..DatabaseOptions::default() };
    session(machine, Arc::new(LiveKernel::new()), options)
}

/// Prints a line. The parent that read the lines may be gone.
fn say(line: &str) -> bool {
    writeln!(std::io::stdout(), "\n{line}").is_ok()
}

#[test]
fn the_child_answers_until_it_is_killed() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let session = durable(Path::new(&directory));
    rows(
        &session,
        "CREATE TABLE IF NOT EXISTS t AS SELECT i AS id, i % 3 AS part, 0 AS n, 'x' AS tag
         FROM generate_series(0, 299) AS s(i)",
    );
    let mut last = BTreeMap::new();
    for row in rows(&session, "SELECT part, min(n), max(n), count(*) FROM t GROUP BY part") {
        assert_eq!((&row[1], row[3].as_str()), (&row[2], "100"), "a change in part: {row:?}");
        last.insert(row[0].parse::<u64>().expect("a part"), row[1].parse::<u64>().expect("n"));
        say(&format!("found {} {}", row[0], row[1]));
    }
    session.runtime().block_on(async {
        let writers = (0..WRITERS).map(|part| {
            let (own, mut n) = (session.database().session().expect("a session"), last[&part]);
            async move {
                let sql = "UPDATE t SET n = $2 WHERE part = $1 AND tag = 'x'";
                let update = own.prepare(sql).await.expect(sql);
                loop {
                    n += 1;
                    done(&update, &[number(part), number(n)]).await.expect("it is written");
                    if !say(&format!("wrote {part} {n}")) {
                        return;
                    }
                }
            }
        });
        let readers = (0..12).map(|reader: u64| {
            let own = session.database().session().expect("a session");
            async move {
                let sql = "SELECT n FROM t WHERE part = $1 AND id < $2";
                let read = own.prepare(sql).await.expect(sql);
                loop {
                    let found = done(&read, &[number(reader % WRITERS), number(500)]).await;
                    let mut seen: Vec<_> =
                        found.expect("it is read").iter().flat_map(texts).collect();
                    seen.dedup();
                    assert_eq!(seen.len(), 1, "half of a change: {seen:?}");
                    tokio::task::yield_now().await;
                }
            }
        });
        // Ends with the first of the writers: its parent is gone.
        tokio::select! {
            _ = futures::future::select_all(writers.map(Box::pin)) => {}
            _ = join_all(readers) => {}
        }
    });
}

/// Lets a child work, and kills it; what it found and its last acknowledged writes, by part.
fn child(directory: &Path) -> (BTreeMap<u64, u64>, BTreeMap<u64, u64>) {
    let mut child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", CHILD, "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let (mut found, mut wrote, mut count) = (BTreeMap::new(), BTreeMap::new(), 0);
    let out = child.stdout.take().expect("its output");
    for line in BufReader::new(out).lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let [what, part, n] = words[..] else { continue };
        let (Ok(part), Ok(n)) = (part.parse(), n.parse()) else { continue };
        match what {
            "found" => drop(found.insert(part, n)),
            "wrote" => drop(wrote.insert(part, n)),
            _ => continue,
        }
        count += usize::from(what == "wrote");
        if count == ACKNOWLEDGED {
            child.kill().expect("it is killed");
        }
    }
    child.wait().expect("it has ended");
    assert!(count >= ACKNOWLEDGED, "the child ended by itself; its messages are above");
    (found, wrote)
}

#[test]
fn what_was_acknowledged_while_scans_are_shared_is_there_after_every_kill() {
    let place = tempfile::tempdir().expect("a directory");
    let mut acknowledged: BTreeMap<u64, u64> = (0..WRITERS).map(|part| (part, 0)).collect();
    for kill in 0..KILLS {
        let (found, wrote) = child(place.path());
        for (part, n) in &found {
            let least = acknowledged[part];
            assert!((least..=least + 1).contains(n), "kill {kill}, part {part}: {n} for {least}");
        }
        acknowledged = found;
        acknowledged.extend(wrote);
    }
    let session = durable(place.path());
    for row in rows(&session, "SELECT part, min(n), max(n) FROM t GROUP BY part") {
        let [part, least, most] = [0, 1, 2].map(|at| row[at].parse::<u64>().expect("a number"));
        let wanted = acknowledged[&part];
        assert!(least == most && (wanted..=wanted + 1).contains(&least), "{row:?} for {wanted}");
    }
}
