//! Why there is no simulation.

use atoll_topology::NodeId;

use crate::AssumptionError;

/// Why there is no simulation.
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
    /// A number of bytes that is none.
    #[error("invalid number of bytes {bytes}")]
    Bytes {
        /// The number.
        bytes: f64,
    },
    /// A measurement that no machine makes.
    #[error("{what} was measured as {value} GB/s; expected {expected}")]
    Observed {
        /// Of what.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it should be.
        expected: &'static str,
    },
    /// An assumption that no machine fulfils.
    #[error(transparent)]
    Assumption(#[from] AssumptionError),
}
