//! The naive order.

use super::Turns;

/// Every worker from the first to the last: the two nested loops of section 3.1.1.
#[derive(Debug)]
pub(super) struct Naive;

impl Turns for Naive {
    fn other(&self, _: usize, step: usize) -> usize {
        step
    }
}
