//! Locks of transactions, on tables, rows, keys and names, held until the transaction ends.
//!
//! | type | what |
//! |---|---|
//! | [`LockManager`] | all locks of a database |
//! | [`HeldLocks`] | the locks of one transaction; dropping it releases them |
//! | [`LockRequest`] | a future that is ready when the lock is granted, or refused as a [`Deadlock`] |
//!
//! Waiting never blocks a thread. A lock is granted in the order of the requests; the transaction that
//! releases it hands it to the next one, so no request is overtaken or starves. A dropped request
//! leaves no trace.
//!
//! Locks are in shards, each with a mutex that is held for one step on one lock. The graph of waits has
//! a mutex of its own, which is taken before a shard's and only by a transaction that must wait.

mod deadlock;
mod held;
mod queue;
mod request;
mod target;

use std::hash::BuildHasher;
use std::task::Waker;

use crossbeam_utils::CachePadded;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use deadlock::WaitGraph;
use queue::{LockAnswer, LockQueue};

pub use deadlock::Deadlock;
pub use held::HeldLocks;
pub use request::LockRequest;
pub use target::{LockMode, LockTarget, TransactionId};

/// Few enough to create quickly, enough that 32 sessions seldom meet in one.
const SHARDS: usize = 64;

/// All locks of a database.
#[derive(Debug)]
pub struct LockManager {
    shards: Box<[LockShard]>,
    hasher: DefaultHashBuilder,
    waits: Mutex<WaitGraph>,
}

/// A transaction that holds a lock or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockEntry {
    /// The target.
    pub target: LockTarget,
    /// The mode in which the transaction holds it or requests it.
    pub mode: LockMode,
    /// The transaction.
    pub transaction: TransactionId,
    /// Whether it holds it.
    pub is_granted: bool,
}

/// Locks by target, in one of several shards on cache lines of their own.
type LockShard = CachePadded<Mutex<HashTable<(LockTarget, LockQueue)>>>;

impl Default for LockManager {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| LockShard::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            waits: Mutex::default(),
        }
    }
}

impl LockManager {
    /// No locks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of locked tables, rows, keys and names.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// All locks by target: the holders, then the waiters, next one first. Locks are read
    /// shard by shard, so those of different targets may be from different moments.
    pub fn list(&self) -> Vec<LockEntry> {
        let mut all = Vec::new();
        for shard in &self.shards {
            for (target, queue) in shard.lock().iter() {
                let entry = |transaction, mode, is_granted| LockEntry {
                    target: *target,
                    mode,
                    transaction,
                    is_granted,
                };
                all.extend(queue.holders().map(|holder| entry(holder, queue.mode(), true)));
                all.extend(queue.waiters().map(|(waiter, mode)| entry(waiter, mode, false)));
            }
        }
        // A stable sort keeps the order within a target.
        all.sort_by_key(|entry| entry.target);
        all
    }

    fn place(&self, target: &LockTarget) -> (u64, &LockShard) {
        let hash = self.hasher.hash_one(target);
        // The table of the shard uses the hash's lowest and highest bits.
        (hash, &self.shards[(hash >> 32) as usize % SHARDS])
    }

    /// Calls `run` with the queue of a lock that may be held.
    fn with<T>(&self, target: &LockTarget, run: impl FnOnce(&mut LockQueue) -> T) -> Option<T> {
        let (hash, shard) = self.place(target);
        let mut locks = shard.lock();
        locks.find_mut(hash, |(other, _)| other == target).map(|(_, queue)| run(queue))
    }

    /// Takes a lock if that needs no waiting; else waits for it, if there is a waker.
    fn take(
        &self,
        target: &LockTarget,
        owner: TransactionId,
        mode: LockMode,
        waker: Option<&Waker>,
    ) -> LockAnswer {
        let (hash, shard) = self.place(target);
        let mut locks = shard.lock();
        let rehash = |(target, _): &(LockTarget, LockQueue)| self.hasher.hash_one(target);
        match locks.entry(hash, |(other, _)| other == target, rehash) {
            Entry::Occupied(mut held) => held.get_mut().1.take(owner, mode, waker),
            Entry::Vacant(free) => {
                free.insert((*target, LockQueue::new(owner, mode)));
                LockAnswer::Granted
            }
        }
    }

    /// Takes a lock or waits for it, unless that would close a cycle.
    fn take_or_wait(
        &self,
        target: &LockTarget,
        owner: TransactionId,
        mode: LockMode,
        waker: &Waker,
    ) -> Result<LockAnswer, Deadlock> {
        let mut waits = self.waits.lock();
        let answer = self.take(target, owner, mode, Some(waker));
        if answer != LockAnswer::Wait {
            return Ok(answer);
        }
        let add_holders = |waiter, target, holders: &mut Vec<TransactionId>| {
            self.with(&target, |queue| {
                if queue.waits(waiter) {
                    holders.extend(queue.holders());
                }
            });
        };
        let closed = waits.wait(owner, *target, add_holders);
        if closed.is_err() {
            waits.forget(owner);
            drop(waits);
            self.withdraw(target, owner);
        }
        closed.map(|()| LockAnswer::Wait)
    }

    /// Whether a lock that was waited for is granted; otherwise `waker` is called when it is.
    fn is_granted(&self, target: &LockTarget, owner: TransactionId, waker: &Waker) -> bool {
        self.with(target, |queue| queue.set_waker(owner, waker)) != Some(true)
    }

    /// Withdraws a waiting request; false if it was granted meanwhile.
    fn withdraw(&self, target: &LockTarget, owner: TransactionId) -> bool {
        self.change(target, |queue, wakers| (queue.withdraw(owner, wakers), false))
    }

    /// Releases a lock.
    fn release(&self, target: &LockTarget, owner: TransactionId) {
        self.change(target, |queue, wakers| ((), queue.release(owner, wakers)));
    }

    /// Shares a lock again that was made exclusive.
    fn share(&self, target: &LockTarget) {
        self.change(target, |queue, wakers| (queue.share(wakers), false));
    }

    /// Acts on a lock, wakes the waiters that are granted it, and removes the lock if it is free then.
    fn change<T: Default>(
        &self,
        target: &LockTarget,
        run: impl FnOnce(&mut LockQueue, &mut Vec<Waker>) -> (T, bool),
    ) -> T {
        let (hash, shard) = self.place(target);
        let mut wakers = Vec::new();
        let mut locks = shard.lock();
        let Ok(mut entry) = locks.find_entry(hash, |(other, _)| other == target) else {
            return T::default();
        };
        let (answer, is_free) = run(&mut entry.get_mut().1, &mut wakers);
        if is_free {
            entry.remove();
        }
        drop(locks);
        wakers.into_iter().for_each(Waker::wake);
        answer
    }
}
