//! The transaction that a statement's operators share, with its advisory locks and its notifications.

use std::sync::{Arc, OnceLock};

use atoll_store::database::{DatabaseVersion, Transaction};
use atoll_store::lock::TransactionId;
use chrono::Utc;
use datafusion::common::{Result, exec_err};
use parking_lot::Mutex;
use tokio::sync::{MappedMutexGuard, Mutex as AsyncMutex, MutexGuard};

use crate::advisory::AdvisoryHolder;
use crate::notifications::{AnnouncedCommit, AnnouncementMark, Announcements};
use atoll_sql_common::error::{SqlState, transaction_error};

/// A transaction that a statement's operators write to, until it ends.
#[derive(Clone, Debug)]
pub(crate) struct SharedTransaction(
    Arc<AsyncMutex<Option<Transaction>>>,
    Arc<TransactionExtras>,
    TransactionId,
);

/// What ends with a transaction besides its changes.
#[derive(Debug, Default)]
struct TransactionExtras {
    advisory: OnceLock<AdvisoryHolder>,
    announcements: OnceLock<Mutex<Announcements>>,
}

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

    /// Commits; its announcements, taken before, take effect.
    pub(crate) async fn commit(&self, announced: Option<AnnouncedCommit>) -> Result<()> {
        let Some(transaction) = self.0.lock().await.take() else {
            return exec_err!("the transaction of this statement has ended");
        };
        let committed = match announced {
            None => transaction.commit().await,
            Some(mut announced) => {
                let mut ordered = |position| announced.ordered(position);
                let committed = transaction.commit_with(&mut ordered).await;
                if committed.is_ok() {
                    announced.finish();
                }
                committed
            }
        };
        self.release_advisory();
        committed.map(drop).map_err(transaction_error)
    }

    /// Leaves it to COMMIT PREPARED or ROLLBACK PREPARED. It ends in any case.
    pub(crate) async fn prepare(&self, name: &Arc<str>, owner: Arc<str>) -> Result<()> {
        let refused = if self.take_announcements().is_some() {
            Some("has executed LISTEN, UNLISTEN, or NOTIFY")
        } else {
            self.1.advisory.get().map(|_| "has used advisory locks")
        };
        if let Some(reason) = refused {
            self.rollback().await;
            let message = format!("cannot PREPARE a transaction that {reason}");
            return Err(SqlState::FEATURE_NOT_SUPPORTED.error(message));
        }
        let Some(transaction) = self.0.lock().await.take() else {
            return exec_err!("the transaction of this statement has ended");
        };
        let prepared = transaction.prepare(name, owner, Utc::now().timestamp_micros()).await;
        prepared.map(drop).map_err(transaction_error)
    }

    /// Rolls back.
    pub(crate) async fn rollback(&self) {
        self.0.lock().await.take();
        self.release_advisory();
    }

    /// Its advisory locks, within those of a session.
    pub(crate) fn advisory(&self, session: &AdvisoryHolder) -> &AdvisoryHolder {
        self.1.advisory.get_or_init(|| session.of_transaction())
    }

    /// Changes its announcements.
    pub(crate) fn announce<T>(&self, change: impl FnOnce(&mut Announcements) -> T) -> T {
        change(&mut self.1.announcements.get_or_init(Mutex::default).lock())
    }

    /// The announcements so far.
    pub(crate) fn announced(&self) -> AnnouncementMark {
        let announcements = self.1.announcements.get();
        announcements.map(|announcements| announcements.lock().mark()).unwrap_or_default()
    }

    /// Undoes the announcements since then.
    pub(crate) fn undo_announcements(&self, mark: AnnouncementMark) {
        if let Some(announcements) = self.1.announcements.get() {
            announcements.lock().undo_to(mark);
        }
    }

    /// Takes all announcements; `None` if there are none.
    pub(crate) fn take_announcements(&self) -> Option<Announcements> {
        let announcements = std::mem::take(&mut *self.1.announcements.get()?.lock());
        (!announcements.is_empty()).then_some(announcements)
    }

    pub(crate) fn release_advisory(&self) {
        if let Some(holder) = self.1.advisory.get() {
            holder.release();
        }
    }

    /// The version that its next statement sees, if no statement uses it now.
    pub(crate) fn version(&self) -> Option<Arc<DatabaseVersion>> {
        self.0.try_lock().ok()?.as_mut()?.statement(false).ok()
    }
}
