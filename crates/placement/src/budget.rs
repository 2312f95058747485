//! A budget for memory, charged before allocating.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_topology::Bytes;

/// Grants memory before it is allocated. Charged by [`NodeBuffer`](crate::NodeBuffer) and by
/// primitives; in SQL it is DataFusion's memory pool.
pub trait Budget: Send + Sync + std::fmt::Debug {
    /// Takes this much from the budget, all or nothing.
    fn try_grow(&self, bytes: Bytes) -> Result<(), BudgetExceeded>;

    /// Gives this much back.
    fn shrink(&self, bytes: Bytes);
}

/// The budget has too little left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{asked} more memory requested, {available} of {limit} available; raise the memory limit or free tables"
)]
pub struct BudgetExceeded {
    /// What was asked for.
    pub asked: Bytes,
    /// What was left.
    pub available: Bytes,
    /// The whole budget.
    pub limit: Bytes,
}

/// A budget of its own, whose limit changes only when it is set.
#[derive(Debug)]
pub struct FixedBudget {
    limit: AtomicU64,
    used: AtomicU64,
}

impl FixedBudget {
    /// A budget of this much, all of it available.
    pub fn new(limit: Bytes) -> Self {
        Self { limit: AtomicU64::new(limit.0), used: AtomicU64::new(0) }
    }

    /// Sets another limit. What is granted stays so.
    pub fn set_limit(&self, limit: Bytes) {
        self.limit.store(limit.0, Ordering::Relaxed);
    }

    /// What is granted and not given back.
    pub fn used(&self) -> Bytes {
        Bytes(self.used.load(Ordering::Relaxed))
    }
}

impl Budget for FixedBudget {
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

/// A share of a budget, given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Option<Arc<dyn Budget>>,
    bytes: Bytes,
}

impl Charge {
    pub(crate) fn new(
        budget: Option<Arc<dyn Budget>>,
        bytes: Bytes,
    ) -> Result<Self, BudgetExceeded> {
        if let Some(budget) = &budget {
            budget.try_grow(bytes)?;
        }
        Ok(Self { budget, bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.shrink(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_budget_grants_up_to_its_limit_and_again_what_came_back() {
        let budget = FixedBudget::new(Bytes(100));
        budget.try_grow(Bytes(60)).unwrap();
        let error = budget.try_grow(Bytes(41)).unwrap_err();
        assert_eq!(
            error,
            BudgetExceeded { asked: Bytes(41), available: Bytes(40), limit: Bytes(100) }
        );
        assert_eq!(budget.used(), Bytes(60));
        budget.shrink(Bytes(60));
        budget.try_grow(Bytes(100)).unwrap();
    }

    #[test]
    fn a_fixed_budget_survives_absurd_numbers() {
        let budget = FixedBudget::new(Bytes(u64::MAX));
        budget.try_grow(Bytes(1)).unwrap();
        assert!(budget.try_grow(Bytes(u64::MAX)).is_err());
        budget.shrink(Bytes(u64::MAX));
        assert_eq!(budget.used(), Bytes(0));
    }

    #[test]
    fn threads_together_are_never_granted_more_than_the_limit() {
        let budget = FixedBudget::new(Bytes(1000));
        let granted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while budget.try_grow(Bytes(7)).is_ok() {
                        granted.fetch_add(7, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(granted.into_inner(), 994);
    }
}
