//! The node of a cpu, including cpus that this process may not use itself.

use std::collections::{BTreeMap, HashMap};

use atoll_sys::Root;
use atoll_topology::{CpuId, CpuSet, Machine, NodeId, NodeSet};

const NODES: &str = "/sys/devices/system/node";

/// Nodes and their cpus. An inspected process may run where the inspecting one may not, so a
/// [`Machine`], which is limited to what its own process may use, is not enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMap {
    nodes: HashMap<CpuId, NodeId>,
    cpus: BTreeMap<NodeId, CpuSet>,
    memory: NodeSet,
}

impl NodeMap {
    /// The machine's nodes, and further nodes in sysfs.
    pub fn read(root: &Root, machine: &Machine) -> Self {
        let mut map = Self::of_machine(machine);
        for node in online(root) {
            map.cpus.entry(node).or_default();
            let text = root.read_text(&format!("{NODES}/node{node}/cpulist")).unwrap_or_default();
            for cpu in CpuSet::parse(&text).unwrap_or_default().iter() {
                map.insert(cpu, node);
            }
        }
        map.memory = map.memory.union(&set(root, "has_memory"));
        map
    }

    /// The machine's nodes.
    pub fn of_machine(machine: &Machine) -> Self {
        let mut map = Self::default();
        for node in &machine.nodes {
            map.cpus.entry(node.id).or_default();
            if node.memory.0 > 0 {
                map.memory.insert(node.id);
            }
        }
        for cpu in &machine.cpus {
            map.insert(cpu.id, cpu.node);
        }
        map
    }

    fn insert(&mut self, cpu: CpuId, node: NodeId) {
        self.nodes.insert(cpu, node);
        self.cpus.entry(node).or_default().insert(cpu);
    }

    /// The node of a cpu.
    pub fn node(&self, cpu: CpuId) -> Option<NodeId> {
        self.nodes.get(&cpu).copied()
    }

    /// Every node with its cpus.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &CpuSet)> {
        self.cpus.iter().map(|(node, cpus)| (*node, cpus))
    }

    /// The nodes that have memory.
    pub fn with_memory(&self) -> &NodeSet {
        &self.memory
    }

    /// The nodes with a cpu in a set.
    pub fn nodes_of(&self, cpus: &CpuSet) -> NodeSet {
        cpus.iter().filter_map(|cpu| self.node(cpu)).collect()
    }
}

fn online(root: &Root) -> Vec<NodeId> {
    set(root, "online").iter().collect()
}

fn set(root: &Root, name: &str) -> NodeSet {
    let text = root.read_text(&format!("{NODES}/{name}")).unwrap_or_default();
    NodeSet::parse(&text).unwrap_or_default()
}
