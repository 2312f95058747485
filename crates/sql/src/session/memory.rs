//! One limit for tables and queries.

use std::sync::Arc;

use atoll_placement::{Budget, BudgetExceeded};
use atoll_topology::Bytes;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;

/// The memory of placed tables, charged to the engine's pool.
#[derive(Debug)]
pub(crate) struct PoolBudget {
    reservation: Mutex<MemoryReservation>,
    pool: Arc<dyn MemoryPool>,
}

impl PoolBudget {
    /// A budget that shares `pool` with all queries.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("tables").register(pool);
        Self { reservation: Mutex::new(reservation), pool: Arc::clone(pool) }
    }
}

impl Budget for PoolBudget {
    fn try_grow(&self, bytes: Bytes) -> Result<(), BudgetExceeded> {
        self.reservation.lock().try_grow(bytes.0 as usize).map_err(|_| {
            let limit = match self.pool.memory_limit() {
                MemoryLimit::Finite(limit) => limit,
                _ => usize::MAX,
            };
            let available = limit.saturating_sub(self.pool.reserved());
            BudgetExceeded {
                asked: bytes,
                available: Bytes(available as u64),
                limit: Bytes(limit as u64),
            }
        })
    }

    fn shrink(&self, bytes: Bytes) {
        let reservation = self.reservation.lock();
        reservation.shrink((bytes.0 as usize).min(reservation.size()));
    }
}
