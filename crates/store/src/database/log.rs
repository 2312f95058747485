//! Records of commits, and pausing commits.

use std::sync::Arc;

use super::Database;
use super::error::TransactionError;
use super::options::{Committed, Durability};
use super::sequencer::OrderedCommit;
use super::version::DatabaseVersion;
use crate::change::DatabaseChange;
use crate::lock::{HeldLocks, LockMode, LockTarget};
use crate::log::LogRoom;
use crate::record::encode_record;

/// A record with room in the log.
#[derive(Debug)]
pub(super) struct PreparedRecord {
    pub(super) room: LogRoom,
    pub(super) payload: Vec<u8>,
}

/// While this lives, nothing is committed: commits wait. Dropping it resumes them.
#[derive(Debug)]
pub struct PausedCommits {
    database: Arc<Database>,
    #[expect(dead_code, reason = "commits wait for it")]
    turn: HeldLocks,
}

impl Database {
    /// The record of a change, with room; `None` without a log, while none are written, and for temporary objects.
    pub(super) async fn prepare(
        &self,
        change: &DatabaseChange,
    ) -> Result<Option<PreparedRecord>, TransactionError> {
        let is_written =
            || self.durability() != Durability::Off && change.durable_steps().next().is_some();
        let Some(log) = self.log.as_ref().filter(|_| is_written()) else {
            return Ok(None);
        };
        let payload = encode_record(change)?;
        let room = log.reserve(payload.len())?.await?;
        Ok(Some(PreparedRecord { room, payload }))
    }

    /// Waits until an ordered commit is as durable as requested, and publishes it.
    pub(super) async fn settle(
        &self,
        ordered: OrderedCommit,
    ) -> Result<Committed, TransactionError> {
        let epoch = ordered.version.epoch();
        let position = ordered.synced().await?;
        if self.durability() == Durability::Fsync {
            // A change of temporary tables has no record: it is published when everything before it is synced.
            self.sync_to(position).await?;
            self.show_synced();
        }
        Ok(Committed { epoch, position })
    }

    /// The same for a statement of two-phase commit, which waits for the disk also when commits do not: another
    /// database may depend on it.
    pub(super) async fn settle_and_sync(
        &self,
        ordered: OrderedCommit,
    ) -> Result<Committed, TransactionError> {
        let committed = self.settle(ordered).await?;
        if self.durability() == Durability::Async {
            self.sync_to(committed.position).await?;
        }
        Ok(committed)
    }

    /// Pauses commits. After [`Durability::Off`] a checkpoint of everything committed must be made
    /// before records are written again: no log holds it. It is short if another one was made just
    /// before.
    pub async fn pause_commits(self: &Arc<Self>) -> PausedCommits {
        let mut turn = HeldLocks::new(Arc::clone(&self.locks), self.new_call());
        let locked = turn.lock(LockTarget::Commits, LockMode::Exclusive).await;
        debug_assert!(locked.is_ok(), "a call that holds nothing else closes no cycle");
        self.sequencer.lock().is_paused = true;
        PausedCommits { database: Arc::clone(self), turn }
    }

    /// Waits until commits are not paused.
    pub(super) async fn wait_for_pause(&self) {
        let mut turn = HeldLocks::new(Arc::clone(&self.locks), self.new_call());
        let locked = turn.lock(LockTarget::Commits, LockMode::Shared).await;
        debug_assert!(locked.is_ok(), "a call that holds nothing else closes no cycle");
    }
}

impl PausedCommits {
    /// Everything that is committed.
    pub fn version(&self) -> Arc<DatabaseVersion> {
        self.database.newest()
    }

    /// Resumes commits, with this durability. After [`Durability::Off`] another one is allowed only if a
    /// checkpoint holds [`version`](Self::version).
    pub fn resume(self, durability: Durability) {
        let sequencer = self.database.sequencer.lock();
        self.database.durability.set(durability, &sequencer);
    }
}

impl Drop for PausedCommits {
    fn drop(&mut self) {
        self.database.sequencer.lock().is_paused = false;
    }
}
