//! Makes tests independent of the scheduler.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};

use atoll_placement::{Budget, BudgetExceeded};
use atoll_topology::Bytes;

/// An unlimited budget that makes workers wait for each other at their first allocation: with few cpus one worker may
/// be so quick that it takes all rows before the others wake.
#[derive(Debug)]
pub(super) struct Meeting {
    workers: usize,
    /// Threads that have allocated; the creator of the meeting is not a worker.
    came: Mutex<HashSet<ThreadId>>,
    all: Condvar,
}

impl Meeting {
    pub(super) fn for_workers(workers: usize) -> Arc<dyn Budget> {
        let maker = HashSet::from([thread::current().id()]);
        Arc::new(Self { workers, came: Mutex::new(maker), all: Condvar::new() })
    }
}

impl Budget for Meeting {
    fn try_grow(&self, _: Bytes) -> Result<(), BudgetExceeded> {
        let mut came = self.came.lock().expect("no thread has panicked here");
        if came.insert(thread::current().id()) {
            self.all.notify_all();
            let is_early = |came: &mut HashSet<ThreadId>| came.len() <= self.workers;
            drop(self.all.wait_while(came, is_early).expect("no thread has panicked here"));
        }
        Ok(())
    }

    fn shrink(&self, _: Bytes) {}
}
