//! The naive order.

use super::Turns;

/// Every worker from the first to the last: the two nested loops of section 3.1.1.
#[derive(Debug)]
pub(super) struct NaiveOrder;

impl Turns for NaiveOrder {
    fn other(&self, _: usize, step: usize) -> usize {
        step
    }
}
