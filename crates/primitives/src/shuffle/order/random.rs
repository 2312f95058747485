//! Random orders.

use super::Turns;
use crate::hash;

/// For each worker a random permutation of its own.
#[derive(Debug)]
pub(super) struct RandomOrder {
    /// Workers × workers, row by row.
    others: Vec<u32>,
    workers: usize,
}

impl RandomOrder {
    /// Draws the orders of so many workers.
    pub(super) fn new(workers: usize, seed: u64) -> Self {
        let orders =
            (0..workers).flat_map(|worker| shuffled(workers, hash::then(seed, worker as u64)));
        Self { others: orders.collect(), workers }
    }
}

/// The numbers below `count` in a random order (Fisher and Yates).
fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    for left in (1..count).rev() {
        // A 64-bit draw over at most 8192 numbers: uneven by less than one in 2^50.
        let drawn = hash::then(seed, left as u64) % (left as u64 + 1);
        numbers.swap(left, drawn as usize);
    }
    numbers
}

impl Turns for RandomOrder {
    fn other(&self, worker: usize, step: usize) -> usize {
        self.others[worker * self.workers + step] as usize
    }
}
