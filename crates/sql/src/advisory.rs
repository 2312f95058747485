//! Advisory locks: numbers that sessions lock for purposes of their own, as tools for migrations do.
//!
//! Several sessions may share a lock on a number, or one holds it alone. A session, and each of its transactions, holds
//! it as often as it took it, and never blocks itself. A waiting request keeps no state: it checks again whenever
//! something was released, so a cancelled statement has nothing to undo.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// What is locked: one number, or a pair, which is never the same as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AdvisoryKey {
    One(i64),
    Two(i32, i32),
}

/// Who holds a lock, and whether with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hold {
    session: u64,
    /// The transaction with which it ends, if any.
    transaction: Option<u64>,
    is_shared: bool,
}

/// The locks of a database, with how often each is held.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    held: Mutex<HashMap<AdvisoryKey, Vec<(Hold, usize)>>>,
    released: Notify,
    last_number: AtomicU64,
}

impl AdvisoryLocks {
    fn number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed)
    }

    fn try_lock(&self, key: AdvisoryKey, wanted: Hold) -> bool {
        let mut held = self.held.lock();
        let holds = held.entry(key).or_default();
        let is_in_the_way = |(hold, _): &(Hold, usize)| {
            hold.session != wanted.session && !(hold.is_shared && wanted.is_shared)
        };
        // There is one in the way, so the entry is not empty.
        if holds.iter().any(is_in_the_way) {
            return false;
        }
        match holds.iter_mut().find(|(hold, _)| *hold == wanted) {
            Some((_, count)) => *count += 1,
            None => holds.push((wanted, 1)),
        }
        true
    }

    fn unlock(&self, key: AdvisoryKey, wanted: Hold) -> bool {
        let mut held = self.held.lock();
        let Some(holds) = held.get_mut(&key) else { return false };
        let Some(at) = holds.iter().position(|(hold, _)| *hold == wanted) else { return false };
        holds[at].1 -= 1;
        if holds[at].1 == 0 {
            holds.swap_remove(at);
            if holds.is_empty() {
                held.remove(&key);
            }
            drop(held);
            self.released.notify_waiters();
        }
        true
    }

    fn release(&self, session: u64, transaction: Option<u64>) {
        let is_other =
            |(hold, _): &(Hold, usize)| hold.session != session || hold.transaction != transaction;
        self.held.lock().retain(|_, holds| {
            holds.retain(is_other);
            !holds.is_empty()
        });
        self.released.notify_waiters();
    }
}

/// The locks of a session or one of its transactions; dropping this releases them.
#[derive(Debug)]
pub(crate) struct AdvisoryHolder {
    locks: Arc<AdvisoryLocks>,
    session: u64,
    transaction: Option<u64>,
}

impl AdvisoryHolder {
    /// For a session; holds none yet.
    pub(crate) fn of_session(locks: &Arc<AdvisoryLocks>) -> Self {
        Self { locks: Arc::clone(locks), session: locks.number(), transaction: None }
    }

    /// For a transaction of the session.
    pub(crate) fn of_transaction(&self) -> Self {
        let transaction = Some(self.locks.number());
        Self { locks: Arc::clone(&self.locks), session: self.session, transaction }
    }

    fn hold(&self, is_shared: bool) -> Hold {
        Hold { session: self.session, transaction: self.transaction, is_shared }
    }

    /// Takes a lock if it is free.
    pub(crate) fn try_lock(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        self.locks.try_lock(key, self.hold(is_shared))
    }

    /// Waits for a lock.
    pub(crate) async fn lock(&self, key: AdvisoryKey, is_shared: bool) {
        loop {
            // Registered before the attempt, so that no release is missed.
            let released = self.locks.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            if self.try_lock(key, is_shared) {
                return;
            }
            released.await;
        }
    }

    /// Releases a lock once; false if it is not held.
    pub(crate) fn unlock(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        self.locks.unlock(key, self.hold(is_shared))
    }

    /// Releases all locks.
    pub(crate) fn release(&self) {
        self.locks.release(self.session, self.transaction);
    }
}

impl Drop for AdvisoryHolder {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const KEY: AdvisoryKey = AdvisoryKey::One(7);

    #[test]
    fn a_lock_is_of_one_session_or_shared() {
        let locks = Arc::default();
        let (one, other) = (AdvisoryHolder::of_session(&locks), AdvisoryHolder::of_session(&locks));
        assert!(one.try_lock(KEY, true) && other.try_lock(KEY, true));
        assert!(!one.try_lock(KEY, false));
        assert!(other.unlock(KEY, true) && !other.unlock(KEY, true));
        assert!(one.try_lock(KEY, false) && !other.try_lock(KEY, true));
        assert!(other.try_lock(AdvisoryKey::Two(0, 7), false));
        drop(one);
        assert!(other.try_lock(KEY, false) && other.try_lock(KEY, false));
        assert!(other.unlock(KEY, false) && other.unlock(KEY, false) && !other.unlock(KEY, false));
        other.release();
        assert!(locks.held.lock().is_empty());
    }

    #[test]
    fn those_of_a_transaction_end_with_it() {
        let locks = Arc::default();
        let (one, other) = (AdvisoryHolder::of_session(&locks), AdvisoryHolder::of_session(&locks));
        let transaction = one.of_transaction();
        assert!(transaction.try_lock(KEY, false) && one.try_lock(KEY, false));
        one.release();
        assert!(!other.try_lock(KEY, false));
        drop(transaction);
        assert!(other.try_lock(KEY, false));
    }

    #[test]
    fn a_request_waits_until_a_lock_is_released() {
        let locks = Arc::default();
        let (one, other) = (AdvisoryHolder::of_session(&locks), AdvisoryHolder::of_session(&locks));
        assert!(one.try_lock(KEY, false));
        let mut waiting = Box::pin(other.lock(KEY, false));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(one.unlock(KEY, false));
        assert!(waiting.now_or_never().is_some());
        assert!(!one.try_lock(KEY, true));
    }
}
