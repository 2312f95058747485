//! The ring shuffle (Li 2013, sections 3.1.2 and 4.3): workers read their rows from all others around a circle, each
//! one place ahead of the one before, so that they spread over all nodes' memory.

use atoll_topology::NodeId;

use super::pull::{Pull, PullOrder};
use crate::aggregate::reader::Reader;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// Its shuffle.
pub(in crate::aggregate) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Ring, moved: Moved::Pulled, coordination: Coordination::Loose };

/// The order in which an output reads.
#[derive(Debug)]
pub(in crate::aggregate) struct Ring;

impl PullOrder for Ring {
    fn input_at(&self, step: usize, output: usize) -> usize {
        output + step
    }
}

/// An output that reads the partitioned rows.
pub(in crate::aggregate) fn reader(output: usize, home: Option<NodeId>) -> Box<dyn Reader> {
    Box::new(Pull::new(Ring, output, home))
}
