//! The naive shuffle (Li 2013, sections 3.1.1 and 4.3): every worker reads what the first one has for
//! it, then what the second one has, and so on. All are at one node's memory at a time.

use atoll_topology::NodeId;

use super::pull::Pull;
use super::reader::Reader;
use crate::shuffle::{Coordination, Moved, Order, Shuffle};

/// The shuffle that it is.
pub(super) const SHUFFLE: Shuffle =
    Shuffle { order: Order::Naive, moved: Moved::Pulled, coordination: Coordination::Loose };

/// An output that reads what was dealt.
pub(super) fn reader(output: usize, home: Option<NodeId>) -> Box<dyn Reader> {
    Box::new(Pull::new(SHUFFLE.order, output, home))
}
