//! The budget of one look: watching must cost less than it is worth.
//!
//! Threads are read in turn until the look's cpu budget is spent, the rest in the next looks.
//! Data read as a whole (the list of threads, the memory) is read again only when enough time has
//! passed that its cost, as last measured, stays within its share.

use std::time::Duration;

use atoll_sys::thread_cpu_time;

/// Cpu time that a look may still spend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purse {
    end: Option<Duration>,
}

impl Purse {
    /// A budget from now on; unlimited if `None`.
    pub(super) fn new(time: Option<Duration>) -> Self {
        Self { end: time.map(|time| thread_cpu_time() + time) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end.is_some_and(|end| thread_cpu_time() >= end)
    }
}

/// When something is read again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    next: Duration,
}

impl Pace {
    pub(super) fn is_due(&self, at: Duration) -> bool {
        at >= self.next
    }

    /// Runs `work`, and schedules the next run so that it takes `share` of a cpu on average.
    pub(super) fn run<T>(
        &mut self,
        at: Duration,
        share: Option<f64>,
        work: impl FnOnce() -> T,
    ) -> T {
        let before = thread_cpu_time();
        let result = work();
        let cost = thread_cpu_time().saturating_sub(before);
        self.next = share.map_or(at, |share| at + cost.div_f64(share));
        result
    }
}
