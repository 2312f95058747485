//! The place of a pool thread.

use std::cell::Cell;

use crate::WorkerId;

/// Place of a thread in its runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerSeat {
    /// The runtime, by [`Runtime`](crate::Runtime)'s number in this process.
    pub(crate) runtime: u64,
    /// Position of its group in the runtime.
    pub(crate) group: usize,
    /// Its worker; `None` for a thread that serves `spawn_blocking`.
    pub(crate) worker: Option<WorkerId>,
    /// Whether its binding was verified: then its node is its group's.
    pub(crate) bound: bool,
}

thread_local! {
    static SEAT: Cell<Option<WorkerSeat>> = const { Cell::new(None) };
}

impl WorkerSeat {
    /// Seat of the calling thread in the runtime of that number.
    pub(crate) fn here(runtime: u64) -> Option<WorkerSeat> {
        SEAT.get().filter(|seat| seat.runtime == runtime)
    }

    /// Makes this the calling thread's seat for the rest of its life.
    pub(crate) fn take(self) {
        SEAT.set(Some(self));
    }
}
