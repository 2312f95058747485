//! Histories of sessions over a database, stepped in seeded orders and on threads, and the anomalies that
//! their level excludes.

use std::sync::Arc;
use std::thread;

use atoll_store::database::{Isolation, TransactionOptions};
use atoll_sys::SplitMix64;

use super::sessions::{HistoryKind, HistorySessions};
use super::{Anomaly, NOT_COMMITTED_READS, NOT_SNAPSHOTS, anomalies};
use crate::small_database::SmallDatabase;
use crate::stepped::{SteppedTasks, block_on, step};

const LEVELS: [Isolation; 3] =
    [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

fn excluded(isolation: Isolation) -> Vec<Anomaly> {
    match isolation {
        Isolation::ReadCommitted => NOT_COMMITTED_READS.to_vec(),
        Isolation::RepeatableRead => [&NOT_COMMITTED_READS[..], &NOT_SNAPSHOTS].concat(),
        Isolation::Serializable => {
            [&NOT_COMMITTED_READS[..], &NOT_SNAPSHOTS, &[Anomaly::G2Item]].concat()
        }
    }
}

#[test]
fn stepped_sessions_see_what_their_level_promises() {
    let mut allowed = std::collections::BTreeSet::new();
    for seed in 0..600 {
        let mut random = SplitMix64::new(seed);
        let isolation = LEVELS[random.below(3) as usize];
        let kind = [HistoryKind::Lists, HistoryKind::Registers][random.below(2) as usize];
        let sessions = HistorySessions::new(kind, isolation, 1 + random.below(4));
        let mut tasks = SteppedTasks::default();
        for _ in 0..2 + random.below(5) {
            tasks.spawn(sessions.run(SplitMix64::new(random.next()), 12));
        }
        assert_eq!(tasks.run_seeded(&mut random), 0, "sessions never woken, seed {seed}");
        drop(tasks);
        assert_eq!(sessions.small.database.locked(), 0, "locks that are left, seed {seed}");
        assert_eq!(sessions.small.database.snapshots().len(), 0, "seed {seed}");
        let history = sessions.finish();
        let found = anomalies(&history);
        for anomaly in excluded(isolation) {
            assert!(!found.contains(&anomaly), "{anomaly:?}, seed {seed}: {history:#?}");
        }
        allowed.extend(found.into_iter().map(|anomaly| (isolation as u8, anomaly)));
    }
    // What the levels allow does happen, so the histories are not merely serial.
    assert!(allowed.contains(&(Isolation::ReadCommitted as u8, Anomaly::GSingle)), "{allowed:?}");
    assert!(allowed.contains(&(Isolation::RepeatableRead as u8, Anomaly::G2Item)), "{allowed:?}");
}

#[test]
fn threads_see_what_their_level_promises() {
    for (seed, isolation) in (0..6).zip(LEVELS.into_iter().cycle()) {
        let kind = [HistoryKind::Lists, HistoryKind::Registers][seed as usize / 2 % 2];
        let sessions = HistorySessions::new(kind, isolation, 4);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (sessions, random) = (&sessions, SplitMix64::new(seed * 10 + thread));
                scope.spawn(move || block_on(sessions.run(random, 60)));
            }
        });
        assert_eq!(sessions.small.database.locked(), 0);
        let found = anomalies(&sessions.finish());
        for anomaly in excluded(isolation) {
            assert!(!found.contains(&anomaly), "{anomaly:?}, seed {seed}, {isolation:?}");
        }
    }
}

const ACCOUNTS: u64 = 5;
const BALANCE: i64 = 100;

fn bank() -> SmallDatabase {
    let bank = SmallDatabase::new();
    (0..ACCOUNTS).for_each(|account| bank.set(account, &BALANCE.to_string()));
    bank
}

/// Moves money about; each transfer is two updates.
async fn transfer(bank: &SmallDatabase, isolation: Isolation, mut random: SplitMix64) {
    for _ in 0..30 {
        let options = TransactionOptions { isolation, ..Default::default() };
        let mut transaction = bank.database.begin(options);
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let amount = random.below(50) as i64;
        let add =
            |amount: i64| move |before: &str| (before.parse::<i64>().unwrap() + amount).to_string();
        let moved = async {
            bank.update(&mut transaction, from, add(-amount)).await?;
            step().await;
            bank.update(&mut transaction, to, add(amount)).await
        };
        if moved.await.is_ok() && random.below(8) > 0 {
            step().await;
            let _ = transaction.commit().await;
        }
        step().await;
    }
}

/// Sums up all accounts, in one statement and in one of its own for each.
async fn audit(bank: &SmallDatabase, rounds: u64) {
    for _ in 0..rounds {
        let options = TransactionOptions {
            isolation: Isolation::RepeatableRead,
            read_only: true,
            ..Default::default()
        };
        let mut repeatable = bank.database.begin(options);
        let mut committed = bank.database.begin(TransactionOptions::default());
        let one = committed.statement(false).unwrap();
        let (mut sum, mut sum_of_one) = (0, 0);
        for account in 0..ACCOUNTS {
            let version = repeatable.statement(false).unwrap();
            sum += bank.get(&version, account).unwrap().parse::<i64>().unwrap();
            sum_of_one += bank.get(&one, account).unwrap().parse::<i64>().unwrap();
            step().await;
        }
        let wanted = ACCOUNTS as i64 * BALANCE;
        assert_eq!((sum, sum_of_one), (wanted, wanted));
    }
}

#[test]
fn money_is_neither_made_nor_lost() {
    for seed in 0..60 {
        let bank = bank();
        let mut tasks = SteppedTasks::default();
        let isolation = LEVELS[seed as usize % 3];
        for session in 0..5 {
            tasks.spawn(transfer(&bank, isolation, SplitMix64::new(seed * 100 + session)));
        }
        tasks.spawn(audit(&bank, 40));
        assert_eq!(tasks.run_seeded(&mut SplitMix64::new(seed)), 0, "seed {seed}");
    }
}

#[test]
fn money_is_neither_made_nor_lost_by_threads() {
    for isolation in LEVELS {
        let bank = Arc::new(bank());
        thread::scope(|scope| {
            for session in 0..4 {
                let bank = &bank;
                scope.spawn(move || block_on(transfer(bank, isolation, SplitMix64::new(session))));
            }
            scope.spawn(|| block_on(audit(&bank, 60)));
        });
        block_on(audit(&bank, 1));
    }
}
