//! `Machine`: package ⊃ node ⊃ domain ⊃ core ⊃ cpu, with memory and distances.

use crate::{Bytes, CoreId, CpuId, CpuSet, DomainId, LinkId, NodeId, NodeSet, PackageId};

/// The source of a fact, in order of trust (best first).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Measured on the machine itself.
    Measured,
    /// Read at one moment and changing all the time, such as free memory.
    Observed,
    /// Read from sysfs or procfs.
    Discovered,
    /// Written down in a machine file.
    Declared,
    /// From a synthetic description such as `node:4 core:2 pu:1`.
    Synthetic,
    /// Assumed by default.
    Assumed,
}

impl Source {
    /// Every source, the most trusted first.
    pub const ALL: [Self; 6] = [
        Self::Measured,
        Self::Observed,
        Self::Discovered,
        Self::Declared,
        Self::Synthetic,
        Self::Assumed,
    ];

    /// Its name in files, JSON and SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Observed => "observed",
            Self::Discovered => "discovered",
            Self::Declared => "declared",
            Self::Synthetic => "synthetic",
            Self::Assumed => "assumed",
        }
    }

    /// Finds a source by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// A machine, restricted to what this process may use: cpus outside the affinity mask or cpuset and nodes
/// outside `Mems_allowed` are left out. Every list is ordered by id.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Machine {
    /// Host name, file name or synthetic description.
    pub name: String,
    /// Source of the structure.
    pub source: Source,
    /// Packages with at least one usable cpu.
    pub packages: Vec<Package>,
    /// Nodes with usable memory, usable cpus or both.
    pub nodes: Vec<Node>,
    /// Domains with at least one usable cpu.
    pub domains: Vec<Domain>,
    /// Cores with at least one usable cpu.
    pub cores: Vec<Core>,
    /// Usable cpus.
    pub cpus: Vec<Cpu>,
    /// Dies of packages that have several, ordered by package and number.
    pub dies: Vec<Die>,
    /// Kinds of cpus if there are several, such as P and E cores.
    pub cpu_kinds: Vec<CpuKind>,
    /// Caches of every level, ordered by level, kind and smallest cpu; empty if unknown. The last-level caches are also
    /// in the [`domains`](Self::domains).
    pub caches: Vec<Cache>,
    /// Interconnect links between nodes, ordered by id; empty if unknown.
    pub links: Vec<Link>,
    /// Source of the links.
    pub links_source: Source,
    /// SLIT distances, row (from) major in the order of `nodes`; 10 is local.
    pub distances: Vec<Vec<u32>>,
    /// Source of the distances.
    pub distances_source: Source,
    /// Source of the memory sizes.
    pub memory_source: Source,
    /// Source of the free memory sizes: observed if they were read, assumed if they are unknown and all memory counts
    /// as free.
    pub memory_free_source: Source,
    /// Source of the domains' caches; assumed if a node's cpus count as one domain.
    pub caches_source: Source,
    /// Limits of the process's control groups.
    pub limits: Limits,
    /// What the machine has but the process may not use.
    pub hidden: Hidden,
    /// Source of the page sizes.
    pub pages_source: Source,
    /// Size of a base page.
    pub page_size: Bytes,
    /// Size of a transparent huge page; None if the kernel lacks them or has them disabled.
    pub huge_page_size: Option<Bytes>,
    /// What was missing or wrong in the machine's files, and what is assumed instead: one line each, starting with the
    /// file. Empty if all files are complete.
    pub assumptions: Vec<String>,
}

/// Cpus and nodes that exist but are outside the affinity mask or the cpuset.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Hidden {
    /// Online cpus this process may not run on.
    pub cpus: CpuSet,
    /// Nodes this process may not allocate from.
    pub nodes: NodeSet,
}

/// Limits of the process's control groups, shared by all their members.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Limits {
    /// Memory, if the limit is below the machine's.
    pub memory: Option<MemoryLimit>,
    /// Cpu time.
    pub cpu_time: Option<CpuTimeLimit>,
}

/// The smallest memory limit from the process's control group up to the root.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct MemoryLimit {
    /// Memory granted.
    pub bytes: Bytes,
    /// File that says so.
    pub file: String,
}

/// The smallest limit of cpu time from the process's control group up to the root.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CpuTimeLimit {
    /// Cpus' worth of time granted: quota divided by period.
    pub cpus: f64,
    /// File that says so.
    pub file: String,
}

/// A package (socket).
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Package {
    /// The kernel's number.
    pub id: PackageId,
    /// Model name of its cpus, where known.
    pub model: Option<String>,
    /// Its usable cpus.
    pub cpus: CpuSet,
}

/// A die of a package that has several.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Die {
    /// The kernel's number, which may repeat from package to package.
    pub id: u32,
    /// Its package.
    pub package: PackageId,
    /// Its usable cpus.
    pub cpus: CpuSet,
}

/// Cpus that differ from the other cpus of the machine in speed.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CpuKind {
    /// Derived from the kernel's files: `P cores`, `E cores`, `capacity 446`, `up to 2.8 GHz`.
    pub name: String,
    /// Its usable cpus.
    pub cpus: CpuSet,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Node {
    /// The kernel's number.
    pub id: NodeId,
    /// Package of its cpus; None for a node without cpus or over several packages.
    pub package: Option<PackageId>,
    /// Its usable cpus; empty for a memory-only node.
    pub cpus: CpuSet,
    /// The usable cpus nearest to a memory-only node; empty if unknown.
    pub near: CpuSet,
    /// Total memory; zero for a node with only cpus, or whose memory may not be used.
    pub memory: Bytes,
    /// Memory free when read.
    pub memory_free: Bytes,
    /// Pools of explicit huge pages, ordered by size.
    pub huge_pages: Vec<HugePages>,
    /// Caches in front of its memory, nearest to the cpus first, as reported by the firmware (HMAT).
    pub side_caches: Vec<SideCache>,
}

/// A cache in front of a node's memory, such as high-bandwidth memory in cache mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SideCache {
    /// Level, 1 nearest to the memory, as the kernel numbers them.
    pub level: u32,
    /// Size in all.
    pub size: Bytes,
    /// Size of a line, where known.
    pub line: Option<Bytes>,
}

/// A node's pool of explicit huge pages (hugetlbfs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HugePages {
    /// Size of one page.
    pub size: Bytes,
    /// Pages in the pool.
    pub total: u64,
    /// Pages that are not reserved.
    pub free: u64,
}

/// The kind of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// A cache and the cpus that share it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Cache {
    /// Level, 1 nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Usable cpus that share it.
    pub cpus: CpuSet,
    /// Size in all, where known.
    pub size: Option<Bytes>,
    /// Size of a line, where known.
    pub line: Option<Bytes>,
    /// Ways of associativity, where known; 0 for a fully associative cache.
    pub ways: Option<u32>,
}

/// An interconnect link between two nodes, in both directions. Its bandwidth and latency are facts of the knowledge
/// base.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Link {
    /// Atoll's number.
    pub id: LinkId,
    /// The smaller node.
    pub a: NodeId,
    /// The larger node.
    pub b: NodeId,
    /// Its technology: `QPI`, `UPI`, `HyperTransport`, `mesh`, …
    pub kind: String,
}

/// The cores that share a last-level cache.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Domain {
    /// Atoll's number.
    pub id: DomainId,
    /// Its node.
    pub node: NodeId,
    /// Usable cpus.
    pub cpus: CpuSet,
    /// Level of the shared cache (3 on most machines); None if unknown.
    pub cache_level: Option<u32>,
    /// Size of the shared cache.
    pub cache: Option<Bytes>,
}

/// A core.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Core {
    /// Atoll's number.
    pub id: CoreId,
    /// Its domain.
    pub domain: DomainId,
    /// Usable hardware threads.
    pub cpus: CpuSet,
}

/// A hardware thread and its location.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Cpu {
    /// The kernel's number.
    pub id: CpuId,
    /// Its core.
    pub core: CoreId,
    /// Its domain.
    pub domain: DomainId,
    /// Its node.
    pub node: NodeId,
    /// Its package.
    pub package: PackageId,
}

impl Machine {
    /// Finds a node by number.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// Finds a cpu by number.
    pub fn cpu(&self, id: CpuId) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok().map(|i| &self.cpus[i])
    }

    /// Memory of all nodes.
    pub fn memory(&self) -> Bytes {
        total(self.nodes.iter().map(|node| node.memory))
    }

    /// Memory free on all nodes when read.
    pub fn memory_free(&self) -> Bytes {
        total(self.nodes.iter().map(|node| node.memory_free))
    }

    /// Domains of a node, ordered by id.
    pub fn domains_of(&self, node: NodeId) -> impl Iterator<Item = &Domain> {
        self.domains.iter().filter(move |domain| domain.node == node)
    }

    /// Nodes that have memory.
    pub fn nodes_with_memory(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.memory.0 > 0)
    }

    /// Nodes that have cpus.
    pub fn nodes_with_cpus(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.cpus.is_empty())
    }

    /// SLIT distance from one node to another; 10 is local. Returns None for an unknown node.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let position = |id| self.nodes.iter().position(|node| node.id == id);
        self.distances.get(position(from)?)?.get(position(to)?).copied()
    }

    /// Nodes ordered by distance from `from` (itself first when it is in the machine), ties by id.
    pub fn nodes_by_distance(&self, from: NodeId) -> Vec<&Node> {
        let mut nodes: Vec<&Node> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| {
            (node.id != from, self.distance(from, node.id).unwrap_or(u32::MAX), node.id)
        });
        nodes
    }

    /// The nearest node that has cpus; `from` itself when it has some.
    pub fn nearest_with_cpus(&self, from: NodeId) -> Option<&Node> {
        self.nodes_by_distance(from).into_iter().find(|node| !node.cpus.is_empty())
    }

    /// The nearest node that has memory; `from` itself when it has some.
    pub fn nearest_with_memory(&self, from: NodeId) -> Option<&Node> {
        self.nodes_by_distance(from).into_iter().find(|node| node.memory.0 > 0)
    }
}

fn total(sizes: impl Iterator<Item = Bytes>) -> Bytes {
    Bytes(sizes.fold(0, |sum, size| sum.saturating_add(size.0)))
}
