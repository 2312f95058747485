//! Threads of the caller, for work that can be done in parallel pieces: the store starts none.

use parking_lot::Mutex;

/// Threads that do pieces of work.
pub trait Workers: Sync {
    /// Does the work of all numbers below `count`, in any order, and returns when everything is done.
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// Only the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneThread;

impl Workers for OneThread {
    fn run(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }
}

/// Applies a function to each item; returns the results in the order of the items.
pub fn map<T: Send, R: Send>(
    workers: &dyn Workers,
    items: Vec<T>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
    workers.run(items.len(), &|at| {
        let item = items[at].lock().0.take();
        let result = item.map(&run);
        items[at].lock().1 = result;
    });
    items.into_iter().filter_map(|item| item.into_inner().1).collect()
}
