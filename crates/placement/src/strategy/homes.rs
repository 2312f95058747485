//! Homes of a whole instance or partition: cpus of its threads and policy of its memory.

use atoll_topology::{CpuSet, Machine, NodeId, NodeSet};

use super::{
    Strategy, StrategyError, ahead, farthest, known, memory_ids, memory_node, nothing, subset_ids,
};
use crate::Policy;

/// Where one instance or partition runs and where its memory lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    /// Cpus its threads are bound to; `None` leaves them free.
    pub cpus: Option<CpuSet>,
    /// Its memory.
    pub memory: MemoryHome,
}

/// Where the memory of an instance lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryHome {
    /// One copy, under this policy. A single home is given as preferred; strict placement binds.
    Once(Policy),
    /// One copy on each of these nodes.
    CopyPerNode(NodeSet),
}

impl Strategy {
    /// Homes of the instance that belongs to `node`. A node without cpus lends its threads to the
    /// nearest node that has some.
    pub fn home_of(self, machine: &Machine, node: NodeId) -> Result<Homes, StrategyError> {
        let cpus = match self {
            Self::Aligned
            | Self::Ahead(_)
            | Self::Farthest
            | Self::Interleave
            | Self::Replicate => Some(cpus_of(machine, node)?),
            Self::Subset(k) => Some(subset_cpus(machine, k)?),
            Self::Default
            | Self::Spread
            | Self::Local
            | Self::Preferred(_)
            | Self::WeightedInterleave => None,
        };
        Ok(Homes { cpus, memory: self.memory_of(machine, node)? })
    }

    fn memory_of(self, machine: &Machine, node: NodeId) -> Result<MemoryHome, StrategyError> {
        known(machine, node)?;
        let all = || memory_ids(machine).map(NodeSet::from_iter);
        let policy = match self {
            Self::Default => Policy::Default,
            Self::Local => Policy::Local,
            Self::Aligned => Policy::Preferred(memory_node(machine, node)?),
            Self::Ahead(k) => Policy::Preferred(ahead(machine, node, k)?),
            Self::Farthest => Policy::Preferred(farthest(machine, node)?),
            Self::Preferred(home) => Policy::Preferred(memory_node(machine, home)?),
            Self::Interleave | Self::Spread => Policy::Interleave(all()?),
            Self::WeightedInterleave => Policy::WeightedInterleave(all()?),
            Self::Subset(k) => Policy::Interleave(NodeSet::from_iter(subset_ids(machine, k)?)),
            Self::Replicate => return Ok(MemoryHome::CopyPerNode(all()?)),
        };
        Ok(MemoryHome::Once(policy))
    }
}

fn cpus_of(machine: &Machine, node: NodeId) -> Result<CpuSet, StrategyError> {
    known(machine, node)?;
    let node = machine.nearest_with_cpus(node).ok_or_else(|| nothing(machine, "cpus"))?;
    Ok(node.cpus.clone())
}

fn subset_cpus(machine: &Machine, k: u32) -> Result<CpuSet, StrategyError> {
    let mut cpus = CpuSet::new();
    for node in subset_ids(machine, k)? {
        cpus = cpus.union(&cpus_of(machine, node)?);
    }
    Ok(cpus)
}
