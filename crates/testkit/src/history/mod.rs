//! Histories of transactions, and the anomalies in them.
//!
//! A history is list-append (Kingsbury, Alvaro: "Elle: Inferring Isolation Anomalies from Experimental Observations",
//! PVLDB 14(3), 2020): each key holds a list, a write appends a unique number, and a read sees the whole list. So reads
//! reveal the order of the writes, and each value its writer. A register is the same, with lists reconstructed from the
//! order of commits.
//!
//! The anomalies are Adya's ("Weak Consistency", 1999, sections 4.1 and 4.2), over the dependencies between committed
//! transactions (ww: overwrites, wr: reads, rw: overwrites what the other read):
//!
//! | anomaly | what |
//! |---|---|
//! | G0 | a cycle of ww |
//! | G1a | a read of a write that was rolled back |
//! | G1b | a read of a value that its writer overwrote |
//! | G1c | a cycle of ww and wr |
//! | G-single | a cycle with one rw; a lost update if both transactions wrote what one read |
//! | G-SI | a cycle without two rw in a row, which snapshot isolation excludes |
//! | G2-item | a cycle with rw: write skew |
//!
//! Three more need no cycle: a list that is not a prefix of the longest one, a transaction that does not see its own
//! writes, and a read that misses a commit acknowledged before it began.

mod graph;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use graph::{Dependency, DependencyGraph};

/// A key.
pub type HistoryKey = u64;
/// A value, which is written once.
pub type HistoryValue = u64;

/// One step of a transaction.
#[derive(Clone, Debug)]
pub enum HistoryStep {
    /// Appends a value to a key.
    Append {
        /// The key.
        key: HistoryKey,
        /// A number that is written once in a history.
        value: HistoryValue,
    },
    /// Reads the list of a key.
    Read {
        /// The key.
        key: HistoryKey,
        /// Its values.
        list: Vec<HistoryValue>,
        /// When the statement began.
        since: u64,
    },
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Committed, and when that was acknowledged.
    Committed(u64),
    /// Rolled back: it left no trace.
    Aborted,
}

/// A transaction of a session.
#[derive(Clone, Debug)]
pub struct HistoryTransaction {
    /// Its steps, in order.
    pub steps: Vec<HistoryStep>,
    /// Its outcome.
    pub ending: Ending,
}

/// An anomaly in a history; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A cycle of ww.
    G0,
    /// A read of a write that was rolled back.
    G1a,
    /// A read of a value that its writer overwrote.
    G1b,
    /// A cycle of ww and wr.
    G1c,
    /// A cycle with one rw.
    GSingle,
    /// Both transactions wrote what one of them read.
    LostUpdate,
    /// A cycle without two rw in a row.
    GSi,
    /// A cycle with rw.
    G2Item,
    /// A list that is not a prefix of the longest one.
    IncompatibleOrder,
    /// A transaction does not see its own write.
    OwnWriteMissing,
    /// A read that misses a commit acknowledged before.
    StaleRead,
}

use Anomaly::*;

/// The anomalies that READ COMMITTED excludes.
pub const NOT_COMMITTED_READS: [Anomaly; 7] =
    [G0, G1a, G1b, G1c, IncompatibleOrder, OwnWriteMissing, StaleRead];
/// The anomalies that snapshot isolation also excludes.
pub const NOT_SNAPSHOTS: [Anomaly; 3] = [GSingle, LostUpdate, GSi];

/// All anomalies of a history.
///
/// # Panics
/// If a value is written twice.
pub fn anomalies(history: &[HistoryTransaction]) -> BTreeSet<Anomaly> {
    HistoryCheck::new(history).run()
}

struct HistoryCheck<'a> {
    history: &'a [HistoryTransaction],
    /// For each value: its transaction, its key, and whether the transaction wrote the key again.
    writers: BTreeMap<HistoryValue, (usize, HistoryKey, bool)>,
    /// The values of each key, in order.
    orders: BTreeMap<HistoryKey, Vec<HistoryValue>>,
    found: BTreeSet<Anomaly>,
}

impl<'a> HistoryCheck<'a> {
    fn new(history: &'a [HistoryTransaction]) -> Self {
        let mut writers = BTreeMap::new();
        for (number, transaction) in history.iter().enumerate() {
            let mut last: BTreeMap<HistoryKey, HistoryValue> = BTreeMap::new();
            for step in &transaction.steps {
                let HistoryStep::Append { key, value } = step else { continue };
                assert!(writers.insert(*value, (number, *key, false)).is_none());
                if let Some(before) = last.insert(*key, *value) {
                    writers.insert(before, (number, *key, true));
                }
            }
        }
        Self { history, writers, orders: BTreeMap::new(), found: BTreeSet::new() }
    }

    fn is_committed(&self, transaction: usize) -> bool {
        self.history[transaction].ending != Ending::Aborted
    }

    /// Committed reads: the transaction, the key and list, and the time of the start.
    fn reads(&self) -> Vec<(usize, HistoryKey, &'a [HistoryValue], u64)> {
        let committed = (0..self.history.len()).filter(|number| self.is_committed(*number));
        let reads = committed.flat_map(|number| {
            self.history[number].steps.iter().filter_map(move |step| match step {
                HistoryStep::Read { key, list, since } => Some((number, *key, &list[..], *since)),
                HistoryStep::Append { .. } => None,
            })
        });
        reads.collect()
    }

    fn run(mut self) -> BTreeSet<Anomaly> {
        self.order_values();
        self.check_reads();
        self.check_own_writes();
        let graph = self.graph();
        self.found.extend(graph.cycles());
        self.found
    }

    fn order_values(&mut self) {
        for (_, key, list, _) in self.reads() {
            let longest = self.orders.entry(key).or_default();
            let shorter = longest.len().min(list.len());
            if longest[..shorter] != list[..shorter] {
                self.found.insert(IncompatibleOrder);
            }
            if list.len() > longest.len() {
                *longest = list.to_vec();
            }
        }
    }

    fn check_reads(&mut self) {
        for (reader, key, list, since) in self.reads() {
            let mut found = BTreeSet::new();
            for value in list {
                match self.writers.get(value) {
                    Some((writer, of, _)) if *of == key && self.is_committed(*writer) => {}
                    _ => {
                        found.insert(G1a);
                    }
                }
            }
            if let Some((writer, _, is_overwritten)) =
                list.last().and_then(|last| self.writers.get(last))
                && *is_overwritten
                && *writer != reader
            {
                found.insert(G1b);
            }
            for (value, (writer, of, _)) in &self.writers {
                if let Ending::Committed(answered) = self.history[*writer].ending
                    && *of == key
                    && answered < since
                    && !list.contains(value)
                {
                    found.insert(StaleRead);
                }
            }
            self.found.extend(found);
        }
    }

    fn check_own_writes(&mut self) {
        for transaction in self.history {
            let mut own: BTreeMap<HistoryKey, HistoryValue> = BTreeMap::new();
            for step in &transaction.steps {
                match step {
                    HistoryStep::Append { key, value } => {
                        own.insert(*key, *value);
                    }
                    HistoryStep::Read { key, list, .. } => {
                        if own.get(key).is_some_and(|own| list.last() != Some(own)) {
                            self.found.insert(OwnWriteMissing);
                        }
                    }
                }
            }
        }
    }

    fn writer(&self, value: HistoryValue) -> Option<usize> {
        let (writer, ..) = self.writers.get(&value)?;
        self.is_committed(*writer).then_some(*writer)
    }

    fn graph(&self) -> DependencyGraph {
        let mut graph = DependencyGraph::new(self.history.len());
        for (key, order) in &self.orders {
            for pair in order.windows(2) {
                graph.add(self.writer(pair[0]), self.writer(pair[1]), Dependency::Ww, *key);
            }
        }
        for (reader, key, list, _) in self.reads() {
            let writer = list.last().and_then(|last| self.writer(*last));
            graph.add(writer, Some(reader), Dependency::Wr, key);
            let next = self.orders[&key].get(list.len());
            let next = next.and_then(|next| self.writer(*next));
            graph.add(Some(reader), next, Dependency::Rw, key);
        }
        graph
    }
}
