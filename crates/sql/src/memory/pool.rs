//! Who gets how much of the memory limit.
//!
//! ```text
//! ├────────────── three quarters ──────────────┤
//! │ spiller 0 │ spiller 1 │ … in equal shares  │   free    │ tables, hash tables, writers … │
//! ├───────────────────────────────── limit ────────────────────────────────────────────────┤
//! ```
//!
//! What cannot spill gets whatever is free, first come, first served. What can spill gets an equal share
//! of what that leaves, as in DataFusion's `FairSpillPool`, with two differences, both found in sorts
//! that ended for want of memory that others could have done without (DataFusion 55.2):
//!
//! - Shares are of three quarters: the rest stays free for operators that come to ask after the spillers
//!   have filled up, such as the merge of sorted partitions and the writer of a file.
//! - The merge of an external sort counts as a spiller: it takes as many runs at a time as it gets memory
//!   for and makes do with two, and took everything while its siblings were still sorting.

use std::fmt;
use std::sync::Arc;

use atoll_topology::Bytes;
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;

use super::Gauge;

/// DataFusion's name for the merges of external sorts.
const MERGE: &str = "ExternalSorterMerge";

/// A pool in shares that also asks a [`Gauge`]; see the module.
#[derive(Debug)]
pub(crate) struct SharedPool {
    limit: usize,
    gauge: Arc<Gauge>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    spillers: usize,
    merges: usize,
    by_spillers: usize,
    by_others: usize,
}

impl SharedPool {
    /// A pool of `limit` bytes that grants nothing beyond what `gauge` allows.
    pub(crate) fn new(limit: usize, gauge: Arc<Gauge>) -> Self {
        Self { limit, gauge, taken: Mutex::default() }
    }

    /// What a spiller that has `own` may take now.
    fn share(&self, taken: &Taken, own: usize) -> usize {
        let shared = (self.limit - self.limit / 4).saturating_sub(taken.by_others);
        // A sort and its merge have one share between them: only one of the two has much at a time.
        (shared / taken.spillers.max(taken.merges).max(1)).saturating_sub(own)
    }

    fn available(&self, taken: &Taken, reservation: &MemoryReservation) -> usize {
        let free = self.limit.saturating_sub(taken.all());
        let (consumer, own) = (reservation.consumer(), reservation.size());
        if is_merge(consumer) {
            // Before it spills, a sort merges what it has beside it: out of what is free.
            let left = self.limit / 16;
            self.share(taken, own).min(free.saturating_sub(left))
        } else if consumer.can_spill() {
            self.share(taken, own).min(free)
        } else {
            free
        }
    }
}

fn is_merge(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with(MERGE)
}

/// Whether it makes do with less.
fn is_spiller(consumer: &MemoryConsumer) -> bool {
    consumer.can_spill() || is_merge(consumer)
}

impl Taken {
    fn count(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if is_merge(consumer) { &mut self.merges } else { &mut self.spillers }
    }

    fn all(&self) -> usize {
        self.by_spillers + self.by_others
    }

    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if is_spiller(consumer) { &mut self.by_spillers } else { &mut self.by_others }
    }
}

impl fmt::Display for SharedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared({})", Bytes(self.limit as u64))
    }
}

impl MemoryPool for SharedPool {
    fn name(&self) -> &str {
        "shared"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if is_spiller(consumer) {
            *self.taken.lock().count(consumer) += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if is_spiller(consumer) {
            let mut taken = self.taken.lock();
            let count = taken.count(consumer);
            *count = count.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.taken.lock().of(reservation.consumer()) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut taken = self.taken.lock();
        let own = taken.of(reservation.consumer());
        *own = own.saturating_sub(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        self.gauge.check(consumer.name())?;
        let mut taken = self.taken.lock();
        let available = self.available(&taken, reservation);
        if additional > available {
            let (wanted, limit) = (Bytes(additional as u64), Bytes(self.limit as u64));
            return Err(resources_datafusion_err!(
                "{} has {} and needs {wanted} more, and {} of the memory limit of {limit} are \
                 available",
                consumer.name(),
                Bytes(reservation.size() as u64),
                Bytes(available as u64)
            ));
        }
        *taken.of(consumer) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.taken.lock().all()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1000;

    fn pool() -> Arc<dyn MemoryPool> {
        Arc::new(SharedPool::new(LIMIT, Arc::new(Gauge::new(LIMIT, None))))
    }

    fn consumer(pool: &Arc<dyn MemoryPool>, name: &str, can_spill: bool) -> MemoryReservation {
        MemoryConsumer::new(name).with_can_spill(can_spill).register(pool)
    }

    #[test]
    fn spillers_have_equal_shares_of_three_quarters() {
        let pool = pool();
        let (one, two) = (consumer(&pool, "a sort", true), consumer(&pool, "a sort", true));
        one.try_grow(375).unwrap();
        assert!(one.try_grow(1).is_err());
        two.try_grow(375).unwrap();
        let table = consumer(&pool, "a hash table", false);
        table.try_grow(250).unwrap();
        assert!(table.try_grow(1).unwrap_err().to_string().contains("1000 B"));
        two.free();
        table.try_grow(375).unwrap();
        // What cannot spill leaves less to those that can.
        assert!(two.try_grow(63).is_err());
    }

    #[test]
    fn the_merge_of_a_sort_leaves_something_to_others() {
        let pool = pool();
        let (sort, merge) = (consumer(&pool, "a sort", true), consumer(&pool, MERGE, false));
        merge.try_grow(750).unwrap();
        assert!(merge.try_grow(1).is_err());
        let other = consumer(&pool, "SortPreservingMergeExec[0]", false);
        other.try_grow(250).unwrap();
        assert!(sort.try_grow(1).is_err());
        merge.free();
        sort.try_grow(500).unwrap();
        assert!(sort.try_grow(1).is_err());
        assert_eq!(pool.reserved(), 750);
    }

    #[test]
    fn a_full_sort_has_room_to_merge_what_it_spills() {
        let pool = pool();
        let (sort, merge) = (consumer(&pool, "a sort", true), consumer(&pool, MERGE, false));
        sort.try_grow(750).unwrap();
        merge.try_grow(180).unwrap();
        assert!(merge.try_grow(10).is_err());
        consumer(&pool, "SortPreservingMergeExec[0]", false).try_grow(70).unwrap();
    }

    #[test]
    fn merges_share_after_their_sorts_have_ended() {
        let pool = pool();
        let merges = [consumer(&pool, MERGE, false), consumer(&pool, MERGE, false)];
        for merge in &merges {
            merge.try_grow(375).unwrap();
            assert!(merge.try_grow(1).is_err());
        }
        assert_eq!(pool.reserved(), 750);
    }

    #[test]
    fn what_is_given_back_is_granted_again() {
        let pool = pool();
        for can_spill in [true, false] {
            let one = consumer(&pool, "an operator", can_spill);
            one.try_grow(700).unwrap();
            one.shrink(600);
            one.try_grow(600).unwrap();
            drop(one);
            assert_eq!(pool.reserved(), 0);
        }
    }
}
