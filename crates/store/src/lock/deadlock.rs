//! Deadlocks: transactions that wait for each other in a cycle.
//!
//! A transaction waits for one lock at a time, and for all its holders: also for those that share it with an
//! older waiter, because it waits behind that one. So the search goes from a lock to its holders and
//! from each to the lock that it waits for. A cycle is closed by the last of its transactions to wait,
//! and by no other step: a lock is granted only to a transaction that waits for nothing else. So
//! it is enough to search from a transaction that begins to wait. Transactions begin to wait one after
//! another, and a waiting transaction releases nothing; the result of the search is therefore still true at
//! its end, even though it visits one lock after another.

use std::fmt;

use hashbrown::HashMap;

use super::target::{LockTarget, TransactionId};

/// A cycle of transactions: each waits for a lock that the next one holds, the last one for a lock that the
/// first holds. The first is the one whose request closed the cycle and was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each transaction with the lock that it waits for.
    pub circle: Vec<(TransactionId, LockTarget)>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadlock detected")
    }
}

impl std::error::Error for Deadlock {}

/// The lock that each transaction waits for. An entry may outlive its wait: it counts only while the
/// lock's queue has the transaction.
#[derive(Debug, Default)]
pub(super) struct WaitGraph {
    waits: HashMap<TransactionId, LockTarget>,
}

impl WaitGraph {
    /// Records that a transaction waits, and looks for a cycle. `holders` adds the holders of a lock, if the
    /// transaction waits for it.
    pub(super) fn wait(
        &mut self,
        owner: TransactionId,
        target: LockTarget,
        holders: impl Fn(TransactionId, LockTarget, &mut Vec<TransactionId>),
    ) -> Result<(), Deadlock> {
        self.waits.insert(owner, target);
        let mut reached: HashMap<TransactionId, TransactionId> = HashMap::new();
        let mut pending = vec![owner];
        let mut found = Vec::new();
        while let Some(waiter) = pending.pop() {
            let Some(target) = self.waits.get(&waiter) else { continue };
            holders(waiter, *target, &mut found);
            for holder in found.drain(..).filter(|holder| *holder != waiter) {
                if holder == owner {
                    return Err(self.circle(waiter, &reached));
                }
                if reached.insert(holder, waiter).is_none() {
                    pending.push(holder);
                }
            }
        }
        Ok(())
    }

    /// The cycle that the wait of `last` closes.
    fn circle(
        &self,
        last: TransactionId,
        reached: &HashMap<TransactionId, TransactionId>,
    ) -> Deadlock {
        let waiters = std::iter::successors(Some(last), |waiter| reached.get(waiter).copied());
        let mut circle: Vec<_> = waiters.map(|waiter| (waiter, self.waits[&waiter])).collect();
        circle.reverse();
        Deadlock { circle }
    }

    pub(super) fn forget(&mut self, owner: TransactionId) {
        self.waits.remove(&owner);
    }
}
