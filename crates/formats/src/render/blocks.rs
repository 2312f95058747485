//! The machine as nested blocks, from which both pictures (SVG and plain text) are drawn: packages ⊃
//! nodes ⊃ domains, and in a domain its cores as cells. What would be illegible is summarised here: many nodes by
//! groups of equal shape, many domains of a node as one block.

use std::collections::{BTreeMap, BTreeSet};

use super::sections;
use super::words::{compact, count, list};
use atoll_topology::{
    Bytes, Cache, CacheKind, Core, CpuKind, CpuSet, Domain, DomainId, Machine, Node, NodeId,
    NodeSet, Package, PackageId,
};

/// Above this number, nodes are grouped by shape.
pub(super) const NODES_DRAWN_MAX: usize = 32;
/// Above this number of groups, the rest is counted as one.
const GROUPS_MAX: usize = 24;
/// Above this number, the domains of a node are shown as one block.
const DOMAINS_DRAWN_MAX: usize = 16;
/// Above this number of characters, a domain's caches are listed without its instruction caches.
const SMALL_CACHES_MAX: usize = 50;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoxKind {
    Package,
    Node,
    MemoryNode,
    Domain,
}

/// A box of the picture.
pub(super) struct DiagramBox {
    pub(super) kind: BoxKind,
    pub(super) title: String,
    /// The text below the title; may be empty.
    pub(super) detail: String,
    /// A node's memory, and its used share.
    pub(super) memory: Option<(String, f64)>,
    /// A domain's last-level cache.
    pub(super) cache: Option<String>,
    pub(super) below: Vec<DiagramBox>,
    /// Numbers in each cell: the cpus of a core, or a node of a group.
    pub(super) cells: Vec<Vec<u32>>,
}

impl DiagramBox {
    fn new(kind: BoxKind, title: impl Into<String>) -> Self {
        let (detail, below, cells) = (String::new(), Vec::new(), Vec::new());
        Self { kind, title: title.into(), detail, memory: None, cache: None, below, cells }
    }
}

/// The machine's parts by the part that contains them.
struct PartsByOwner<'a> {
    machine: &'a Machine,
    domains: BTreeMap<NodeId, Vec<&'a Domain>>,
    cores: BTreeMap<DomainId, Vec<&'a Core>>,
    caches: BTreeMap<DomainId, Vec<&'a Cache>>,
}

/// The outermost blocks of the machine.
pub(super) fn blocks(machine: &Machine) -> Vec<DiagramBox> {
    let parts = PartsByOwner::from_machine(machine);
    if machine.nodes.len() > NODES_DRAWN_MAX {
        return parts.groups();
    }
    let packages = machine.packages.iter().filter_map(|package| parts.package(package));
    let (with_cpus, memory_only): (Vec<&Node>, Vec<&Node>) = machine
        .nodes
        .iter()
        .filter(|node| node.package.is_none())
        .partition(|node| !node.cpus.is_empty());
    let others = with_cpus.into_iter().chain(memory_only);
    packages.chain(others.map(|node| parts.node(node))).collect()
}

impl<'a> PartsByOwner<'a> {
    fn from_machine(machine: &'a Machine) -> Self {
        let mut parts = Self {
            machine,
            domains: BTreeMap::new(),
            cores: BTreeMap::new(),
            caches: BTreeMap::new(),
        };
        for domain in &machine.domains {
            parts.domains.entry(domain.node).or_default().push(domain);
        }
        for core in &machine.cores {
            parts.cores.entry(core.domain).or_default().push(core);
        }
        for cache in &machine.caches {
            if let Some(cpu) = cache.cpus.first().and_then(|cpu| machine.cpu(cpu)) {
                parts.caches.entry(cpu.domain).or_default().push(cache);
            }
        }
        parts
    }

    /// Returns None for a package without a node of its own: its node lists the packages that it covers.
    fn package(&self, package: &Package) -> Option<DiagramBox> {
        let nodes = self.machine.nodes.iter().filter(|node| node.package == Some(package.id));
        let below: Vec<DiagramBox> = nodes.map(|node| self.node(node)).collect();
        if below.is_empty() {
            return None;
        }
        let mut block = DiagramBox::new(BoxKind::Package, format!("package {}", package.id));
        block.detail = package.model.clone().unwrap_or_default();
        let dies = self.machine.dies.iter().filter(|die| die.package == package.id).count();
        if dies > 0 {
            let dies = count(dies, "die");
            block.detail = match block.detail.as_str() {
                "" => dies,
                model => format!("{model}; {dies}"),
            };
        }
        Some(DiagramBox { below, ..block })
    }

    fn node(&self, node: &Node) -> DiagramBox {
        let kind = if node.cpus.is_empty() { BoxKind::MemoryNode } else { BoxKind::Node };
        let mut block = DiagramBox::new(kind, format!("node {}", node.id));
        block.detail = self.node_detail(node);
        block.memory = Some(self.memory(node));
        let domains = self.domains_of(node.id);
        if domains.len() > DOMAINS_DRAWN_MAX {
            block.below = vec![self.domains_as_one(domains)];
        } else {
            block.below = domains.iter().map(|domain| self.domain(domain)).collect();
        }
        block
    }

    fn domains_of(&self, node: NodeId) -> &[&'a Domain] {
        self.domains.get(&node).map_or(&[], Vec::as_slice)
    }

    fn node_detail(&self, node: &Node) -> String {
        if node.cpus.is_empty() {
            return match node.near.is_empty() {
                true => "memory only, no cpus".to_owned(),
                false => format!("memory only, nearest to {}", list("cpu", &node.near)),
            };
        }
        let cpus = list("cpu", &node.cpus);
        let over: BTreeSet<PackageId> = match node.package {
            Some(_) => BTreeSet::new(),
            None => {
                node.cpus.iter().filter_map(|c| self.machine.cpu(c)).map(|c| c.package).collect()
            }
        };
        if over.len() > 1 { format!("{cpus}, in {} packages", over.len()) } else { cpus }
    }

    /// A node's memory with the caches in front of it, and its used share.
    fn memory(&self, node: &Node) -> (String, f64) {
        let caches = node.side_caches.iter();
        let caches: String =
            caches.map(|cache| format!(", cache of {}", compact(cache.size))).collect();
        let (text, used) = self.bare_memory(node);
        (text + &caches, used)
    }

    fn bare_memory(&self, node: &Node) -> (String, f64) {
        let Bytes(all) = node.memory;
        let used = all.saturating_sub(node.memory_free.0);
        match all {
            0 if self.machine.hidden.nodes.contains(node.id) => {
                ("memory not allowed".to_owned(), 0.0)
            }
            0 => ("no memory".to_owned(), 0.0),
            _ if used == 0 => (format!("memory {}", compact(node.memory)), 0.0),
            _ => {
                let (all, free) = (compact(node.memory), compact(node.memory_free));
                (format!("memory {all}, {free} free"), used as f64 / node.memory.0 as f64)
            }
        }
    }

    fn domain(&self, domain: &Domain) -> DiagramBox {
        let mut block = DiagramBox::new(BoxKind::Domain, format!("domain {}", domain.id));
        block.cache = Some(cache(domain.cache_level, domain.cache));
        block.cells = self.cells(domain.id);
        block.detail = self.small_caches(&[domain]);
        let of_domain = |kind: &&CpuKind| !kind.cpus.intersection(&domain.cpus).is_empty();
        for kind in self.machine.cpu_kinds.iter().filter(of_domain) {
            block.detail = format!("{}; {}", block.detail, kind.name);
        }
        block
    }

    /// `17 domains`, with the cores of all.
    fn domains_as_one(&self, domains: &[&Domain]) -> DiagramBox {
        let mut block = DiagramBox::new(BoxKind::Domain, count(domains.len(), "domain"));
        let kinds: BTreeSet<_> = domains.iter().map(|d| (d.cache_level, d.cache)).collect();
        block.cache = Some(match kinds.first() {
            Some(&(level, size)) if kinds.len() == 1 => {
                format!("each {}", cache(level, size))
            }
            _ => format!("{} kinds of last-level cache", kinds.len()),
        });
        block.cells = domains.iter().flat_map(|domain| self.cells(domain.id)).collect();
        block.detail = self.small_caches(domains);
        block
    }

    fn cells(&self, domain: DomainId) -> Vec<Vec<u32>> {
        let cores = self.cores.get(&domain).into_iter().flatten();
        cores.map(|core| core.cpus.iter().map(u32::from).collect()).collect()
    }

    /// `4 cores; L1d 32 KiB, L2 1 MiB each`: what lies between the cores and the last-level cache.
    fn small_caches(&self, domains: &[&Domain]) -> String {
        let mut sizes: BTreeMap<(u32, CacheKind), BTreeSet<Bytes>> = BTreeMap::new();
        let mut cores = 0;
        for domain in domains {
            cores += self.cores.get(&domain.id).map_or(0, Vec::len);
            for cache in self.caches.get(&domain.id).into_iter().flatten() {
                let small = domain.cache_level.is_none_or(|last| cache.level < last);
                if let Some(size) = cache.size.filter(|_| small) {
                    sizes.entry((cache.level, cache.kind)).or_default().insert(size);
                }
            }
        }
        let cores = count(cores, "core");
        let text = |sizes: &BTreeMap<(u32, CacheKind), BTreeSet<Bytes>>| {
            let names = sizes.iter().map(|(&key, sizes)| cache_name(key, sizes));
            let parts: Vec<String> = names.collect();
            if parts.is_empty() { cores.clone() } else { format!("{cores}; {}", parts.join(", ")) }
        };
        let whole = text(&sizes);
        if whole.chars().count() <= SMALL_CACHES_MAX {
            return whole;
        }
        sizes.retain(|(_, kind), _| *kind != CacheKind::Instruction);
        text(&sizes)
    }

    /// Nodes that differ only in their number, as one block each.
    fn groups(&self) -> Vec<DiagramBox> {
        let mut groups: Vec<(String, Vec<&Node>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for node in &self.machine.nodes {
            let mut shape = self.shape(node);
            if groups.len() >= GROUPS_MAX && !places.contains_key(&shape) {
                shape = "of other shapes".to_owned();
            }
            let place = *places.entry(shape.clone()).or_insert_with(|| {
                groups.push((shape, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(node);
        }
        groups.into_iter().map(|(shape, nodes)| group(shape, &nodes)).collect()
    }

    fn shape(&self, node: &Node) -> String {
        let memory = match node.memory.0 {
            0 => "no memory".to_owned(),
            _ => compact(node.memory),
        };
        if node.cpus.is_empty() {
            return format!("{memory}, no cpus");
        }
        let domains = self.domains_of(node.id);
        let cores = domains.iter().map(|d| self.cores.get(&d.id).map_or(0, Vec::len)).sum();
        format!(
            "{memory}; {}, {}, {}",
            count(domains.len(), "domain"),
            count(cores, "core"),
            count(node.cpus.len(), "cpu")
        )
    }
}

/// The nodes of a machine that has too many to list, grouped by shape, one line each: `40 × 16 GiB; …`.
pub(super) fn grouped_nodes(machine: &Machine) -> Vec<String> {
    let line = |block: DiagramBox| format!("{}: {}", block.title, block.detail);
    PartsByOwner::from_machine(machine).groups().into_iter().map(line).collect()
}

fn group(shape: String, nodes: &[&Node]) -> DiagramBox {
    let ids: NodeSet = nodes.iter().map(|node| node.id).collect();
    let memory_only = nodes.iter().all(|node| node.cpus.is_empty());
    let kind = if memory_only { BoxKind::MemoryNode } else { BoxKind::Node };
    let mut block = DiagramBox::new(kind, list("node", &ids));
    block.detail = if nodes.len() > 1 { format!("{} × {shape}", nodes.len()) } else { shape };
    block.cells = ids.iter().map(|id| vec![id.0]).collect();
    block
}

/// `L3 32 MiB`
fn cache(level: Option<u32>, size: Option<Bytes>) -> String {
    sections::cache(level, size).replace(".0 ", " ")
}

/// `L1d 32 KiB`, `L2 1 to 2 MiB`
fn cache_name((level, kind): (u32, CacheKind), sizes: &BTreeSet<Bytes>) -> String {
    let letter = match kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    let (least, most) = (sizes.first().copied(), sizes.last().copied());
    let (least, most) = (compact(least.unwrap_or_default()), compact(most.unwrap_or_default()));
    let size = if least == most { most } else { format!("{least} to {most}") };
    format!("L{level}{letter} {size}")
}

/// The machine in one line: `2 packages, 2 nodes, …; 64 GiB`.
pub(super) fn summary(machine: &Machine) -> String {
    let counts = [
        count(machine.packages.len(), "package"),
        count(machine.nodes.len(), "node"),
        count(machine.domains.len(), "domain"),
        count(machine.cores.len(), "core"),
        count(machine.cpus.len(), "cpu"),
    ];
    format!("{}; {} of memory", counts.join(", "), compact(machine.memory()))
}

/// What the process may not use, in one line; empty if it may use everything.
pub(super) fn hidden(machine: &Machine) -> String {
    let named = |what: &str, set: String| format!("{what} {set}");
    let cpus: &CpuSet = &machine.hidden.cpus;
    let nodes = &machine.hidden.nodes;
    let cpus = (!cpus.is_empty()).then(|| named("hidden:", list("cpu", cpus)));
    let nodes = (!nodes.is_empty()).then(|| named("hidden: memory of", list("node", nodes)));
    cpus.into_iter().chain(nodes).collect::<Vec<_>>().join("; ")
}
