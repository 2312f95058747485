//! Machines described node by node, for shapes that a synthetic description cannot express: uneven
//! nodes, sparse numbers, nodes without memory or without cpus, custom distances.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::assemble::{self, CachePart, CpuPart, MachineParts, NodePart};
use crate::{Bytes, CpuId, Hidden, Limits, Machine, NodeId, PackageId, SET_NUMBER_MAX, Source};

/// Maximum number of nodes of a described machine: four times that of any Linux build (`NODES_SHIFT` is at most 10).
pub const NODES_MAX: u32 = 4096;
/// Maximum number of cpus of a described machine.
pub const CPUS_MAX: u32 = 65_535;
/// Level of the cache that a domain of a described machine shares.
pub(crate) const CACHE_LEVEL: u32 = 3;
/// Base page of x86-64, and of most arm64 systems.
pub const PAGE_SIZE: Bytes = Bytes(4096);
/// Transparent huge page over 4 KiB base pages.
pub const HUGE_PAGE_SIZE: Bytes = Bytes(2 << 20);

/// Why a described machine is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No node has a cpu.
    #[error("machine '{name}' has no cpu; give at least one node domains, cores and threads")]
    NoCpus {
        /// The machine.
        name: String,
    },
    /// Two nodes with the same number.
    #[error("machine '{name}' has node {node} twice; number its nodes differently")]
    NodeTwice {
        /// The machine.
        name: String,
        /// The number.
        node: NodeId,
    },
    /// A node with neither memory nor cpus, which no kernel would bring online.
    #[error("node {node} of machine '{name}' has neither memory nor cpus; give it either")]
    EmptyNode {
        /// The machine.
        name: String,
        /// The node.
        node: NodeId,
    },
    /// A node's number is out of bounds.
    #[error("machine '{name}' has a node {node}; the largest number is {SET_NUMBER_MAX}")]
    NodeNumber {
        /// The machine.
        name: String,
        /// The number.
        node: NodeId,
    },
    /// More nodes or cpus than a machine may have.
    #[error("machine '{name}' has {count} {what}; the most is {limit}")]
    TooMany {
        /// The machine.
        name: String,
        /// `nodes` or `cpus`.
        what: &'static str,
        /// The number it has.
        count: u64,
        /// The maximum.
        limit: u32,
    },
    /// The distances are not a square of one row and one column for each node.
    #[error("machine '{name}' has {nodes} nodes; its distances need {nodes} rows of {nodes}")]
    Distances {
        /// The machine.
        name: String,
        /// Number of nodes.
        nodes: usize,
    },
}

/// The order in which cpus are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// The threads of a core are consecutive: core 0 has cpus 0 and 1.
    #[default]
    CoreByCore,
    /// First threads of all cores first, as x86 firmware usually has it: with 8 cores, core 0 has
    /// cpus 0 and 8.
    ThreadsLast,
}

/// One node of a described machine: memory, and domains × cores × threads.
#[derive(Clone, Debug)]
pub struct NodeShape {
    id: NodeId,
    package: Option<PackageId>,
    memory: Bytes,
    domains: u32,
    cores: u32,
    threads: u32,
    cache: Option<Bytes>,
}

impl NodeShape {
    /// A node with cpus: `domains` with `cores` each with `threads` each. It has no memory until
    /// [`memory`](Self::memory) says so.
    pub fn with_cpus(id: NodeId, domains: u32, cores: u32, threads: u32) -> Self {
        Self { id, package: None, memory: Bytes(0), domains, cores, threads, cache: None }
    }

    /// A node without cpus, such as CXL memory.
    pub fn memory_only(id: NodeId, memory: Bytes) -> Self {
        Self::with_cpus(id, 0, 0, 0).memory(memory)
    }

    /// Sets its memory, all of it free.
    pub fn memory(self, memory: Bytes) -> Self {
        Self { memory, ..self }
    }

    /// Sets the package of its cpus; by default, each node is a package with the node's number.
    pub fn package(self, package: PackageId) -> Self {
        Self { package: Some(package), ..self }
    }

    /// Sets the size of each domain's last-level cache.
    pub fn cache(self, cache: Bytes) -> Self {
        Self { cache: Some(cache), ..self }
    }

    fn cpu_count(&self) -> u64 {
        let cores = u64::from(self.domains).saturating_mul(u64::from(self.cores));
        cores.saturating_mul(u64::from(self.threads))
    }

    fn is_empty(&self) -> bool {
        self.memory.0 == 0 && self.cpu_count() == 0
    }

    fn part(&self) -> NodePart {
        NodePart::new(self.id, self.memory)
    }
}

/// Builds a [`Machine`] from nodes.
#[derive(Clone, Debug)]
pub struct MachineBuilder {
    name: String,
    model: Option<String>,
    nodes: Vec<NodeShape>,
    distances: Option<Vec<Vec<u32>>>,
    numbering: Numbering,
}

/// Position of a cpu: node (index), domain within the node, core within the domain, thread within the core.
type CpuPosition = (usize, u32, u32, u32);

impl MachineBuilder {
    /// A machine without nodes.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            model: None,
            nodes: Vec::new(),
            distances: None,
            numbering: Numbering::default(),
        }
    }

    /// Adds a node.
    pub fn node(mut self, node: NodeShape) -> Self {
        self.nodes.push(node);
        self
    }

    /// Sets the model name of all packages.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the SLIT distances: one row (from) of one column (to) for each node, ordered by id.
    /// By default every other node has distance 20, marked as assumed.
    pub fn distances(self, distances: Vec<Vec<u32>>) -> Self {
        Self { distances: Some(distances), ..self }
    }

    /// Sets how cpus are numbered.
    pub fn numbering(self, numbering: Numbering) -> Self {
        Self { numbering, ..self }
    }

    /// Builds the machine. Cpus are numbered from 0, by node id.
    pub fn build(mut self) -> Result<Machine, BuildError> {
        self.nodes.sort_by_key(|node| node.id);
        self.check()?;
        let cpus = self.cpu_parts();
        let assumed = self.distances.is_none();
        let packages: BTreeSet<PackageId> = cpus.iter().map(|cpu| cpu.package).collect();
        let models = |model: &String| packages.iter().map(|&id| (id, model.clone())).collect();
        Ok(assemble::machine(MachineParts {
            source: Source::Synthetic,
            nodes: self.nodes.iter().map(NodeShape::part).collect(),
            cpus,
            models: self.model.as_ref().map_or_else(BTreeMap::new, models),
            memory_source: Source::Synthetic,
            memory_free_source: Source::Assumed,
            dies: Vec::new(),
            cpu_kinds: Vec::new(),
            caches_source: Source::Synthetic,
            caches: Vec::new(),
            links: Vec::new(),
            links_source: Source::Assumed,
            distances: match self.distances {
                Some(distances) => distances,
                None => assemble::distances_assumed(self.nodes.len()),
            },
            distances_source: if assumed { Source::Assumed } else { Source::Synthetic },
            hidden: Hidden::default(),
            limits: Limits::default(),
            pages_source: Source::Assumed,
            page_size: PAGE_SIZE,
            huge_page_size: Some(HUGE_PAGE_SIZE),
            assumptions: Vec::new(),
            name: self.name,
        }))
    }

    fn check(&self) -> Result<(), BuildError> {
        let name = || self.name.clone();
        check_count(&self.name, "nodes", self.nodes.len() as u64, NODES_MAX)?;
        if let Some(pair) = self.nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(BuildError::NodeTwice { name: name(), node: pair[0].id });
        }
        if let Some(node) = self.nodes.iter().find(|node| node.is_empty()) {
            return Err(BuildError::EmptyNode { name: name(), node: node.id });
        }
        if let Some(node) = self.nodes.iter().find(|node| node.id.0 > SET_NUMBER_MAX) {
            return Err(BuildError::NodeNumber { name: name(), node: node.id });
        }
        let cpus = self.nodes.iter().fold(0u64, |sum, node| sum.saturating_add(node.cpu_count()));
        check_count(&self.name, "cpus", cpus, CPUS_MAX)?;
        if cpus == 0 {
            return Err(BuildError::NoCpus { name: name() });
        }
        let nodes = self.nodes.len();
        let square =
            |rows: &Vec<Vec<u32>>| rows.len() == nodes && rows.iter().all(|row| row.len() == nodes);
        match &self.distances {
            Some(rows) if !square(rows) => Err(BuildError::Distances { name: name(), nodes }),
            _ => Ok(()),
        }
    }

    /// Positions of all cpus, ordered by number.
    fn places(&self) -> Vec<CpuPosition> {
        let mut places = Vec::new();
        let with_cpus = self.nodes.iter().enumerate().filter(|(_, node)| node.cpu_count() > 0);
        for (index, node) in with_cpus {
            for domain in 0..node.domains {
                for core in 0..node.cores {
                    places.extend((0..node.threads).map(|thread| (index, domain, core, thread)));
                }
            }
        }
        if self.numbering == Numbering::ThreadsLast {
            places.sort_by_key(|&(.., thread)| thread);
        }
        places
    }

    fn cpu_parts(&self) -> Vec<CpuPart> {
        let mut core_leaders = HashMap::new();
        let mut domain_leaders = HashMap::new();
        self.places()
            .into_iter()
            .zip(0..)
            .map(|((index, domain, core, _), number)| {
                let id = CpuId(number);
                let node = &self.nodes[index];
                CpuPart {
                    id,
                    package: node.package.unwrap_or(PackageId(node.id.0)),
                    node: node.id,
                    core: *core_leaders.entry((index, domain, core)).or_insert(id),
                    cache: CachePart {
                        leader: *domain_leaders.entry((index, domain)).or_insert(id),
                        level: Some(CACHE_LEVEL),
                        size: node.cache,
                    },
                }
            })
            .collect()
    }
}

fn check_count(name: &str, what: &'static str, count: u64, limit: u32) -> Result<(), BuildError> {
    if count > u64::from(limit) {
        return Err(BuildError::TooMany { name: name.to_owned(), what, count, limit });
    }
    Ok(())
}
