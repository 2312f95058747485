//! One limit for tables and queries, and its enforcement.
//!
//! Tables and operators reserve what they take, and a [`SharedPool`] shares the limit out among them.
//! What operators reserve is an estimate, some of it too low (a list of texts counts 16 bytes for each
//! text in DataFusion 55.2, apache/datafusion#23393), and some of them reserve nothing at all (windows, scans of files,
//! what waits between operators). So there is a second bound, on what is really allocated: a [`Gauge`]
//! reads it where the process counts it, and beyond the limit and an allowance nothing is granted any
//! more. Operators that can spill do so then, others end with an error; scans ask too, since whatever
//! grows without a reservation grows by their rows.

mod batch_size;
mod fit;
mod pool;
mod session;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_placement::{Budget, BudgetExceeded};
use atoll_topology::{Bytes, Machine};
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;

pub(crate) use batch_size::{array_bytes, batch_bytes};
pub use fit::fit;
pub use pool::SharedPool;
pub use session::{SessionMemory, SessionPool};

/// Beyond the limit by this share and these bytes more: batches on their way between operators, and
/// what estimates are off by.
const ALLOWANCE_SHARE: usize = 8;
const ALLOWANCE_BYTES: usize = 32 << 20;

/// The arena keeps at most this share of the limit ready for the next buffers.
const KEPT_SHARE: u64 = 8;

/// Memory that tables and queries have really taken.
#[derive(Debug)]
pub struct Gauge {
    heap: Option<fn() -> Bytes>,
    /// The heap's size before the session began.
    heap_before: usize,
    /// Placed memory in use, which is not on the heap.
    placed: AtomicUsize,
    limit: usize,
}

impl Gauge {
    /// A gauge that reads `heap`; without it the limit is never exceeded.
    pub fn new(limit: usize, heap: Option<fn() -> Bytes>) -> Self {
        let heap_before = heap.map_or(0, |heap| heap().0 as usize);
        Self { heap, heap_before, placed: AtomicUsize::new(0), limit }
    }

    /// The gauge of the session that runs this query.
    pub(crate) fn from_context(context: &TaskContext) -> Option<Arc<Self>> {
        context.session_config().get_extension::<Self>()
    }

    /// The memory taken, if it exceeds the limit and its allowance.
    fn excess(&self) -> Option<TakenMemory> {
        let heap = ((self.heap?)().0 as usize).saturating_sub(self.heap_before);
        let placed = self.placed.load(Ordering::Relaxed);
        let most = self.limit.saturating_add(self.limit / ALLOWANCE_SHARE + ALLOWANCE_BYTES);
        let taken = TakenMemory { placed: Bytes(placed as u64), heap: Bytes(heap as u64) };
        (placed.saturating_add(heap) > most).then_some(taken)
    }

    /// Checks whether `who` may take more memory.
    ///
    /// # Errors
    /// Fails if more memory is already taken than the limit allows.
    pub fn check(&self, who: impl fmt::Display) -> Result<()> {
        match self.excess() {
            None => Ok(()),
            Some(TakenMemory { placed, heap }) => Err(resources_datafusion_err!(
                "out of memory in {who}: tables take {placed}, queries and rows outside of chunks {heap}, and \
                 the memory limit is {}",
                Bytes(self.limit as u64)
            )),
        }
    }
}

/// Memory taken by tables in placed memory, and on the heap.
struct TakenMemory {
    placed: Bytes,
    heap: Bytes,
}

/// The memory of placed tables, charged to the engine's pool.
#[derive(Debug)]
pub struct PoolBudget {
    reservation: Mutex<MemoryReservation>,
    pool: Arc<dyn MemoryPool>,
    gauge: Arc<Gauge>,
}

impl PoolBudget {
    /// A budget that shares `pool` with all queries.
    pub fn new(pool: &Arc<dyn MemoryPool>, gauge: &Arc<Gauge>) -> Self {
        let reservation = MemoryConsumer::new("tables").register(pool);
        let (pool, gauge) = (Arc::clone(pool), Arc::clone(gauge));
        Self { reservation: Mutex::new(reservation), pool, gauge }
    }

    fn available(&self) -> usize {
        match (self.gauge.excess(), self.pool.memory_limit()) {
            (Some(_), _) => 0,
            (None, MemoryLimit::Finite(limit)) => limit.saturating_sub(self.pool.reserved()),
            (None, _) => usize::MAX,
        }
    }
}

impl Budget for PoolBudget {
    fn try_grow(&self, bytes: Bytes) -> Result<(), BudgetExceeded> {
        let reservation = self.reservation.lock();
        reservation.try_grow(bytes.0 as usize).map_err(|_| BudgetExceeded {
            asked: bytes,
            available: Bytes(self.available() as u64),
            limit: Bytes(self.gauge.limit as u64),
        })?;
        self.gauge.placed.store(reservation.size(), Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: Bytes) {
        let reservation = self.reservation.lock();
        reservation.shrink((bytes.0 as usize).min(reservation.size()));
        self.gauge.placed.store(reservation.size(), Ordering::Relaxed);
    }
}

/// Most memory that the arena keeps ready on each node, where the limit allows less of it than the
/// arena would keep otherwise.
pub fn kept_max(machine: &Machine, limit: Bytes) -> Option<Bytes> {
    let nodes = machine.nodes_with_memory().count().max(1) as u64;
    let share = limit.0 / KEPT_SHARE / nodes;
    let smallest = machine.nodes_with_memory().map(|node| node.memory.0).min()?;
    (share < smallest / KEPT_SHARE).then_some(Bytes(share))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    const LIMIT: usize = 128 << 20;

    static HEAP: AtomicU64 = AtomicU64::new(10 << 20);

    fn heap() -> Bytes {
        Bytes(HEAP.load(Ordering::Relaxed))
    }

    #[test]
    fn nothing_is_granted_while_more_is_taken_than_the_limit_and_its_allowance() {
        let gauge = Arc::new(Gauge::new(LIMIT, Some(heap)));
        let pool: Arc<dyn MemoryPool> = Arc::new(SharedPool::new(LIMIT, Arc::clone(&gauge)));
        let budget = PoolBudget::new(&pool, &gauge);
        let query = MemoryConsumer::new("query").register(&pool);
        // Ten megabytes were on the heap before.
        HEAP.store((10 + 128 + 16 + 32) << 20, Ordering::Relaxed);
        query.try_grow(1 << 20).unwrap();
        budget.try_grow(Bytes(0)).unwrap();
        gauge.check("a scan").unwrap();
        HEAP.fetch_add(1, Ordering::Relaxed);
        let error = query.try_grow(0).unwrap_err().to_string();
        assert!(error.contains("query") && error.contains("128"), "{error}");
        assert!(gauge.check("a scan").unwrap_err().to_string().contains("a scan"));
        let refused = budget.try_grow(Bytes(1)).unwrap_err();
        assert_eq!((refused.available, refused.limit), (Bytes(0), Bytes(LIMIT as u64)));
        // The memory of tables counts too, and returned memory is granted again.
        HEAP.store(10 << 20, Ordering::Relaxed);
        budget.try_grow(Bytes(90 << 20)).unwrap();
        HEAP.store((10 + 87) << 20, Ordering::Relaxed);
        assert!(query.try_grow(1).is_err());
        budget.shrink(Bytes(90 << 20));
        query.try_grow(1).unwrap();
    }

    #[test]
    fn without_a_count_of_the_heap_reservations_alone_decide() {
        let gauge = Arc::new(Gauge::new(0, None));
        gauge.check("a scan").unwrap();
    }

    #[test]
    fn the_arena_keeps_no_more_than_a_share_of_the_limit() {
        let machine = Machine::synthetic("node:2 core:2").unwrap();
        assert_eq!(kept_max(&machine, Bytes(160)), Some(Bytes(10)));
        assert_eq!(kept_max(&machine, Bytes(u64::MAX >> 1)), None);
    }
}
