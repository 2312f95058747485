//! Where the threads of a group may run now: on all cpus of the group, or on those that
//! [`Runtime::confine`](crate::Runtime::confine) leaves them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_placement::{Kernel, KernelError};
use atoll_sys::gettid;
use atoll_topology::CpuSet;
use parking_lot::Mutex;

use crate::Binding;

/// The threads of a group and the cpus available to them.
#[derive(Debug)]
pub(crate) struct GroupReach {
    own: CpuSet,
    kernel: Arc<dyn Kernel>,
    is_away: AtomicBool,
    threads: Mutex<ReachedThreads>,
}

#[derive(Debug)]
struct ReachedThreads {
    /// Cpus that the group may use now.
    given: CpuSet,
    /// By the kernel's thread number, the cpus of each thread while the group is not confined.
    seats: BTreeMap<u32, CpuSet>,
}

impl GroupReach {
    /// A group with these cpus.
    pub(crate) fn new(own: CpuSet, kernel: Arc<dyn Kernel>) -> Self {
        let threads = ReachedThreads { given: own.clone(), seats: BTreeMap::new() };
        Self { own, kernel, is_away: AtomicBool::new(false), threads: Mutex::new(threads) }
    }

    /// Binds the calling thread, which belongs on these cpus of the group.
    pub(crate) fn enter(&self, seat: &CpuSet) -> Binding {
        let mut threads = self.threads.lock();
        threads.seats.insert(gettid().cast_unsigned(), seat.clone());
        Binding::achieve(&*self.kernel, &within(seat, &threads.given))
    }

    /// Removes the calling thread, which is ending.
    pub(crate) fn leave(&self) {
        self.threads.lock().seats.remove(&gettid().cast_unsigned());
    }

    /// Binds all threads to these cpus, including later ones. Continues if the kernel refuses one, and returns the
    /// first refusal.
    pub(crate) fn give(&self, given: &CpuSet) -> Result<(), KernelError> {
        let mut threads = self.threads.lock();
        threads.given = given.clone();
        self.is_away.store(self.own.intersection(given).is_empty(), Ordering::Relaxed);
        let bind = |(thread, seat): (&u32, &CpuSet)| {
            self.kernel.bind_other(*thread, &within(seat, given)).err()
        };
        let refused: Vec<KernelError> = threads.seats.iter().filter_map(bind).collect();
        refused.into_iter().next().map_or(Ok(()), Err)
    }

    /// Cpus that the group may use now.
    pub(crate) fn given(&self) -> CpuSet {
        self.threads.lock().given.clone()
    }

    /// Whether none of these cpus belongs to the group.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// Its threads, by the kernel's numbers.
    pub(crate) fn threads(&self) -> Vec<u32> {
        self.threads.lock().seats.keys().copied().collect()
    }
}

/// The given cpus of a seat; all given cpus if the seat has none of them.
fn within(seat: &CpuSet, given: &CpuSet) -> CpuSet {
    let both = seat.intersection(given);
    if both.is_empty() { given.clone() } else { both }
}
