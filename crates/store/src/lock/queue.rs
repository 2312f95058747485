//! One lock: its holders, and its waiters, oldest first.
//!
//! A request waits behind all earlier ones, even if the holders would admit it, so that none
//! waits forever. Only a holder that wants the lock exclusively goes first: those behind it wait for it
//! anyway.

use std::collections::VecDeque;
use std::task::Waker;

use super::target::{LockMode, TransactionId};

/// A lock that is held.
#[derive(Debug)]
pub(super) struct LockQueue {
    mode: LockMode,
    /// In the order in which they arrived; at least one.
    holders: Holders,
    waiters: VecDeque<LockWaiter>,
}

/// The usual single holder, without an allocation.
#[derive(Debug)]
struct Holders {
    first: TransactionId,
    others: Vec<TransactionId>,
}

#[derive(Debug)]
struct LockWaiter {
    owner: TransactionId,
    mode: LockMode,
    waker: Waker,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockAnswer {
    /// The transaction holds it now and did not before.
    Granted,
    /// The transaction held it before; now at least in this mode.
    Held,
    /// Others must release it first.
    Wait,
}

impl LockQueue {
    pub(super) fn new(owner: TransactionId, mode: LockMode) -> Self {
        let holders = Holders { first: owner, others: Vec::new() };
        Self { mode, holders, waiters: VecDeque::new() }
    }

    pub(super) fn holders(&self) -> impl Iterator<Item = TransactionId> {
        self.holders.iter()
    }

    /// The mode of the holders.
    pub(super) fn mode(&self) -> LockMode {
        self.mode
    }

    /// The waiters and their modes, next one first.
    pub(super) fn waiters(&self) -> impl Iterator<Item = (TransactionId, LockMode)> {
        self.waiters.iter().map(|waiter| (waiter.owner, waiter.mode))
    }

    pub(super) fn holds(&self, owner: TransactionId, mode: LockMode) -> bool {
        self.mode >= mode && self.holders.contains(owner)
    }

    pub(super) fn waits(&self, owner: TransactionId) -> bool {
        self.waiters.iter().any(|waiter| waiter.owner == owner)
    }

    /// Takes the lock if that needs no waiting; else waits for it, if there is a waker.
    pub(super) fn take(
        &mut self,
        owner: TransactionId,
        mode: LockMode,
        waker: Option<&Waker>,
    ) -> LockAnswer {
        let answer = self.try_take(owner, mode);
        if let (LockAnswer::Wait, Some(waker)) = (answer, waker) {
            let waiter = LockWaiter { owner, mode, waker: waker.clone() };
            match self.holders.contains(owner) {
                true => self.waiters.push_front(waiter),
                false => self.waiters.push_back(waiter),
            }
        }
        answer
    }

    fn try_take(&mut self, owner: TransactionId, mode: LockMode) -> LockAnswer {
        if self.holds(owner, mode) {
            return LockAnswer::Held;
        }
        let is_shared = (self.mode, mode) == (LockMode::Shared, LockMode::Shared);
        if self.holders.is_only(owner) {
            self.mode = LockMode::Exclusive;
            return LockAnswer::Held;
        }
        if !is_shared || !self.waiters.is_empty() {
            return LockAnswer::Wait;
        }
        self.holders.others.push(owner);
        LockAnswer::Granted
    }

    /// Replaces the waker for the grant; false if the transaction does not wait.
    pub(super) fn set_waker(&mut self, owner: TransactionId, waker: &Waker) -> bool {
        let waiter = self.waiters.iter_mut().find(|waiter| waiter.owner == owner);
        waiter.is_some_and(|waiter| {
            waiter.waker.clone_from(waker);
            true
        })
    }

    /// Withdraws a waiting request; false if there is none.
    pub(super) fn withdraw(&mut self, owner: TransactionId, wakers: &mut Vec<Waker>) -> bool {
        let Some(at) = self.waiters.iter().position(|waiter| waiter.owner == owner) else {
            return false;
        };
        self.waiters.remove(at);
        self.grant(wakers);
        true
    }

    /// Shares the lock again after it was exclusive.
    pub(super) fn share(&mut self, wakers: &mut Vec<Waker>) {
        self.mode = LockMode::Shared;
        self.grant(wakers);
    }

    /// Releases the lock; true if no transaction holds it afterwards.
    pub(super) fn release(&mut self, owner: TransactionId, wakers: &mut Vec<Waker>) -> bool {
        if !self.holders.remove(owner) {
            let Some(next) = self.waiters.pop_front() else { return true };
            self.holders.first = next.owner;
            self.mode = next.mode;
            wakers.push(next.waker);
        }
        self.grant(wakers);
        false
    }

    /// Grants the lock to waiters, oldest first, as far as the holders allow.
    fn grant(&mut self, wakers: &mut Vec<Waker>) {
        while let Some(next) = self.waiters.front() {
            let is_shared = (self.mode, next.mode) == (LockMode::Shared, LockMode::Shared);
            if self.holders.is_only(next.owner) {
                self.mode = LockMode::Exclusive;
            } else if is_shared {
                self.holders.others.push(next.owner);
            } else {
                return;
            }
            wakers.extend(self.waiters.pop_front().map(|waiter| waiter.waker));
        }
    }
}

impl Holders {
    fn iter(&self) -> impl Iterator<Item = TransactionId> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    fn contains(&self, owner: TransactionId) -> bool {
        self.first == owner || self.others.contains(&owner)
    }

    fn is_only(&self, owner: TransactionId) -> bool {
        self.first == owner && self.others.is_empty()
    }

    /// Removes one holder; false if it was the only one, which stays.
    fn remove(&mut self, owner: TransactionId) -> bool {
        if let Some(at) = self.others.iter().position(|other| *other == owner) {
            self.others.remove(at);
            return true;
        }
        if self.others.is_empty() {
            return false;
        }
        self.first = self.others.remove(0);
        true
    }
}
