//! The orders in which a worker visits all others, itself included.

mod naive;
mod random;
mod ring;

use std::fmt;

use naive::NaiveOrder;
use random::RandomOrder;
pub(super) use ring::{Circle, RingOrder};

/// The order in which each worker visits all others, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Every worker from the first to the last: all access one worker's memory at a time (section 3.1.1).
    Naive,
    /// Each worker in a random order of its own, drawn from this seed (section 4.1.1).
    Random(u64),
    /// Around a circle, each worker one place ahead of the one before: all are at different workers, and the workers of
    /// a node at different nodes (section 3.1.2).
    Ring,
}

impl Order {
    /// Its name on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Random(_) => "random",
            Self::Ring => "ring",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An order for a number of workers.
pub(super) trait Turns: fmt::Debug + Send + Sync {
    /// The partner of a worker in a step. For each worker it is a permutation of all workers over the steps.
    fn other(&self, worker: usize, step: usize) -> usize;
}

/// The turns that do not depend on the machine; None for a ring.
pub(super) fn without_machine(order: Order, workers: usize) -> Option<Box<dyn Turns>> {
    match order {
        Order::Naive => Some(Box::new(NaiveOrder)),
        Order::Random(seed) => Some(Box::new(RandomOrder::new(workers, seed))),
        Order::Ring => None,
    }
}
