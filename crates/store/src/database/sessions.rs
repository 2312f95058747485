//! The open transactions, and the versions that they keep alive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;

use super::options::{Isolation, TransactionOptions};
use super::version::DatabaseVersion;
use crate::ids::{Epoch, TableId};
use crate::lock::{LockEntry, TransactionId};
use crate::table::{Row, TableVersion};

/// Few sessions begin at the same moment in the same one.
const SHARDS: usize = 16;

/// An open transaction.
#[derive(Clone, Debug)]
pub struct SnapshotInfo {
    /// Its number.
    pub transaction: TransactionId,
    /// What it sees of others.
    pub isolation: Isolation,
    /// Whether it is read-only.
    pub read_only: bool,
    /// When it began, by the clock of its session.
    pub begun: Duration,
    /// Number of commits that its statement saw, or its first statement if it reads one snapshot; `None` before
    /// the first statement.
    pub epoch: Option<Epoch>,
    /// Bytes of chunks and loose rows that only it, or another old snapshot, still reads.
    pub held_bytes: usize,
}

/// A lock that an open transaction holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// What is locked, how, and by which transaction.
    pub entry: LockEntry,
    /// The number of the transaction's session; 0 for none.
    pub session: u32,
}

/// The open transactions, in shards.
#[derive(Debug, Default)]
pub(super) struct OpenTransactions {
    shards: [Mutex<HashMap<TransactionId, OpenTransaction>>; SHARDS],
}

#[derive(Debug)]
struct OpenTransaction {
    options: TransactionOptions,
    reads: Option<Arc<DatabaseVersion>>,
}

impl OpenTransactions {
    fn shard(&self, id: TransactionId) -> &Mutex<HashMap<TransactionId, OpenTransaction>> {
        &self.shards[id.0 as usize % SHARDS]
    }

    pub(super) fn begin(&self, id: TransactionId, options: TransactionOptions) {
        self.shard(id).lock().insert(id, OpenTransaction { options, reads: None });
    }

    /// Records the version that a transaction reads.
    pub(super) fn reads(&self, id: TransactionId, version: &Arc<DatabaseVersion>) {
        let version = Arc::clone(version);
        let mut shard = self.shard(id).lock();
        let old = shard.get_mut(&id).and_then(|open| open.reads.replace(version));
        drop(shard);
        drop(old);
    }

    pub(super) fn end(&self, id: TransactionId) {
        let ended = self.shard(id).lock().remove(&id);
        drop(ended);
    }

    /// The number of the session of a transaction; 0 for none.
    pub(super) fn session_of(&self, id: TransactionId) -> u32 {
        self.shard(id).lock().get(&id).map_or(0, |open| open.options.session)
    }

    /// All open transactions, oldest first.
    pub(super) fn list(&self, newest: &DatabaseVersion) -> Vec<SnapshotInfo> {
        let mut open = BTreeMap::new();
        for shard in &self.shards {
            for (id, transaction) in shard.lock().iter() {
                open.insert(*id, (transaction.options, transaction.reads.clone()));
            }
        }
        let info = |(transaction, (options, reads)): (_, (TransactionOptions, _))| {
            let reads: Option<Arc<DatabaseVersion>> = reads;
            SnapshotInfo {
                transaction,
                isolation: options.isolation,
                read_only: options.read_only,
                begun: options.begun,
                epoch: reads.as_ref().map(|version| version.epoch()),
                held_bytes: reads.map_or(0, |version| held_bytes(&version, newest)),
            }
        };
        open.into_iter().map(info).collect()
    }
}

/// Bytes of a version that the newest one does not share: chunks and loose rows, and everything of dropped
/// tables. Indexes of existing tables are not counted.
fn held_bytes(version: &DatabaseVersion, newest: &DatabaseVersion) -> usize {
    let of_table = |(id, table): (TableId, &Arc<TableVersion>)| match newest.table(id) {
        None => table.memory_bytes(),
        Some(now) if Arc::ptr_eq(now, table) => 0,
        Some(now) => held_by_table(table, now),
    };
    version.tables().map(of_table).sum()
}

fn held_by_table(table: &TableVersion, now: &TableVersion) -> usize {
    let kept: HashSet<_> = now.entries().map(|entry| Arc::as_ptr(entry.chunk())).collect();
    let old = table.entries().filter(|entry| !kept.contains(&Arc::as_ptr(entry.chunk())));
    let copies = old.flat_map(|entry| entry.chunk().copies.iter().map(|copy| copy.memory.len()));
    let kept: HashSet<_> = loose_rows(now).map(|row| row.as_bytes().as_ptr()).collect();
    let old = loose_rows(table).filter(|row| !kept.contains(&row.as_bytes().as_ptr()));
    copies.sum::<usize>() + old.map(Row::memory_bytes).sum::<usize>()
}

/// The loose rows of a table.
fn loose_rows(table: &TableVersion) -> impl Iterator<Item = &Row> {
    let newer = table.entries().flat_map(|entry| entry.delta().map(|(_, row)| row));
    newer.chain(table.tail().map(|(_, row)| row))
}
