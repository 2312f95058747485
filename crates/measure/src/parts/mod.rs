//! The measurements, one file each. Each takes placed memory and returns facts.

pub(crate) mod bandwidth;
pub(crate) mod core_to_core;
pub(crate) mod cross_traffic;
pub(crate) mod latency;
pub(crate) mod loaded;

use atoll_placement::Kernel;
use atoll_topology::{Machine, Node, NodeId, Subject};

use crate::options::MeasureOptions;

/// The context of a path's measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathContext<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) kernel: &'a dyn Kernel,
    pub(crate) options: &'a MeasureOptions,
    /// The node of the cpus that read.
    pub(crate) from: &'a Node,
    /// The home of the memory.
    pub(crate) to: NodeId,
}

impl PathContext<'_> {
    pub(crate) fn subject(&self) -> Subject {
        Subject::Path { from: self.from.id, to: self.to }
    }
}
