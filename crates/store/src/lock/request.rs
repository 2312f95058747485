//! Waiting for a lock, as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::queue::LockAnswer;
use super::{Deadlock, HeldLocks, LockMode, LockTarget};

/// A future that is ready when the lock is held. Dropping it before withdraws the request.
#[derive(Debug)]
#[must_use = "a lock is asked for when the request is awaited"]
pub struct LockRequest<'a> {
    locks: &'a mut HeldLocks,
    target: LockTarget,
    mode: LockMode,
    state: RequestState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    New,
    /// In the lock's queue, or granted since.
    Waiting {
        /// Whether the transaction already shares the lock.
        is_shared: bool,
    },
    Done,
}

impl<'a> LockRequest<'a> {
    pub(super) fn new(locks: &'a mut HeldLocks, target: LockTarget, mode: LockMode) -> Self {
        Self { locks, target, mode, state: RequestState::New }
    }

    fn begin(&mut self, context: &Context<'_>) -> Poll<Result<(), Deadlock>> {
        if self.locks.try_lock(self.target, self.mode) {
            self.state = RequestState::Done;
            return Poll::Ready(Ok(()));
        }
        self.locks.has_waited = true;
        let is_shared = self.locks.holds(&self.target, LockMode::Shared);
        let (manager, owner) = (&self.locks.manager, self.locks.owner);
        self.state = RequestState::Done;
        match manager.take_or_wait(&self.target, owner, self.mode, context.waker())? {
            LockAnswer::Granted => self.locks.targets.push(self.target),
            LockAnswer::Held => {}
            LockAnswer::Wait => {
                self.state = RequestState::Waiting { is_shared };
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Future for LockRequest<'_> {
    type Output = Result<(), Deadlock>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.state {
            RequestState::New => self.begin(context),
            RequestState::Waiting { is_shared } => {
                let (manager, owner) = (&self.locks.manager, self.locks.owner);
                if !manager.is_granted(&self.target, owner, context.waker()) {
                    return Poll::Pending;
                }
                let target = self.target;
                if !is_shared {
                    self.locks.targets.push(target);
                }
                self.state = RequestState::Done;
                Poll::Ready(Ok(()))
            }
            RequestState::Done => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for LockRequest<'_> {
    fn drop(&mut self) {
        let RequestState::Waiting { is_shared } = self.state else { return };
        let (manager, owner) = (&self.locks.manager, self.locks.owner);
        if manager.withdraw(&self.target, owner) {
            return;
        }
        // It was granted but is no longer wanted.
        match is_shared {
            true => manager.share(&self.target),
            false => manager.release(&self.target, owner),
        }
    }
}
