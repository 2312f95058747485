//! The variants that the flags ask for.

use atoll_primitives::shuffle::{Coordination, Moved, Order, Shuffle};
use clap::ValueEnum;

use super::ShuffleArgs;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OrderName {
    /// Every worker from the first to the last
    Naive,
    /// Each worker in its own random order
    Random,
    /// Round a ring, each worker from a different position
    Ring,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MovedName {
    /// Pieces, read by the worker that gets them
    Pulled,
    /// Pieces, written by the worker that has them
    Pushed,
    /// Threads, which migrate to the pieces
    Threads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CoordinationName {
    /// A step starts when the one before has ended
    Tight,
    /// No waiting between steps
    Loose,
}

impl ShuffleArgs {
    /// Every combination of the requested values.
    pub(super) fn shuffles(&self) -> Vec<Shuffle> {
        let orders = all(&self.order).map(|name| match name {
            OrderName::Naive => Order::Naive,
            OrderName::Random => Order::Random(self.seed),
            OrderName::Ring => Order::Ring,
        });
        let of_order = |order| {
            all(&self.moved).flat_map(move |moved| {
                all(&self.coordination).map(move |coordination| Shuffle {
                    order,
                    moved: match moved {
                        MovedName::Pulled => Moved::Pulled,
                        MovedName::Pushed => Moved::Pushed,
                        MovedName::Threads => Moved::Threads,
                    },
                    coordination: match coordination {
                        CoordinationName::Tight => Coordination::Tight,
                        CoordinationName::Loose => Coordination::Loose,
                    },
                })
            })
        };
        orders.flat_map(of_order).collect()
    }
}

/// The requested values without duplicates; all values if none was requested.
fn all<T: ValueEnum + PartialEq + Copy + 'static>(asked: &[T]) -> impl Iterator<Item = T> {
    let asked = asked.to_vec();
    let is_asked = move |name: &T| asked.is_empty() || asked.contains(name);
    T::value_variants().iter().copied().filter(is_asked)
}

/// Its name in tables and documents.
pub(super) fn coordination(shuffle: Shuffle) -> &'static str {
    match shuffle.coordination {
        Coordination::Tight => "tight",
        Coordination::Loose => "loose",
    }
}
