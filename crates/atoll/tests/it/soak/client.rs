//! A client that picks a random operation each time, and remembers the server's answers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use atoll_sys::SplitMix64;
use tokio_postgres::{Client, Config, Error, NoTls};

use super::book::Book;
use super::{ACCOUNTS, hostile};

/// Rows that a client keeps in the ledger.
const KEPT: i64 = 200;

/// A query that never ends.
const ENDLESS: &str = "SELECT sum((a.x * b.x) % 7) FROM range(1000000) a(x), range(1000000) b(x)";

/// A client of the soak.
pub(super) struct SoakClient {
    number: u64,
    random: SplitMix64,
    /// Whether the server may go away at any moment.
    may_lose: bool,
    address: SocketAddr,
    book: Arc<Book>,
    next: i64,
}

/// Outcome of a statement.
enum Outcome {
    Done,
    /// The server refused it: nothing changed.
    Refused,
    /// The connection is gone: the outcome is unknown.
    Lost,
}

impl SoakClient {
    pub(super) fn new(
        number: u64,
        seed: u64,
        may_lose: bool,
        address: SocketAddr,
        book: Arc<Book>,
    ) -> Self {
        let random = SplitMix64::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        Self { number, random, may_lose, address, book, next: 0 }
    }

    /// Works until a deadline.
    pub(super) async fn run(mut self, end: Instant) {
        while Instant::now() < end {
            let patience = end.saturating_duration_since(Instant::now()) + Duration::from_secs(60);
            let client = connect(self.address, patience).await.expect("the server comes back");
            let statements = 1 + self.random.below(200);
            for _ in 0..statements {
                if Instant::now() >= end || !self.step(&client).await {
                    break;
                }
            }
            if self.random.below(8) == 0 {
                hostile::visit(self.address, &mut self.random).await;
            }
        }
    }

    /// Performs one operation; returns false once the connection is unusable.
    async fn step(&mut self, client: &Client) -> bool {
        let outcome = match self.random.below(100) {
            0..30 => self.insert(client).await,
            30..55 => self.count(client).await,
            55..70 => self.transfer(client).await,
            70..90 => self.read(client).await,
            90..93 => self.forget(client).await,
            93..95 => self.cancel(client).await,
            95..98 => self.blunder(client).await,
            _ => return self.vanish(client).await,
        };
        let count = match outcome {
            Outcome::Done => &self.book.statements,
            Outcome::Refused => &self.book.refused,
            Outcome::Lost => &self.book.lost,
        };
        count.fetch_add(1, Relaxed);
        !matches!(outcome, Outcome::Lost)
    }

    async fn insert(&mut self, client: &Client) -> Outcome {
        let (number, own) = (self.next, self.number as i64);
        self.next += 1;
        let sql = "INSERT INTO ledger VALUES ($1, $2, 'note ' || $2)";
        let outcome = self.outcome(client.execute(sql, &[&own, &number]).await);
        let mut page = self.book.page(self.number);
        match outcome {
            Outcome::Done => drop(page.there.insert(number)),
            Outcome::Lost => drop(page.unknown.insert(number)),
            Outcome::Refused => {}
        }
        outcome
    }

    async fn count(&mut self, client: &Client) -> Outcome {
        let own = self.number as i64;
        let sql = "UPDATE counter SET n = n + 1 WHERE client = $1";
        let outcome = self.outcome(client.execute(sql, &[&own]).await);
        let mut page = self.book.page(self.number);
        match outcome {
            Outcome::Done => page.added += 1,
            Outcome::Lost => page.added_unknown += 1,
            Outcome::Refused => {}
        }
        outcome
    }

    /// Money moves from one account to another, in a transaction.
    async fn transfer(&mut self, client: &Client) -> Outcome {
        let mut account = || (self.random.below(ACCOUNTS as u64)) as i64;
        let (from, to) = (account(), account());
        let sql = format!(
            "BEGIN; UPDATE account SET balance = balance - 5 WHERE id = {from};
             UPDATE account SET balance = balance + 5 WHERE id = {to}; COMMIT"
        );
        let done = client.batch_execute(&sql).await;
        if done.is_err() && !client.is_closed() {
            let _ = client.batch_execute("ROLLBACK").await;
        }
        self.outcome(done)
    }

    /// Reads are consistent, and include the client's own rows.
    async fn read(&mut self, client: &Client) -> Outcome {
        let own = self.number as i64;
        let sql = "SELECT (SELECT sum(balance) FROM account)::BIGINT, \
                   (SELECT n FROM counter WHERE client = $1)";
        let row = client.query_one(sql, &[&own]).await;
        if let Ok(row) = &row {
            let (sum, n) = (row.get::<_, i64>(0), row.get::<_, i64>(1));
            assert_eq!(sum, 0, "a snapshot in the middle of a transfer");
            let page = self.book.page(self.number);
            assert!(n >= page.added, "{n} of {} acknowledged", page.added);
        }
        match row {
            Ok(row) => self.find(client, row.get(1)).await,
            Err(_) => self.outcome(row),
        }
    }

    /// The index finds the client's counter, which no other client changes.
    async fn find(&self, client: &Client, n: i64) -> Outcome {
        let own = self.number as i64;
        let sql = "SELECT count(*) FROM counter WHERE n = $1 AND client + 0 = $2";
        let found = client.query_one(sql, &[&n, &own]).await;
        if let Ok(found) = &found {
            assert_eq!(found.get::<_, i64>(0), 1, "the counter of client {own} with {n}");
        }
        self.outcome(found)
    }

    /// Deletes the oldest rows.
    async fn forget(&mut self, client: &Client) -> Outcome {
        let (own, from) = (self.number as i64, self.next - KEPT);
        let sql = "DELETE FROM ledger WHERE client = $1 AND number < $2";
        let outcome = self.outcome(client.execute(sql, &[&own, &from]).await);
        let mut page = self.book.page(self.number);
        let (kept, forgotten): (BTreeSet<i64>, BTreeSet<i64>) =
            page.there.iter().copied().partition(|number| *number >= from);
        match outcome {
            Outcome::Done => {
                page.there = kept;
                page.unknown.retain(|number| *number >= from);
            }
            Outcome::Lost => {
                page.there = kept;
                page.unknown.extend(forgotten);
            }
            Outcome::Refused => {}
        }
        outcome
    }

    /// A statement that is cancelled.
    async fn cancel(&mut self, client: &Client) -> Outcome {
        let token = client.cancel_token();
        let asked = client.batch_execute(ENDLESS);
        let ended = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // A request that arrives before the statement begins has no effect.
            while token.cancel_query(NoTls).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = asked => result,
            () = ended => unreachable!("it waits for ever"),
        };
        assert!(result.is_err(), "the statement has no end");
        self.outcome(result)
    }

    /// An invalid statement.
    async fn blunder(&mut self, client: &Client) -> Outcome {
        let wrong =
            ["SELEC 1", "SELECT * FROM nowhere", "SELECT 1/0", "INSERT INTO ledger VALUES (1)"];
        let sql = wrong[self.random.below(wrong.len() as u64) as usize];
        let result = client.batch_execute(sql).await;
        assert!(result.is_err(), "{sql}");
        self.outcome(result)
    }

    /// Leaves in the middle of a statement.
    async fn vanish(&mut self, client: &Client) -> bool {
        let asked = client.batch_execute(ENDLESS);
        let _ = tokio::time::timeout(Duration::from_millis(self.random.below(20)), asked).await;
        false
    }

    fn outcome<T>(&self, result: Result<T, Error>) -> Outcome {
        let Err(error) = result else { return Outcome::Done };
        if let Some(told) = error.as_db_error() {
            assert_eq!(told.code().code().len(), 5, "{told:?}");
            // A fatal error ends the connection; whether an earlier change was made is unknown.
            return if told.severity() == "FATAL" { Outcome::Lost } else { Outcome::Refused };
        }
        assert!(self.may_lose, "the connection was lost: {error:?}");
        Outcome::Lost
    }
}

/// Connects, as soon as the server can be reached.
pub(super) async fn connect(address: SocketAddr, patience: Duration) -> Option<Client> {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        let mut config = Config::new();
        config.host(address.ip().to_string()).port(address.port()).user("ann").dbname("atoll");
        config.connect_timeout(Duration::from_secs(10));
        if let Ok((client, connection)) = config.connect(NoTls).await {
            tokio::spawn(connection);
            return Some(client);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}
