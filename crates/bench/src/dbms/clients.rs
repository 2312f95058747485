//! Clients of one instance: threads without think time, each with a connection, that run the texts of one query in
//! turn.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use atoll_process::launch::{LiveCalls, PlacementCalls};
use atoll_sys::SplitMix64;
use atoll_topology::CpuSet;
use serde::{Deserialize, Serialize};

use super::pgbench::TransactionScript;
use crate::check::Check;

/// Times that a transaction is tried.
const TRIES_MAX: u32 = 100;

/// What the clients of an instance do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DbmsWork {
    /// Texts of the query, with different parameters, and then those of the query beside it.
    pub(super) texts: Vec<ClientText>,
    /// Number of texts of the query.
    pub(super) own: usize,
    /// Clients that run the query.
    pub(super) clients: u32,
    /// Clients that run the query beside it.
    pub(super) beside: u32,
    /// Seconds before the clock starts.
    pub(super) warmup: f64,
    pub(super) seconds: f64,
    /// Number of texts that each client runs, without a warm-up, whatever time they take.
    pub(super) statements: Option<u32>,
}

/// What a client runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ClientText {
    /// A query, whose result is always the same.
    Query(String),
    /// Transactions; one that fails, since another one wrote the same row, is repeated.
    Transactions(TransactionScript),
}

/// What a client did while the clock ran.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ClientWork {
    pub(super) count: u64,
    /// Those that ended in the first half of the time.
    pub(super) count_early: u64,
    /// Until the end of the last one.
    pub(super) seconds: f64,
    /// Transactions that failed and were run again.
    pub(super) repeats: u64,
}

/// What the clients of an instance did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct DbmsOutcome {
    pub(super) clients: Vec<ClientWork>,
    /// Clients of the query beside it.
    pub(super) beside: Vec<ClientWork>,
    /// The result of each text that was run.
    pub(super) checks: Vec<Option<Check>>,
}

impl DbmsOutcome {
    /// Queries a second of all clients.
    pub(super) fn per_s(&self) -> f64 {
        per_s(&self.clients)
    }

    /// Queries a second of all clients of the query beside it.
    pub(super) fn beside_per_s(&self) -> f64 {
        per_s(&self.beside)
    }

    /// Transactions that failed and were run again.
    pub(super) fn repeats(&self) -> u64 {
        self.clients.iter().chain(&self.beside).map(|it| it.repeats).sum()
    }

    /// Queries in the second half of the time by those in the first half; None with fewer than 20.
    pub(super) fn drift(outcomes: &[Self]) -> Option<f64> {
        let clients = || outcomes.iter().flat_map(|it| &it.clients);
        let all: u64 = clients().map(|it| it.count).sum();
        let early: u64 = clients().map(|it| it.count_early).sum();
        (all >= 20 && early > 0).then(|| (all - early) as f64 / early as f64)
    }
}

fn per_s(clients: &[ClientWork]) -> f64 {
    clients.iter().map(|it| it.count as f64 / it.seconds.max(1e-9)).sum()
}

/// A connection.
pub(super) trait DbmsClient {
    /// Runs a statement and reads its whole result: rows, and their checksum if it is asked for.
    fn run(&mut self, sql: &str, is_summed: bool) -> Result<Check>;
}

/// Runs the clients on these cpus.
///
/// # Errors
/// When a client cannot connect, a statement fails, or a text has different results.
pub(super) fn drive<C: DbmsClient>(
    connect: impl Fn() -> Result<C> + Sync,
    work: &DbmsWork,
    cpus: Option<&CpuSet>,
) -> Result<DbmsOutcome> {
    let all = work.clients + work.beside;
    let ready = Barrier::new(all as usize);
    let client = |number: u32| {
        if let Some(cpus) = cpus {
            // A refusal is among those of the instance itself.
            let _ = LiveCalls.set_affinity(cpus);
        }
        let connection = connect();
        // Also without a connection: the others wait for this one.
        ready.wait();
        Client {
            connection: connection?,
            work,
            number,
            random: None,
            repeats: 0,
            texts: match number < work.clients {
                true => 0..work.own,
                false => work.own..work.texts.len(),
            },
            at: number as usize,
            checks: vec![None; work.texts.len()],
        }
        .run()
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let start = |number| scope.spawn(move || client(number));
        let threads: Vec<_> = (0..all).map(start).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut outcome =
        DbmsOutcome { checks: vec![None; work.texts.len()], ..DbmsOutcome::default() };
    for (number, client) in (0..all).zip(ended) {
        let (done, checks) = client.map_err(|_| anyhow!("a client panicked"))??;
        let is_own = number < work.clients;
        if is_own { &mut outcome.clients } else { &mut outcome.beside }.push(done);
        merge(&mut outcome.checks, &checks)?;
    }
    Ok(outcome)
}

/// Adds results of texts; each text must have one result.
///
/// # Errors
/// When two differ.
pub(super) fn merge(all: &mut [Option<Check>], more: &[Option<Check>]) -> Result<()> {
    for (number, (known, new)) in all.iter_mut().zip(more).enumerate() {
        if let (Some(known), Some(new)) = (&known, new) {
            ensure!(
                known == new,
                "text {number} has different results: {} rows with the sum {:016x}, and {} rows with {:016x}",
                known.rows,
                known.checksum,
                new.rows,
                new.checksum
            );
        }
        *known = known.or(*new);
    }
    Ok(())
}

struct Client<'a, C> {
    connection: C,
    work: &'a DbmsWork,
    number: u32,
    /// The keys of its transactions.
    random: Option<SplitMix64>,
    repeats: u64,
    /// Its texts.
    texts: Range<usize>,
    /// Number of the next text among them.
    at: usize,
    checks: Vec<Option<Check>>,
}

impl<C: DbmsClient> Client<'_, C> {
    fn run(mut self) -> Result<(ClientWork, Vec<Option<Check>>)> {
        let done = match self.work.statements {
            Some(statements) => self.repeat(0.0, statements.into())?,
            None => {
                self.repeat(self.work.warmup, 1)?;
                self.repeat(self.work.seconds, 1)?
            }
        };
        Ok((done, self.checks))
    }

    /// Runs texts for some seconds, at least so many.
    fn repeat(&mut self, seconds: f64, least: u64) -> Result<ClientWork> {
        let time = Duration::from_secs_f64(seconds);
        let start = Instant::now();
        let (mut count, mut count_early) = (0, 0);
        self.repeats = 0;
        loop {
            let number = self.texts.start + self.at % self.texts.len().max(1);
            self.at += 1;
            self.step(number)?;
            let elapsed = start.elapsed();
            count += 1;
            count_early += u64::from(elapsed < time / 2);
            if elapsed >= time && count >= least {
                let (seconds, repeats) = (elapsed.as_secs_f64(), self.repeats);
                return Ok(ClientWork { count, count_early, seconds, repeats });
            }
        }
    }

    fn step(&mut self, number: usize) -> Result<()> {
        let work = self.work;
        let sql = match work.texts.get(number).context("a query has a text")? {
            ClientText::Query(sql) => sql,
            ClientText::Transactions(script) => return self.transaction(script),
        };
        let known = self.checks[number];
        let check = self.connection.run(sql, known.is_none())?;
        match known {
            None => self.checks[number] = Some(check),
            Some(known) => ensure!(
                known.rows == check.rows,
                "text {number} had {} rows, and then {}",
                known.rows,
                check.rows
            ),
        }
        Ok(())
    }
}

impl<C: DbmsClient> Client<'_, C> {
    /// Runs a transaction, again if it fails.
    fn transaction(&mut self, script: &TransactionScript) -> Result<()> {
        let number = self.number;
        let random = self.random.get_or_insert_with(|| script.random(number));
        let statements = script.next(random);
        for _ in 1..TRIES_MAX {
            if self.tried(&statements).is_ok() {
                return Ok(());
            }
            self.repeats += 1;
            // Some systems have already rolled it back, and refuse to do so again.
            let _ = self.connection.run("ROLLBACK", false);
        }
        self.tried(&statements)
            .with_context(|| format!("a transaction failed {TRIES_MAX} times; the last time"))
    }

    fn tried(&mut self, statements: &[String]) -> Result<()> {
        statements.iter().try_for_each(|sql| self.connection.run(sql, false).map(|_| ()))
    }
}

/// The checksum of a row by its bytes: 64-bit FNV-1a, so that rows may come in any order.
pub(super) fn row_sum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::dialect::Dialect;
    use super::*;

    /// Returns the text of a statement as its only row. Once `turns` statements have run it returns two rows.
    struct Fake<'a> {
        done: &'a AtomicU64,
        turns: u64,
    }

    impl DbmsClient for Fake<'_> {
        fn run(&mut self, sql: &str, _: bool) -> Result<Check> {
            let done = self.done.fetch_add(1, Ordering::Relaxed);
            let rows = 1 + u64::from(done >= self.turns);
            Ok(Check { rows, checksum: row_sum(sql.as_bytes()) })
        }
    }

    fn work() -> DbmsWork {
        let texts = ["a", "b"].map(|it| ClientText::Query(it.to_owned())).to_vec();
        DbmsWork {
            texts,
            own: 2,
            clients: 3,
            beside: 0,
            warmup: 0.0,
            seconds: 0.01,
            statements: None,
        }
    }

    #[test]
    fn clients_run_a_number_of_statements_whatever_time_they_take() {
        let done = AtomicU64::new(0);
        let work = DbmsWork { statements: Some(5), ..work() };
        let outcome = drive(|| Ok(Fake { done: &done, turns: u64::MAX }), &work, None).unwrap();
        assert_eq!(outcome.clients.iter().map(|it| it.count).collect::<Vec<_>>(), [5, 5, 5]);
        assert_eq!((done.load(Ordering::Relaxed), DbmsOutcome::drift(&[outcome])), (15, None));
    }

    #[test]
    fn every_client_takes_the_texts_in_turn() {
        let done = AtomicU64::new(0);
        let outcome = drive(|| Ok(Fake { done: &done, turns: u64::MAX }), &work(), None).unwrap();
        let counted: u64 = outcome.clients.iter().map(|it| it.count).sum();
        assert_eq!(counted + 3, done.load(Ordering::Relaxed), "one each to warm up");
        assert!(outcome.per_s() > 0.0 && outcome.checks.iter().all(Option::is_some));
    }

    #[test]
    fn clients_of_the_query_beside_have_texts_and_counts_of_their_own() {
        let done = AtomicU64::new(0);
        let work = DbmsWork { own: 1, beside: 2, ..work() };
        let outcome = drive(|| Ok(Fake { done: &done, turns: u64::MAX }), &work, None).unwrap();
        assert_eq!((outcome.clients.len(), outcome.beside.len()), (3, 2));
        assert!(outcome.beside_per_s() > 0.0 && outcome.checks[0] != outcome.checks[1]);
    }

    /// Refuses each COMMIT that the number says, and counts those that it takes.
    struct Conflicts<'a> {
        commits: &'a AtomicU64,
        refused_each: u64,
        at: u64,
        has_begun: bool,
    }

    impl DbmsClient for Conflicts<'_> {
        fn run(&mut self, sql: &str, _: bool) -> Result<Check> {
            match sql {
                "START TRANSACTION" => {
                    ensure!(!self.has_begun, "a transaction in a transaction");
                    self.has_begun = true;
                }
                "ROLLBACK" => self.has_begun = false,
                "COMMIT" => {
                    self.at += 1;
                    ensure!(!self.at.is_multiple_of(self.refused_each), "conflict");
                    self.has_begun = false;
                    self.commits.fetch_add(1, Ordering::Relaxed);
                }
                _ => ensure!(self.has_begun, "{sql} outside a transaction"),
            }
            Ok(Check { rows: 1, checksum: 0 })
        }
    }

    #[test]
    fn a_transaction_that_fails_is_rolled_back_and_repeated() {
        let script = TransactionScript::new(Dialect::Postgres, 1, 1);
        let work = DbmsWork { texts: vec![ClientText::Transactions(script)], own: 1, ..work() };
        let commits = AtomicU64::new(0);
        let connect = |refused_each| {
            let commits = &commits;
            move || Ok(Conflicts { commits, refused_each, at: 0, has_begun: false })
        };
        let outcome = drive(connect(3), &work, None).unwrap();
        let counted: u64 = outcome.clients.iter().map(|it| it.count).sum();
        assert_eq!(counted + 3, commits.load(Ordering::Relaxed), "one each to warm up");
        assert!(outcome.repeats() > 0 && outcome.checks == [None], "{outcome:?}");
        let never = drive(connect(1), &work, None).unwrap_err();
        assert!(format!("{never:#}").contains("failed 100 times; the last time: conflict"));
    }

    #[test]
    fn a_result_that_changes_and_a_client_that_cannot_connect_are_errors() {
        let done = AtomicU64::new(0);
        let changed = drive(|| Ok(Fake { done: &done, turns: 12 }), &work(), None);
        assert!(changed.unwrap_err().to_string().contains("text"), "rows differ");
        let refused = drive(|| -> Result<Fake<'_>> { anyhow::bail!("no") }, &work(), None);
        assert_eq!(refused.unwrap_err().to_string(), "no");
        let mut known = vec![Some(Check { rows: 1, checksum: 2 })];
        let error = merge(&mut known, &[Some(Check { rows: 1, checksum: 3 })]).unwrap_err();
        assert!(error.to_string().contains("different results"), "{error}");
    }
}
