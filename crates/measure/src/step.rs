//! One measurement, and the group of those that share a node's memory.

use atoll_topology::NodeId;

use crate::options::MeasurementKind;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeasureStep {
    pub(crate) part: MeasurementKind,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
}

/// The steps that read one node's memory.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) node: NodeId,
    pub(crate) steps: Vec<MeasureStep>,
}
