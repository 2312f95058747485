//! Nodes and the home of each cpu: `/sys/devices/system/node/online` and `node*/cpulist`.
//!
//! A kernel built without NUMA has no `/sys/devices/system/node`: it is one node 0 with all cpus.

use std::collections::HashMap;

use atoll_sys::Root;

use super::read;
use crate::discover::DiscoverError;
use crate::{CpuId, CpuSet, NodeId, NodeSet};

const DIRECTORY: &str = "/sys/devices/system/node";

/// Nodes that are online, ordered by id.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) online: Vec<OnlineNode>,
    /// Whether the kernel knows NUMA.
    pub(super) numa: bool,
    home: HashMap<CpuId, NodeId>,
}

/// A node that is online.
#[derive(Debug)]
pub(super) struct OnlineNode {
    pub(super) id: NodeId,
    /// Its online cpus.
    pub(super) cpus: CpuSet,
}

impl Nodes {
    /// Reads the nodes; `cpus` are the cpus online.
    pub(super) fn read(root: &Root, cpus: &CpuSet) -> Result<Self, DiscoverError> {
        let numa = root.exists(DIRECTORY);
        let online = if numa { online(root, cpus)? } else { vec![single(cpus)] };
        let home = homes(root, &online)?;
        Ok(Self { online, numa, home })
    }

    /// The node a cpu lies on.
    pub(super) fn home(&self, root: &Root, cpu: CpuId) -> Result<NodeId, DiscoverError> {
        self.home.get(&cpu).copied().ok_or_else(|| {
            let contradiction = format!("cpu {cpu} is online but in no node's cpulist");
            read::inconsistent(root, DIRECTORY, contradiction)
        })
    }

    /// Whether the cpu lies on the node.
    pub(super) fn is_home(&self, node: NodeId, cpu: CpuId) -> bool {
        self.home.get(&cpu) == Some(&node)
    }
}

/// A node's file, by its name.
pub(super) fn file(node: NodeId, name: &str) -> String {
    format!("{DIRECTORY}/node{node}/{name}")
}

fn single(cpus: &CpuSet) -> OnlineNode {
    OnlineNode { id: NodeId(0), cpus: cpus.clone() }
}

fn online(root: &Root, cpus: &CpuSet) -> Result<Vec<OnlineNode>, DiscoverError> {
    let ids: NodeSet = read::set(root, &format!("{DIRECTORY}/online"))?;
    ids.iter()
        .map(|id| {
            let listed: CpuSet = read::set(root, &file(id, "cpulist"))?;
            Ok(OnlineNode { id, cpus: listed.intersection(cpus) })
        })
        .collect()
}

fn homes(root: &Root, nodes: &[OnlineNode]) -> Result<HashMap<CpuId, NodeId>, DiscoverError> {
    let mut homes = HashMap::new();
    for node in nodes {
        for cpu in node.cpus.iter() {
            if let Some(other) = homes.insert(cpu, node.id) {
                let contradiction = format!("cpu {cpu} is also in the cpulist of node {other}");
                return Err(read::inconsistent(root, &file(node.id, "cpulist"), contradiction));
            }
        }
    }
    Ok(homes)
}
