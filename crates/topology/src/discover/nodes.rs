//! Nodes and the home of each cpu: `/sys/devices/system/node/online`, `node*/cpulist` (on old kernels `cpumap`) and
//! the links `cpu*/node*`.
//!
//! A kernel built without NUMA has no `/sys/devices/system/node`: it is one node 0 with all cpus.
//!
//! A cpu has one home. If several nodes list it (`numa=fake` shows the cpus of a node in each of its parts), or none
//! does, the kernel's link from the cpu to its node decides, and then the smallest number. A node that only lists
//! cpus of other nodes is memory only, and near to the cpus it lists.

use std::collections::{BTreeMap, HashMap};

use super::files::{KernelFiles, cpu_file};
use crate::{CpuId, CpuSet, NodeId, NodeSet};

const DIRECTORY: &str = "/sys/devices/system/node";

/// Online nodes, ordered by id.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) online: Vec<OnlineNode>,
    /// Whether the kernel supports NUMA.
    pub(super) numa: bool,
    home: HashMap<CpuId, NodeId>,
}

/// An online node.
#[derive(Debug)]
pub(super) struct OnlineNode {
    pub(super) id: NodeId,
    /// The online cpus that it lists, whether or not it is their home.
    pub(super) listed: CpuSet,
}

impl Nodes {
    /// Reads the nodes; `cpus` are the online cpus.
    pub(super) fn read(files: &KernelFiles<'_>, cpus: &CpuSet) -> Self {
        let numa = files.exists(DIRECTORY);
        let mut online = if numa { online(files, cpus) } else { Vec::new() };
        if online.is_empty() {
            if numa {
                files.assume(DIRECTORY, "no node in it", "all cpus and all memory are node 0's");
            }
            let single = OnlineNode { id: NodeId(0), listed: cpus.clone() };
            return Self {
                home: homes(files, std::slice::from_ref(&single), cpus),
                online: vec![single],
                numa: false,
            };
        }
        online.sort_by_key(|node| node.id);
        Self { home: homes(files, &online, cpus), online, numa }
    }

    /// The node an online cpu lies on.
    pub(super) fn home(&self, cpu: CpuId) -> NodeId {
        self.home.get(&cpu).copied().unwrap_or(self.online[0].id)
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

/// Possible nodes of the machine; empty if unknown.
pub(super) fn possible(files: &KernelFiles<'_>) -> NodeSet {
    files.list_set(&format!("{DIRECTORY}/possible")).unwrap_or_default()
}

/// The nodes that `online` lists; without it, those that have a directory.
fn online(files: &KernelFiles<'_>, cpus: &CpuSet) -> Vec<OnlineNode> {
    let name = format!("{DIRECTORY}/online");
    let there = || files.numbered(DIRECTORY, "node").into_iter().map(NodeId).collect();
    let ids: NodeSet =
        files.list_set(&name).filter(|ids: &NodeSet| !ids.is_empty()).unwrap_or_else(there);
    let node = |id| OnlineNode { id, listed: listed(files, id).intersection(cpus) };
    ids.iter().map(node).collect()
}

fn listed(files: &KernelFiles<'_>, node: NodeId) -> CpuSet {
    let (list, mask) = (file(node, "cpulist"), file(node, "cpumap"));
    files.list_or_mask(&list, &mask).unwrap_or_else(|| {
        files.assume(&list, "no list of the node's cpus", "the node has none");
        CpuSet::new()
    })
}

fn homes(files: &KernelFiles<'_>, nodes: &[OnlineNode], cpus: &CpuSet) -> HashMap<CpuId, NodeId> {
    let mut claims: HashMap<CpuId, Vec<NodeId>> = HashMap::new();
    for node in nodes {
        for cpu in node.listed.iter() {
            claims.entry(cpu).or_default().push(node.id);
        }
    }
    let mut homes = HashMap::new();
    let mut doubtful: BTreeMap<(Vec<NodeId>, NodeId), CpuSet> = BTreeMap::new();
    for cpu in cpus.iter() {
        let claims = claims.remove(&cpu).unwrap_or_default();
        let home = match claims.as_slice() {
            [only] => *only,
            _ => linked(files, cpu, nodes).or(claims.first().copied()).unwrap_or(nodes[0].id),
        };
        homes.insert(cpu, home);
        if claims.len() != 1 {
            doubtful.entry((claims, home)).or_default().insert(cpu);
        }
    }
    for ((claims, home), cpus) in doubtful {
        let claims: NodeSet = claims.into_iter().collect();
        let found = match claims.is_empty() {
            true => format!("online cpus {cpus} are in no node's list"),
            false => format!("cpus {cpus} are in the lists of nodes {claims}"),
        };
        files.assume(DIRECTORY, found, format_args!("taken as cpus of node {home}"));
    }
    homes
}

/// The online node that the kernel links the cpu to.
fn linked(files: &KernelFiles<'_>, cpu: CpuId, nodes: &[OnlineNode]) -> Option<NodeId> {
    let ids = files.numbered(&cpu_file(cpu, ""), "node");
    ids.into_iter().map(NodeId).find(|id| nodes.iter().any(|node| node.id == *id))
}
