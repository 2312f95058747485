//! The counts of a run, as input of the model.

use crate::Costs;

/// Counts of a run, in the order of the machine's nodes and links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flows {
    /// Counts of the cpus of each node.
    pub nodes: Vec<NodeFlow>,
    /// Bytes through each memory controller.
    pub controllers: Vec<ControllerFlow>,
    /// Bytes over each link.
    pub links: Vec<LinkFlow>,
}

/// Counts of the cpus of a node. Lists are by node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFlow {
    /// Cpus that worked concurrently; less than 1 and NaN count as 1.
    pub busy_cpus: f64,
    /// Instructions.
    pub instructions: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Hits in second-level caches.
    pub l2_hits: u64,
    /// Hits in last-level caches.
    pub llc_hits: u64,
    /// Lines from memory of each node.
    pub memory: Vec<u64>,
    /// Clean lines from other caches on each node.
    pub clean: Vec<u64>,
    /// Written lines from other caches on each node.
    pub dirty: Vec<u64>,
    /// Lines that were cached and had to be invalidated elsewhere.
    pub upgrades: u64,
    /// Page walks.
    pub dtlb_misses: u64,
}

/// Bytes through a memory controller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerFlow {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Bytes over a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkFlow {
    /// From its smaller node to its larger one.
    pub forward: u64,
    /// In the other direction.
    pub backward: u64,
}

/// Counts that do not fit the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found} counts of {what} for a machine with {expected}; use the counts and the machine of \
     the same run"
)]
pub struct FlowsError {
    /// What was counted.
    pub what: &'static str,
    /// Number of counts.
    pub found: usize,
    /// Expected number of counts.
    pub expected: usize,
}

impl Flows {
    /// Whether there is one count for each node and link of the machine.
    pub(crate) fn check(&self, costs: &Costs) -> Result<(), FlowsError> {
        let nodes = costs.nodes.len();
        check("nodes", self.nodes.len(), nodes)?;
        check("memory controllers", self.controllers.len(), nodes)?;
        check("links", self.links.len(), costs.links.len())?;
        self.nodes.iter().try_for_each(|node| {
            check("homes of lines", node.memory.len(), nodes)?;
            check("holders of clean lines", node.clean.len(), nodes)?;
            check("holders of written lines", node.dirty.len(), nodes)
        })
    }
}

fn check(what: &'static str, found: usize, expected: usize) -> Result<(), FlowsError> {
    if found == expected { Ok(()) } else { Err(FlowsError { what, found, expected }) }
}
