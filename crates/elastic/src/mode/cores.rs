//! The available cores: whole ones, with all their hardware threads, so that siblings never belong to different
//! targets.

use std::collections::{BTreeMap, BTreeSet};

use atoll_topology::{CoreId, CpuId, CpuSet, DomainId, Machine, NodeId};

/// A core and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticCore {
    /// Its number.
    pub id: CoreId,
    /// Its node.
    pub node: NodeId,
    /// Its domain.
    pub domain: DomainId,
    /// Its usable hardware threads.
    pub cpus: CpuSet,
}

/// The available cores, ordered by number, and the distances of their nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreTable {
    cores: BTreeMap<CoreId, ElasticCore>,
    distances: BTreeMap<(NodeId, NodeId), u32>,
}

/// Some of the cores of a table.
pub type CoreIds = BTreeSet<CoreId>;

impl CoreTable {
    /// The cores of a machine that have cpus in `allowed`, with these cpus only.
    pub fn new(machine: &Machine, allowed: &CpuSet) -> Self {
        let place = |core: &atoll_topology::Core| {
            let cpus = core.cpus.intersection(allowed);
            let cpu = machine.cpu(cpus.first()?)?;
            let core = ElasticCore { id: core.id, node: cpu.node, domain: cpu.domain, cpus };
            Some((core.id, core))
        };
        let nodes = || machine.nodes.iter().map(|node| node.id);
        let pairs = nodes().flat_map(|a| nodes().map(move |b| (a, b)));
        Self {
            cores: machine.cores.iter().filter_map(place).collect(),
            distances: pairs
                .filter_map(|pair| Some((pair, machine.distance(pair.0, pair.1)?)))
                .collect(),
        }
    }

    /// The core of that number.
    pub fn core(&self, id: CoreId) -> Option<&ElasticCore> {
        self.cores.get(&id)
    }

    /// All cores, ordered by number.
    pub fn iter(&self) -> impl Iterator<Item = &ElasticCore> {
        self.cores.values()
    }

    /// The numbers of all cores.
    pub fn ids(&self) -> CoreIds {
        self.cores.keys().copied().collect()
    }

    /// The number of cores.
    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }

    /// The nodes that have cores, ordered by number.
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.iter().map(|core| core.node).collect()
    }

    /// The cores of a node.
    pub fn of_node(&self, node: NodeId) -> impl Iterator<Item = &ElasticCore> {
        self.iter().filter(move |core| core.node == node)
    }

    /// The cpus of cores.
    pub fn cpus(&self, ids: &CoreIds) -> CpuSet {
        ids.iter().filter_map(|id| self.core(*id)).flat_map(|core| core.cpus.iter()).collect()
    }

    /// The core of a cpu.
    pub fn of_cpu(&self, cpu: CpuId) -> Option<&ElasticCore> {
        self.iter().find(|core| core.cpus.contains(cpu))
    }

    /// The cores with a cpu in a set.
    pub fn within(&self, cpus: &CpuSet) -> CoreIds {
        let has = |core: &&ElasticCore| !core.cpus.intersection(cpus).is_empty();
        self.iter().filter(has).map(|core| core.id).collect()
    }

    /// Distance of two nodes; the maximum if unknown.
    pub fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let known = self.distances.get(&(from, to)).copied();
        known.unwrap_or(if from == to { 10 } else { u32::MAX })
    }

    /// How many of some cores are on a node.
    pub fn count_on(&self, ids: &CoreIds, node: NodeId) -> usize {
        ids.iter().filter_map(|id| self.core(*id)).filter(|core| core.node == node).count()
    }

    /// How many of some cores are in a domain.
    pub fn count_in(&self, ids: &CoreIds, domain: DomainId) -> usize {
        ids.iter().filter_map(|id| self.core(*id)).filter(|core| core.domain == domain).count()
    }

    /// The node with most of some cores; the first of several.
    pub fn main_node(&self, ids: &CoreIds) -> Option<NodeId> {
        let nodes = ids.iter().filter_map(|id| self.core(*id)).map(|core| core.node);
        let nodes: BTreeSet<NodeId> = nodes.collect();
        nodes.into_iter().min_by_key(|node| (usize::MAX - self.count_on(ids, *node), *node))
    }
}
