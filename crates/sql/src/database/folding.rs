//! Folding in the background: changed rows go back into chunks, on workers of the chunks' nodes, without readers
//! noticing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use atoll_runtime::{Runtime, WorkerId};
use atoll_store::database::{Database as StoreDatabase, DatabaseVersion};
use atoll_store::table::{FoldPolicy, FoldTask, Folded, TableError};
use atoll_store::{Epoch, TableId};
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::Notify;

use atoll_sql_common::task::BoundTask;

/// Commits within this time are handled together.
const PAUSE: Duration = Duration::from_millis(20);

/// This many commits between two checks are many: 10,000 a second.
const MANY_COMMITS: u64 = 200;

/// After many commits, the rest is folded after this long without one.
const QUIET: Duration = Duration::from_millis(200);

/// Wakes the folding after a commit, and once more when the database is gone.
#[derive(Debug, Default)]
pub(super) struct FoldSignal(Arc<Notify>);

impl FoldSignal {
    /// Signals a commit.
    pub(super) fn raise(&self) {
        self.0.notify_one();
    }

    /// Starts the folding of a database. The memory of its tables outside chunks is charged to `rows`.
    pub(super) fn start(
        &self,
        runtime: &Runtime,
        store: &Arc<StoreDatabase>,
        rows: MemoryReservation,
    ) {
        self.raise();
        let (signal, store) = (Arc::clone(&self.0), Arc::downgrade(store));
        let workers = runtime.clone();
        // It ends with the database, or with the runtime.
        drop(runtime.spawn_on(WorkerId(0), async move {
            let mut pace = FoldPace::default();
            loop {
                pace.wait(&signal).await;
                tokio::time::sleep(PAUSE).await;
                let Some(store) = Weak::upgrade(&store) else { return };
                let newest = store.newest();
                let (since, policy) = pace.next(newest.epoch());
                fold_changed(&store, &newest, &workers, since, &policy).await;
                drop(newest);
                rows.resize(bytes_beside_chunks(&store));
            }
        }));
    }
}

/// The progress of the folding and the rate of commits.
#[derive(Debug, Default)]
struct FoldPace {
    /// The commit up to which all worthwhile folding is done.
    folded: Epoch,
    /// The last commit seen.
    seen: Epoch,
}

impl FoldPace {
    /// Waits for a commit, or, if recent ones are not folded yet, until no more come.
    async fn wait(&self, signal: &Notify) {
        match self.folded == self.seen {
            true => signal.notified().await,
            false => drop(tokio::time::timeout(QUIET, signal.notified()).await),
        }
    }

    /// The commit since which tables are checked, and what is worth folding.
    fn next(&mut self, newest: Epoch) -> (Epoch, FoldPolicy) {
        let (since, count) = (self.folded, newest.get().saturating_sub(self.seen.get()));
        self.seen = newest;
        if count > MANY_COMMITS {
            return (since, FoldPolicy::busy());
        }
        self.folded = newest;
        (since, FoldPolicy::default())
    }
}

impl Drop for FoldSignal {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Folds the changes since a commit.
async fn fold_changed(
    store: &StoreDatabase,
    newest: &DatabaseVersion,
    runtime: &Runtime,
    since: Epoch,
    policy: &FoldPolicy,
) {
    for (table, version) in newest.tables() {
        if newest.table_changed(table).is_none_or(|changed| changed <= since) {
            continue;
        }
        for task in version.folds(policy) {
            // If it fails, for lack of memory, the rows stay where they are; the next commit tries again.
            let _ = fold(store, runtime, table, task).await;
        }
    }
}

/// Bytes of rows that are in no chunk, and of indexes.
fn bytes_beside_chunks(store: &StoreDatabase) -> usize {
    let newest = store.newest();
    newest.tables().map(|(_, table)| table.loose_bytes() + table.index_bytes()).sum()
}

async fn fold(
    store: &StoreDatabase,
    runtime: &Runtime,
    table: TableId,
    task: FoldTask,
) -> datafusion::common::Result<()> {
    let workers = (0..runtime.worker_count()).map(|worker| WorkerId(worker as u32));
    let near = workers.rev().find(|worker| runtime.node_of(*worker) == task.node());
    let folding = runtime.spawn_on(near.unwrap_or(WorkerId(0)), async move {
        task.run().map_err(atoll_sql_common::error::table_error)
    });
    let folded: Folded = BoundTask::new(folding).join("folding changed rows").await?;
    let publish = |newest: &atoll_store::table::TableVersion| -> Result<_, TableError> {
        Ok(newest.with_folded(&folded).unwrap_or_else(|| newest.clone()))
    };
    store.publish_fold(table, publish).map_err(atoll_sql_common::error::transaction_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_many_commits_is_folded_once_they_are_few() {
        let epoch = Epoch::new;
        let mut pace = FoldPace::default();
        let is_busy = |policy: FoldPolicy| policy.tail_rows == FoldPolicy::busy().tail_rows;
        let looks = [
            (100, 0, false),
            (100 + MANY_COMMITS, 100, false),
            (10_000, 100 + MANY_COMMITS, true),
            (20_000, 100 + MANY_COMMITS, true),
            (20_001, 100 + MANY_COMMITS, false),
            (20_002, 20_001, false),
        ];
        for (newest, since, busy) in looks {
            let (looked, policy) = pace.next(epoch(newest));
            assert_eq!((looked, is_busy(policy)), (epoch(since), busy), "commit {newest}");
        }
    }
}
