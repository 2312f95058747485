//! The naive shuffle (Li 2013, sections 3.1.1 and 4.3): every worker reads its rows from the first worker, then from
//! the second, and so on. All of them use one node's memory at a time.

use atoll_topology::NodeId;

use super::pull::{Pull, PullOrder};
use crate::aggregate::reader::Reader;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// Its shuffle.
pub(in crate::aggregate) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Naive, moved: Moved::Pulled, coordination: Coordination::Loose };

/// The order in which an output reads.
#[derive(Debug)]
pub(in crate::aggregate) struct Naive;

impl PullOrder for Naive {
    fn input_at(&self, step: usize, _output: usize) -> usize {
        step
    }
}

/// An output that reads the partitioned rows.
pub(in crate::aggregate) fn reader(output: usize, home: Option<NodeId>) -> Box<dyn Reader> {
    Box::new(Pull::new(Naive, output, home))
}
