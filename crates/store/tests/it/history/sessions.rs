//! Sessions that run transactions over a database and write down what they saw.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_store::database::{Isolation, Transaction, TransactionOptions};
use atoll_sys::SplitMix64;
use parking_lot::Mutex;

use super::{Ending, HistoryKey, HistoryStep, HistoryTransaction, HistoryValue};
use crate::small_database::{Result, SmallDatabase};
use crate::stepped::step;

/// What a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryKind {
    /// All numbers that were appended.
    Lists,
    /// The number that was written last.
    Registers,
}

/// Sessions over one database.
pub(crate) struct HistorySessions {
    pub(crate) small: SmallDatabase,
    pub(crate) kind: HistoryKind,
    pub(crate) isolation: Isolation,
    pub(crate) keys: u64,
    clock: AtomicU64,
    values: AtomicU64,
    /// Each with the number of its commit.
    seen: Mutex<Vec<(u64, HistoryTransaction)>>,
}

impl HistorySessions {
    pub(crate) fn new(kind: HistoryKind, isolation: Isolation, keys: u64) -> Self {
        let (clock, values) = (AtomicU64::new(1), AtomicU64::new(1));
        let small = SmallDatabase::new();
        Self { small, kind, isolation, keys, clock, values, seen: Mutex::default() }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn begin(&self) -> Transaction {
        let isolation = self.isolation;
        self.small.database.begin(TransactionOptions { isolation, ..Default::default() })
    }

    /// One session: so many transactions of some steps.
    pub(crate) async fn run(&self, mut random: SplitMix64, transactions: u64) {
        for _ in 0..transactions {
            let mut transaction = self.begin();
            let mut steps = Vec::new();
            let done = self.run_steps(&mut transaction, &mut steps, &mut random).await;
            step().await;
            let is_wanted = done.is_ok() && random.below(10) > 0;
            let (mut ending, mut epoch) = (Ending::Aborted, 0);
            if is_wanted && let Ok(committed) = transaction.commit().await {
                ending = Ending::Committed(self.now());
                epoch = committed.epoch.get();
            }
            self.seen.lock().push((epoch, HistoryTransaction { steps, ending }));
        }
    }

    async fn run_steps(
        &self,
        transaction: &mut Transaction,
        steps: &mut Vec<HistoryStep>,
        random: &mut SplitMix64,
    ) -> Result<()> {
        let mut begun = None;
        for _ in 0..1 + random.below(5) {
            let key = random.below(self.keys);
            let now = self.now();
            let begun = *begun.get_or_insert(now);
            match random.below(12) {
                0..5 => {
                    let since = if self.isolation.is_repeatable() { begun } else { now };
                    let list = self.read(transaction, key)?;
                    steps.push(HistoryStep::Read { key, list, since });
                }
                5 => self.append_and_take_back(transaction, key).await?,
                _ => {
                    let value = self.append(transaction, key).await?;
                    steps.push(HistoryStep::Append { key, value });
                }
            }
            step().await;
        }
        Ok(())
    }

    fn read(&self, transaction: &mut Transaction, key: HistoryKey) -> Result<Vec<HistoryValue>> {
        let version = transaction.statement(false)?;
        if let Some(reads) = transaction.reads() {
            reads.note_key(self.small.table, 0, &self.small.key(key));
        }
        let text = self.small.get(&version, key).unwrap_or_default();
        Ok(text.split_whitespace().map(|value| value.parse().unwrap()).collect())
    }

    async fn append(&self, transaction: &mut Transaction, key: HistoryKey) -> Result<HistoryValue> {
        let value = self.values.fetch_add(1, Ordering::Relaxed);
        let after = |before: Option<&str>| match (self.kind, before) {
            (HistoryKind::Lists, Some(before)) => format!("{before} {value}"),
            _ => value.to_string(),
        };
        let done = self.small.upsert(transaction, key, after).await;
        if done.is_err() {
            self.note_aborted(key, value);
        }
        done.map(|()| value)
    }

    /// A value that no one may see.
    fn note_aborted(&self, key: HistoryKey, value: HistoryValue) {
        let steps = vec![HistoryStep::Append { key, value }];
        self.seen.lock().push((0, HistoryTransaction { steps, ending: Ending::Aborted }));
    }

    async fn append_and_take_back(
        &self,
        transaction: &mut Transaction,
        key: HistoryKey,
    ) -> Result<()> {
        transaction.savepoint("s");
        let value = self.append(transaction, key).await?;
        transaction.rollback_to("s")?;
        self.note_aborted(key, value);
        Ok(())
    }

    /// What was seen, with a last read of all keys.
    pub(crate) fn finish(self) -> Vec<HistoryTransaction> {
        let mut transaction = self.begin();
        let since = self.now();
        let last = |key| {
            let list = self.read(&mut transaction, key).unwrap();
            HistoryStep::Read { key, list, since }
        };
        let steps = (0..self.keys).map(last).collect();
        let mut seen = self.seen.into_inner();
        seen.sort_by_key(|(epoch, _)| *epoch);
        let mut history: Vec<HistoryTransaction> = seen.into_iter().map(|(_, of)| of).collect();
        history.push(HistoryTransaction { steps, ending: Ending::Committed(u64::MAX) });
        if self.kind == HistoryKind::Registers {
            complete(&mut history);
        }
        history
    }
}

/// Makes lists of reads of registers: all values up to the one that was read, in the order of commits.
fn complete(history: &mut [HistoryTransaction]) {
    let mut orders: BTreeMap<HistoryKey, Vec<HistoryValue>> = BTreeMap::new();
    let committed = history.iter().filter(|transaction| transaction.ending != Ending::Aborted);
    for step in committed.flat_map(|transaction| &transaction.steps) {
        if let HistoryStep::Append { key, value } = step {
            orders.entry(*key).or_default().push(*value);
        }
    }
    for step in history.iter_mut().flat_map(|transaction| &mut transaction.steps) {
        if let HistoryStep::Read { key, list, .. } = step
            && let Some(last) = list.last()
            && let Some(order) = orders.get(key)
            && let Some(at) = order.iter().position(|value| value == last)
        {
            *list = order[..=at].to_vec();
        }
    }
}
