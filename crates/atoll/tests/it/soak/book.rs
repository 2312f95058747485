//! Acknowledged changes, and the state of the database that follows from them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio_postgres::Client;

/// Known rows of one client.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Numbers whose INSERT was acknowledged.
    pub(super) there: BTreeSet<i64>,
    /// Numbers whose INSERT has an unknown outcome.
    pub(super) unknown: BTreeSet<i64>,
    /// Additions to the counter that were acknowledged, and those with an unknown outcome.
    pub(super) added: i64,
    pub(super) added_unknown: i64,
}

/// A page for each client.
#[derive(Debug)]
pub(super) struct Book {
    pages: Vec<Mutex<Page>>,
    pub(super) statements: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) lost: AtomicU64,
}

impl Book {
    pub(super) fn new(clients: u64) -> Self {
        Self {
            pages: (0..clients).map(|_| Mutex::default()).collect(),
            statements: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// The page of a client, which only that client writes.
    pub(super) fn page(&self, client: u64) -> std::sync::MutexGuard<'_, Page> {
        self.pages[client as usize].lock().expect("its client did not panic")
    }

    /// A summary of what happened.
    pub(super) fn told(&self) -> String {
        let of = |count: &AtomicU64| count.load(Relaxed);
        let (all, refused, lost) = (of(&self.statements), of(&self.refused), of(&self.lost));
        format!("{all} statements done, {refused} refused, {lost} connections lost")
    }

    /// Compares the database with all pages.
    pub(super) async fn compare(&self, client: &Client) {
        let rows = client.query("SELECT client, number FROM ledger", &[]).await.expect("rows");
        let mut found = vec![BTreeSet::new(); self.pages.len()];
        for row in rows {
            found[row.get::<_, i64>(0) as usize].insert(row.get::<_, i64>(1));
        }
        let counters = client.query("SELECT client, n FROM counter", &[]).await.expect("rows");
        assert_eq!(counters.len(), self.pages.len());
        let mut wrong = String::new();
        for row in counters {
            let (number, n) = (row.get::<_, i64>(0), row.get::<_, i64>(1));
            let page = self.page(number as u64);
            let lost: Vec<_> = page.there.difference(&found[number as usize]).collect();
            let known: BTreeSet<i64> = page.there.union(&page.unknown).copied().collect();
            let new: Vec<_> = found[number as usize].difference(&known).collect();
            let bounds = page.added..=page.added + page.added_unknown;
            if !lost.is_empty() || !new.is_empty() || !bounds.contains(&n) {
                let _ = writeln!(
                    wrong,
                    "client {number}: rows {lost:?} are lost, {new:?} were never sent, its counter is {n} in {bounds:?}"
                );
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
        let sum = client.query_one("SELECT sum(balance)::BIGINT FROM account", &[]).await;
        assert_eq!(sum.expect("a sum").get::<_, i64>(0), 0, "money came or went");
    }
}
