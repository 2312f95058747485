//! A budget for memory: who allocates asks first.

use atoll_topology::Bytes;

/// Grants memory before it is allocated. Charged by [`NodeBuffer`](crate::NodeBuffer) and by
/// primitives; in SQL it is DataFusion's memory pool.
pub trait Budget: Send + Sync + std::fmt::Debug {
    /// Takes this much from the budget, all or nothing.
    fn try_grow(&self, bytes: Bytes) -> Result<(), BudgetExceeded>;

    /// Gives this much back.
    fn shrink(&self, bytes: Bytes);
}

/// The budget does not hold what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{asked} more memory asked, {available} of {limit} available; raise the memory limit or free tables")]
pub struct BudgetExceeded {
    /// What was asked for.
    pub asked: Bytes,
    /// What was left.
    pub available: Bytes,
    /// The whole budget.
    pub limit: Bytes,
}
