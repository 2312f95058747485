//! Folding in the background: rows that changed go back into chunks, on workers of the chunks' nodes,
//! without readers noticing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use atoll_runtime::{Runtime, WorkerId};
use atoll_store::database::Database as StoreDatabase;
use atoll_store::table::{FoldPolicy, FoldTask, Folded, TableError};
use atoll_store::{Epoch, TableId};
use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::Notify;

use crate::task::BoundTask;

/// Commits within this time are looked at together.
const PAUSE: Duration = Duration::from_millis(20);

/// Wakes the folding when something was committed, and for the last time when the database is gone.
#[derive(Debug, Default)]
pub(super) struct FoldSignal(Arc<Notify>);

impl FoldSignal {
    /// Says that something was committed.
    pub(super) fn raise(&self) {
        self.0.notify_one();
    }

    /// Starts the folding of a database. What its tables have beside their chunks is charged to `rows`.
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
            let mut seen = Epoch::default();
            loop {
                signal.notified().await;
                tokio::time::sleep(PAUSE).await;
                let Some(store) = Weak::upgrade(&store) else { return };
                seen = fold_changed(&store, &workers, seen).await;
                rows.resize(bytes_beside_chunks(&store));
            }
        }));
    }
}

impl Drop for FoldSignal {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Folds what changed since a commit; the commit up to which it looked.
async fn fold_changed(store: &StoreDatabase, runtime: &Runtime, since: Epoch) -> Epoch {
    let newest = store.newest();
    for (table, version) in newest.tables() {
        if newest.table_changed(table).is_none_or(|changed| changed <= since) {
            continue;
        }
        for task in version.folds(&FoldPolicy::default()) {
            // One that fails, for want of memory, leaves the rows where they are; the next commit tries again.
            let _ = fold(store, runtime, table, task).await;
        }
    }
    newest.epoch()
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
        task.run().map_err(crate::error::table_error)
    });
    let folded: Folded = BoundTask::new(folding).join("folding changed rows").await?;
    let publish = |newest: &atoll_store::table::TableVersion| -> Result<_, TableError> {
        Ok(newest.with_folded(&folded).unwrap_or_else(|| newest.clone()))
    };
    store.publish_fold(table, publish).map_err(crate::error::transaction_error)
}
