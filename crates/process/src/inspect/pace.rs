//! How much may be read in one look: watching must cost less than it is worth.
//!
//! Threads are read in turn until the look's share of cpu time is spent, the rest in the next looks.
//! What is read at once (the list of threads, the memory) is read again only when enough time has
//! passed that its cost, as measured the last time, stays below its share.

use std::time::Duration;

use atoll_sys::thread_cpu_time;

/// Time on cpus that a look may still spend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purse {
    end: Option<Duration>,
}

impl Purse {
    /// So much from now on; everything where there is no bound.
    pub(super) fn of(time: Option<Duration>) -> Self {
        Self { end: time.map(|time| thread_cpu_time() + time) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end.is_some_and(|end| thread_cpu_time() >= end)
    }
}

/// When something is to be read again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    next: Duration,
}

impl Pace {
    pub(super) fn is_due(&self, at: Duration) -> bool {
        at >= self.next
    }

    /// Does it, and sets the next time such that it takes `share` of a cpu on average.
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
