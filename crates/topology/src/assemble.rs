//! Assembles a [`Machine`] from the parts that each source (discovery, builder, synthetic description) finds: groups
//! cpus into cores, domains, packages and nodes, and numbers what the kernel does not number.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::{
    Bytes, Cache, Core, CoreId, Cpu, CpuId, CpuKind, CpuSet, Die, Domain, DomainId, Hidden,
    HugePages, Limits, Link, Machine, Node, NodeId, Package, PackageId, SideCache, Source,
};

/// Local distance of the ACPI SLIT (ACPI 6.5, section 5.2.17).
pub const DISTANCE_LOCAL: u32 = 10;
/// Linux's default distance between two nodes when the firmware has no SLIT (`REMOTE_DISTANCE` in
/// `include/linux/topology.h`).
pub const DISTANCE_REMOTE: u32 = 20;

/// A usable cpu. A group is identified by its leader, any one cpu that all of its members name.
#[derive(Clone, Copy, Debug)]
pub struct CpuPart {
    /// Its number.
    pub id: CpuId,
    /// Its package.
    pub package: PackageId,
    /// Its node.
    pub node: NodeId,
    /// Leader of its core.
    pub core: CpuId,
    /// Its last-level cache.
    pub cache: CachePart,
}

/// A cpu's last-level cache.
#[derive(Clone, Copy, Debug)]
pub struct CachePart {
    /// Leader of the cpus on the same node that share it.
    pub leader: CpuId,
    /// None if caches are unknown.
    pub level: Option<u32>,
    /// None if unknown.
    pub size: Option<Bytes>,
}

/// A node with usable memory, usable cpus or both.
#[derive(Clone, Debug)]
pub struct NodePart {
    /// Its number.
    pub id: NodeId,
    /// The cpus nearest to a memory-only node.
    pub near: CpuSet,
    /// Its total memory.
    pub memory: Bytes,
    /// Its free memory.
    pub memory_free: Bytes,
    /// Its pools of huge pages.
    pub huge_pages: Vec<HugePages>,
    /// Caches in front of its memory.
    pub side_caches: Vec<SideCache>,
}

impl NodePart {
    /// A node with only memory, all of it free.
    pub fn new(id: NodeId, memory: Bytes) -> Self {
        Self {
            id,
            near: CpuSet::new(),
            memory,
            memory_free: memory,
            huge_pages: Vec::new(),
            side_caches: Vec::new(),
        }
    }
}

/// The parts of a machine before cpus are grouped. Lists may be in any order, except that distances are ordered by
/// node id.
#[derive(Debug)]
pub struct MachineParts {
    /// The name of the machine.
    pub name: String,
    /// Source of the structure.
    pub source: Source,
    /// The nodes.
    pub nodes: Vec<NodePart>,
    /// The cpus.
    pub cpus: Vec<CpuPart>,
    /// Model names of the processors.
    pub models: BTreeMap<PackageId, String>,
    /// Source of the memory sizes.
    pub memory_source: Source,
    /// Source of the free memory sizes.
    pub memory_free_source: Source,
    /// Dies of packages, including single ones.
    pub dies: Vec<Die>,
    /// Kinds of cpus, including a single one.
    pub cpu_kinds: Vec<CpuKind>,
    /// Source of the caches.
    pub caches_source: Source,
    /// The caches, in any order.
    pub caches: Vec<Cache>,
    /// The links, ordered by id.
    pub links: Vec<Link>,
    /// Source of the links.
    pub links_source: Source,
    /// A row for each node.
    pub distances: Vec<Vec<u32>>,
    /// Source of the distances.
    pub distances_source: Source,
    /// What the process may not use.
    pub hidden: Hidden,
    /// The limits of the process.
    pub limits: Limits,
    /// Source of the page sizes.
    pub pages_source: Source,
    /// Size of a page.
    pub page_size: Bytes,
    /// Size of a transparent huge page, if available.
    pub huge_page_size: Option<Bytes>,
    /// What was missing or wrong, and what is assumed instead.
    pub assumptions: Vec<String>,
}

/// Default distances: every other node is equally far.
pub fn distances_assumed(nodes: usize) -> Vec<Vec<u32>> {
    let row = |from| {
        (0..nodes).map(|to| if from == to { DISTANCE_LOCAL } else { DISTANCE_REMOTE }).collect()
    };
    (0..nodes).map(row).collect()
}

/// Groups the parts into a machine.
pub fn machine(mut parts: MachineParts) -> Machine {
    parts.cpus.sort_unstable_by_key(|cpu| cpu.id);
    parts.nodes.sort_unstable_by_key(|node| node.id);
    parts.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    let domain_of = dense(&parts.cpus, |cpu| (cpu.node, cpu.cache.level, cpu.cache.leader));
    let core_of = dense(&parts.cpus, |cpu| (cpu.node, cpu.cache.level, cpu.cache.leader, cpu.core));
    let cpus: Vec<Cpu> = parts
        .cpus
        .iter()
        .zip(domain_of.iter().zip(&core_of))
        .map(|(part, (&domain, &core))| Cpu {
            id: part.id,
            core: CoreId(core),
            domain: DomainId(domain),
            node: part.node,
            package: part.package,
        })
        .collect();
    Machine {
        name: parts.name,
        source: parts.source,
        packages: packages(&cpus, &parts.models),
        nodes: nodes(&parts.nodes, &cpus),
        domains: domains(&parts.cpus, &cpus),
        cores: cores(&cpus),
        cpus,
        caches: parts.caches,
        links: parts.links,
        links_source: parts.links_source,
        distances: parts.distances,
        distances_source: parts.distances_source,
        memory_source: parts.memory_source,
        memory_free_source: parts.memory_free_source,
        dies: dies(parts.dies),
        cpu_kinds: kinds(parts.cpu_kinds),
        caches_source: parts.caches_source,
        limits: parts.limits,
        hidden: parts.hidden,
        pages_source: parts.pages_source,
        page_size: parts.page_size,
        huge_page_size: parts.huge_page_size,
        assumptions: parts.assumptions,
    }
}

/// The number of each cpu's group, dense from 0 in the order of the groups' first cpus.
fn dense<K: Hash + Eq>(cpus: &[CpuPart], key: impl Fn(&CpuPart) -> K) -> Vec<u32> {
    let mut numbers = HashMap::new();
    cpus.iter()
        .map(|cpu| {
            let next = numbers.len() as u32;
            *numbers.entry(key(cpu)).or_insert(next)
        })
        .collect()
}

/// Groups cpus by a key, ordered by key.
fn group<K: Ord>(cpus: &[Cpu], key: impl Fn(&Cpu) -> K) -> BTreeMap<K, Vec<&Cpu>> {
    let mut groups: BTreeMap<K, Vec<&Cpu>> = BTreeMap::new();
    for cpu in cpus {
        groups.entry(key(cpu)).or_default().push(cpu);
    }
    groups
}

fn set(cpus: &[&Cpu]) -> CpuSet {
    cpus.iter().map(|cpu| cpu.id).collect()
}

fn packages(cpus: &[Cpu], models: &BTreeMap<PackageId, String>) -> Vec<Package> {
    group(cpus, |cpu| cpu.package)
        .into_iter()
        .map(|(id, cpus)| Package { id, model: models.get(&id).cloned(), cpus: set(&cpus) })
        .collect()
}

fn nodes(parts: &[NodePart], cpus: &[Cpu]) -> Vec<Node> {
    let mut by_node = group(cpus, |cpu| cpu.node);
    let all = cpus.len();
    parts
        .iter()
        .map(|part| {
            let cpus = by_node.remove(&part.id).unwrap_or_default();
            Node {
                id: part.id,
                package: common_package(&cpus),
                near: near(part, &cpus, all),
                cpus: set(&cpus),
                memory: part.memory,
                memory_free: part.memory_free,
                huge_pages: part.huge_pages.clone(),
                side_caches: part.side_caches.clone(),
            }
        })
        .collect()
}

/// Cpus nearest to a memory-only node; empty if all are equally near.
fn near(part: &NodePart, cpus: &[&Cpu], all: usize) -> CpuSet {
    let tells = cpus.is_empty() && part.near.len() < all;
    if tells { part.near.clone() } else { CpuSet::new() }
}

/// Dies of the packages that have several, in order.
fn dies(mut dies: Vec<Die>) -> Vec<Die> {
    let mut counts: BTreeMap<PackageId, usize> = BTreeMap::new();
    for die in &dies {
        *counts.entry(die.package).or_default() += 1;
    }
    dies.retain(|die| counts[&die.package] > 1);
    dies.sort_by_key(|die| (die.package, die.id));
    dies
}

/// Kinds of cpus, where there are several, in order of their first cpu.
fn kinds(mut kinds: Vec<CpuKind>) -> Vec<CpuKind> {
    if kinds.len() < 2 {
        kinds.clear();
    }
    kinds.sort_by_key(|kind| kind.cpus.first());
    kinds
}

fn common_package(cpus: &[&Cpu]) -> Option<PackageId> {
    let package = cpus.first()?.package;
    cpus.iter().all(|cpu| cpu.package == package).then_some(package)
}

fn domains(parts: &[CpuPart], cpus: &[Cpu]) -> Vec<Domain> {
    let mut caches = BTreeMap::new();
    for (part, cpu) in parts.iter().zip(cpus) {
        caches.entry(cpu.domain).or_insert(part.cache);
    }
    group(cpus, |cpu| cpu.domain)
        .into_iter()
        .map(|(id, cpus)| Domain {
            id,
            node: cpus[0].node,
            cpus: set(&cpus),
            cache_level: caches[&id].level,
            cache: caches[&id].size,
        })
        .collect()
}

fn cores(cpus: &[Cpu]) -> Vec<Core> {
    group(cpus, |cpu| cpu.core)
        .into_iter()
        .map(|(id, cpus)| Core { id, domain: cpus[0].domain, cpus: set(&cpus) })
        .collect()
}
