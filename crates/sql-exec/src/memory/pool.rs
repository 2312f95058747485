//! How the memory limit is shared out.
//!
//! ```text
//! ├────────────── three quarters ──────────────┤
//! │ spiller 0 │ spiller 1 │ … in equal shares  │   free    │ tables, hash tables, writers … │
//! ├───────────────────────────────── limit ────────────────────────────────────────────────┤
//! ```
//!
//! Consumers that cannot spill get whatever is free, first come, first served. The others get equal shares
//! of the rest, as in DataFusion's `FairSpillPool`, with two differences, both found in sorts that ran out
//! of memory that others did not need (DataFusion 55.2):
//!
//! - Shares are of three quarters: the rest stays free for operators that request memory after the spillers
//!   have filled up, such as the merge of sorted partitions and the writer of a file.
//! - The merge of an external sort counts as a spiller: it takes as many runs at a time as it gets memory
//!   for and makes do with two, and took everything while its siblings were still sorting. A sort and its
//!   merge have one share: while it merges what it has, to spill it, a sort would collect what comes out
//!   until its share is full again.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use atoll_topology::Bytes;
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;

use super::Gauge;

/// DataFusion's names for external sorts and for their merges; the partition follows in brackets.
const SORT: &str = "ExternalSorter[";
const MERGE: &str = "ExternalSorterMerge[";

/// Kinds of consumers that a refusal names.
const LARGEST: usize = 3;

/// A pool of shares that also checks a [`Gauge`]; see the module.
#[derive(Debug)]
pub struct SharedPool {
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
    /// Merges of sorts by partition.
    merging: HashMap<String, Merging>,
    /// The bytes of consumers of each kind, over all partitions.
    by_kind: HashMap<String, usize>,
}

/// The merges of one partition: one for each sort of the queries that run.
#[derive(Debug, Default)]
struct Merging {
    merges: usize,
    bytes: usize,
}

impl SharedPool {
    /// A pool of `limit` bytes that grants nothing beyond what `gauge` allows.
    pub fn new(limit: usize, gauge: Arc<Gauge>) -> Self {
        Self { limit, gauge, taken: Mutex::default() }
    }

    /// The share of a spiller that has `own` bytes.
    fn share(&self, taken: &Taken, own: usize) -> usize {
        let shared = (self.limit - self.limit / 4).saturating_sub(taken.by_others);
        // A sort and its merge have one share between them: only one of the two has much at a time.
        (shared / taken.spillers.max(taken.merges).max(1)).saturating_sub(own)
    }

    fn available(&self, taken: &Taken, reservation: &MemoryReservation) -> usize {
        let free = self.limit.saturating_sub(taken.all());
        let (consumer, own) = (reservation.consumer(), reservation.size());
        if is_merge(consumer) {
            // Before it spills, a sort merges its rows, with memory from what is free.
            let left = self.limit / 16;
            self.share(taken, own).min(free.saturating_sub(left))
        } else if consumer.can_spill() {
            self.share(taken, own + taken.by_merge_of(consumer)).min(free)
        } else {
            free
        }
    }
}

/// Its name without the partition in brackets.
fn kind(consumer: &MemoryConsumer) -> &str {
    consumer.name().split('[').next().unwrap_or_default()
}

fn is_merge(consumer: &MemoryConsumer) -> bool {
    merge_partition(consumer).is_some()
}

fn merge_partition(consumer: &MemoryConsumer) -> Option<&str> {
    consumer.name().strip_prefix(MERGE)
}

/// Whether it makes do with less.
fn is_spiller(consumer: &MemoryConsumer) -> bool {
    consumer.can_spill() || is_merge(consumer)
}

impl Taken {
    fn register(&mut self, consumer: &MemoryConsumer) {
        if let Some(partition) = merge_partition(consumer) {
            self.merges += 1;
            self.merging.entry(partition.to_owned()).or_default().merges += 1;
        } else if consumer.can_spill() {
            self.spillers += 1;
        }
    }

    fn unregister(&mut self, consumer: &MemoryConsumer) {
        if let Some(partition) = merge_partition(consumer) {
            self.merges = self.merges.saturating_sub(1);
            let Some(merging) = self.merging.get_mut(partition) else { return };
            merging.merges = merging.merges.saturating_sub(1);
            if merging.merges == 0 {
                self.merging.remove(partition);
            }
        } else if consumer.can_spill() {
            self.spillers = self.spillers.saturating_sub(1);
        }
    }

    fn grow(&mut self, consumer: &MemoryConsumer, bytes: usize) {
        *self.bytes_for(consumer) += bytes;
        match self.by_kind.get_mut(kind(consumer)) {
            Some(taken) => *taken += bytes,
            None => drop(self.by_kind.insert(kind(consumer).to_owned(), bytes)),
        }
        if let Some(merging) = self.merging_of(consumer) {
            merging.bytes += bytes;
        }
    }

    fn shrink(&mut self, consumer: &MemoryConsumer, bytes: usize) {
        let taken = self.bytes_for(consumer);
        *taken = taken.saturating_sub(bytes);
        if let Some(taken) = self.by_kind.get_mut(kind(consumer)) {
            *taken = taken.saturating_sub(bytes);
        }
        if let Some(merging) = self.merging_of(consumer) {
            merging.bytes = merging.bytes.saturating_sub(bytes);
        }
    }

    fn all(&self) -> usize {
        self.by_spillers + self.by_others
    }

    /// The kinds of consumers with the most memory, and their bytes.
    fn largest(&self) -> String {
        let mut kinds: Vec<_> = self.by_kind.iter().filter(|(_, taken)| **taken > 0).collect();
        kinds.sort_by_key(|(kind, taken)| (Reverse(**taken), kind.as_str()));
        kinds.truncate(LARGEST);
        let texts =
            kinds.into_iter().map(|(kind, taken)| format!("{kind} {}", Bytes(*taken as u64)));
        texts.collect::<Vec<_>>().join(", ")
    }

    fn bytes_for(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if is_spiller(consumer) { &mut self.by_spillers } else { &mut self.by_others }
    }

    fn merging_of(&mut self, merge: &MemoryConsumer) -> Option<&mut Merging> {
        self.merging.get_mut(merge_partition(merge)?)
    }

    /// The bytes of this sort's merge. Only their names relate consumers, so with several sorts in one
    /// partition it is the mean.
    fn by_merge_of(&self, sort: &MemoryConsumer) -> usize {
        let partition = sort.name().strip_prefix(SORT);
        let merging = partition.and_then(|partition| self.merging.get(partition));
        merging.map_or(0, |merging| merging.bytes / merging.merges.max(1))
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
        self.taken.lock().register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.taken.lock().unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.taken.lock().grow(reservation.consumer(), additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.taken.lock().shrink(reservation.consumer(), shrink);
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
                 available; the largest are: {}",
                consumer.name(),
                Bytes(reservation.size() as u64),
                Bytes(available as u64),
                taken.largest()
            ));
        }
        taken.grow(consumer, additional);
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
        // Consumers that cannot spill leave less to those that can.
        assert!(two.try_grow(63).is_err());
    }

    #[test]
    fn the_merge_of_a_sort_leaves_memory_to_others() {
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
    fn a_sort_and_its_merge_have_one_share() {
        let pool = pool();
        let [sort, merge, other, other_merge] = [
            ("ExternalSorter[0]", true),
            ("ExternalSorterMerge[0]", false),
            ("ExternalSorter[1]", true),
            ("ExternalSorterMerge[1]", false),
        ]
        .map(|(name, can_spill)| consumer(&pool, name, can_spill));
        merge.try_grow(250).unwrap();
        sort.try_grow(125).unwrap();
        assert!(sort.try_grow(1).is_err());
        other.try_grow(375).unwrap();
        assert!(other.try_grow(1).is_err());
        other.shrink(300);
        other_merge.try_grow(300).unwrap();
        assert!(other.try_grow(1).is_err());
        drop(merge);
        sort.try_grow(250).unwrap();
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
    fn released_memory_is_granted_again() {
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

    #[test]
    fn a_refusal_names_the_largest_consumers() {
        let pool = pool();
        let (tables, queries) =
            (consumer(&pool, "tables", false), consumer(&pool, "Join[0]", false));
        let others = [consumer(&pool, "Join[1]", false), consumer(&pool, "little", false)];
        tables.try_grow(300).unwrap();
        queries.try_grow(300).unwrap();
        others[0].try_grow(350).unwrap();
        others[1].try_grow(10).unwrap();
        let error = others[1].try_grow(100).unwrap_err().to_string();
        let named = error.split("the largest are: ").nth(1).unwrap();
        let kinds: Vec<&str> = named.split(", ").map(|it| it.split(' ').next().unwrap()).collect();
        assert_eq!(kinds, ["Join", "tables", "little"], "{error}");
        queries.free();
        let error = others[1].try_grow(400).unwrap_err().to_string();
        assert!(error.contains("the largest are: Join 350 "), "{error}");
    }
}
