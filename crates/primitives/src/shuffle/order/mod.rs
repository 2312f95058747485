//! The orders in which a worker takes its turns with all others, itself included.

mod naive;
mod random;
mod ring;

use std::fmt;

use naive::NaiveOrder;
use random::RandomOrder;
pub(super) use ring::{Circle, RingOrder};

/// In which order each worker takes its turns with all others, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Every worker from the first to the last: all are at one worker's memory at a time
    /// (section 3.1.1).
    Naive,
    /// Each worker in a random order of its own, drawn from this seed (section 4.1.1).
    Random(u64),
    /// Round a circle, each worker one place ahead of the one before: all are at different workers,
    /// and the workers of a node at different nodes (section 3.1.2).
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

/// What an order comes to for a number of workers.
pub(super) trait Turns: fmt::Debug + Send + Sync {
    /// With whom a worker has its turn in a step. For each worker a permutation of all workers over
    /// the steps.
    fn other(&self, worker: usize, step: usize) -> usize;
}

/// The turns that need no machine; none for a ring.
pub(super) fn without_machine(order: Order, workers: usize) -> Option<Box<dyn Turns>> {
    match order {
        Order::Naive => Some(Box::new(NaiveOrder)),
        Order::Random(seed) => Some(Box::new(RandomOrder::new(workers, seed))),
        Order::Ring => None,
    }
}
