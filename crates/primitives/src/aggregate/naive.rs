//! The naive shuffle (Li 2013, sections 3.1.1 and 4.3): every worker reads what the first one has for
//! it, then what the second one has, and so on. All are at one node's memory at a time.

use atoll_topology::NodeId;

use super::pull::{Pull, PullOrder};
use super::reader::Reader;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// The shuffle that it is.
pub(super) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Naive, moved: Moved::Pulled, coordination: Coordination::Loose };

/// The order in which an output reads.
#[derive(Debug)]
pub(super) struct Naive;

impl PullOrder for Naive {
    fn input_at(&self, step: usize, _output: usize) -> usize {
        step
    }
}

/// An output that reads what was dealt.
pub(super) fn reader(output: usize, home: Option<NodeId>) -> Box<dyn Reader> {
    Box::new(Pull::new(Naive, output, home))
}
