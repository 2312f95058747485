//! Errors of the simulation.

use atoll_topology::NodeId;

use crate::AssumptionError;

/// Why a simulation failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// Nodes between which no links are declared.
    #[error("no route leads from node {from} to node {to}; declare the machine's links")]
    NoRoute {
        /// From.
        from: NodeId,
        /// To.
        to: NodeId,
    },
    /// An access by or to a node that the machine does not have.
    #[error("the machine has no node {node}")]
    NoSuchNode {
        /// The node.
        node: NodeId,
    },
    /// An invalid number of bytes.
    #[error("invalid number of bytes {bytes}")]
    Bytes {
        /// The number.
        bytes: f64,
    },
    /// An impossible measurement.
    #[error("{what} was measured as {value} GB/s; expected {expected}")]
    Observed {
        /// Its name.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The expected value.
        expected: &'static str,
    },
    /// An assumption outside of its range.
    #[error(transparent)]
    Assumption(#[from] AssumptionError),
}
