//! The locks that one transaction holds.

use std::sync::Arc;

use super::queue::LockAnswer;
use super::request::LockRequest;
use super::{LockManager, LockMode, LockTarget, TransactionId};

/// The locks of one transaction. Dropping it releases them.
#[derive(Debug)]
pub struct HeldLocks {
    pub(super) manager: Arc<LockManager>,
    pub(super) owner: TransactionId,
    pub(super) targets: Vec<LockTarget>,
    /// Whether the graph of waits may contain the transaction.
    pub(super) has_waited: bool,
}

impl HeldLocks {
    /// No locks yet.
    pub fn new(manager: Arc<LockManager>, owner: TransactionId) -> Self {
        Self { manager, owner, targets: Vec::new(), has_waited: false }
    }

    /// The transaction.
    pub fn owner(&self) -> TransactionId {
        self.owner
    }

    /// What is locked, with the modes.
    pub fn targets(&self) -> impl Iterator<Item = (&LockTarget, LockMode)> {
        self.targets.iter().map(|target| {
            let is_exclusive = self.holds(target, LockMode::Exclusive);
            (target, if is_exclusive { LockMode::Exclusive } else { LockMode::Shared })
        })
    }

    /// Number of locks.
    pub fn count(&self) -> usize {
        self.targets.len()
    }

    /// Takes a lock if that needs no waiting; returns whether it is held.
    pub fn try_lock(&mut self, target: LockTarget, mode: LockMode) -> bool {
        let answer = self.manager.take(&target, self.owner, mode, None);
        if answer == LockAnswer::Granted {
            self.targets.push(target);
        }
        answer != LockAnswer::Wait
    }

    /// Takes a lock, waiting for its holders.
    pub fn lock(&mut self, target: LockTarget, mode: LockMode) -> LockRequest<'_> {
        LockRequest::new(self, target, mode)
    }

    /// Whether a lock is held in this mode or a stronger one.
    pub fn holds(&self, target: &LockTarget, mode: LockMode) -> bool {
        self.manager.with(target, |queue| queue.holds(self.owner, mode)) == Some(true)
    }

    /// Releases all locks and grants them to waiters.
    pub fn release_all(&mut self) {
        for target in self.targets.drain(..) {
            self.manager.release(&target, self.owner);
        }
        if std::mem::take(&mut self.has_waited) {
            self.manager.waits.lock().forget(self.owner);
        }
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        self.release_all();
    }
}
