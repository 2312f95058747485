//! A memory limit that may change.

use std::sync::atomic::{AtomicU64, Ordering};

use atoll_placement::{Budget, BudgetExceeded};
use atoll_topology::Bytes;

/// What a context's calls and results may hold together.
#[derive(Debug)]
pub(crate) struct ContextBudget {
    limit: AtomicU64,
    used: AtomicU64,
}

impl ContextBudget {
    /// No limit.
    pub(crate) fn none() -> Self {
        Self { limit: AtomicU64::new(u64::MAX), used: AtomicU64::new(0) }
    }

    /// Another limit; 0: none. What is granted stays so.
    pub(crate) fn set(&self, bytes: u64) {
        self.limit.store(if bytes == 0 { u64::MAX } else { bytes }, Ordering::Relaxed);
    }

    /// What is granted and not given back.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

impl Budget for ContextBudget {
    fn try_grow(&self, bytes: Bytes) -> Result<(), BudgetExceeded> {
        let limit = self.limit.load(Ordering::Relaxed);
        let grown = |used: u64| used.checked_add(bytes.0).filter(|sum| *sum <= limit);
        // Relaxed: the sum alone matters, no other memory is published through it.
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(_) => Ok(()),
            Err(used) => Err(BudgetExceeded {
                asked: bytes,
                available: Bytes(limit.saturating_sub(used)),
                limit: Bytes(limit),
            }),
        }
    }

    fn shrink(&self, bytes: Bytes) {
        let shrunk = |used: u64| Some(used.saturating_sub(bytes.0));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrunk);
    }
}
