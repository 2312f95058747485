//! The transaction that a statement's operators share, with its advisory locks.

use std::sync::{Arc, OnceLock};

use atoll_store::database::{DatabaseVersion, Transaction};
use atoll_store::lock::TransactionId;
use datafusion::common::{Result, exec_err};
use tokio::sync::{MappedMutexGuard, Mutex as AsyncMutex, MutexGuard};

use crate::advisory::AdvisoryHolder;
use atoll_sql_common::error::transaction_error;

/// A transaction that a statement's operators write to, until it ends.
#[derive(Clone, Debug)]
pub(crate) struct SharedTransaction(
    Arc<AsyncMutex<Option<Transaction>>>,
    /// The advisory locks that end with it.
    Arc<OnceLock<AdvisoryHolder>>,
    TransactionId,
);

impl SharedTransaction {
    pub(crate) fn new(transaction: Transaction) -> Self {
        let id = transaction.id();
        Self(Arc::new(AsyncMutex::new(Some(transaction))), Arc::default(), id)
    }

    /// Its number.
    pub(crate) fn id(&self) -> TransactionId {
        self.2
    }

    /// The transaction, for as long as the guard lives.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) async fn lock(&self) -> Result<MappedMutexGuard<'_, Transaction>> {
        match MutexGuard::try_map(self.0.lock().await, Option::as_mut) {
            Ok(transaction) => Ok(transaction),
            Err(_) => exec_err!("the transaction of this statement has ended"),
        }
    }

    /// Whether it holds locks, for which others may wait.
    pub(crate) async fn has_locks(&self) -> Result<bool> {
        Ok(self.lock().await?.lock_count() > 0)
    }

    /// Commits.
    pub(crate) async fn commit(&self) -> Result<()> {
        match self.0.lock().await.take() {
            Some(transaction) => {
                let committed = transaction.commit().await;
                self.release_advisory();
                committed.map(drop).map_err(transaction_error)
            }
            None => exec_err!("the transaction of this statement has ended"),
        }
    }

    /// Rolls back.
    pub(crate) async fn rollback(&self) {
        self.0.lock().await.take();
        self.release_advisory();
    }

    /// Its advisory locks, within those of a session.
    pub(crate) fn advisory(&self, session: &AdvisoryHolder) -> &AdvisoryHolder {
        self.1.get_or_init(|| session.of_transaction())
    }

    pub(crate) fn release_advisory(&self) {
        if let Some(holder) = self.1.get() {
            holder.release();
        }
    }

    /// The version that its next statement sees, if no statement uses it now.
    pub(crate) fn version(&self) -> Option<Arc<DatabaseVersion>> {
        self.0.try_lock().ok()?.as_mut()?.statement(false).ok()
    }
}
