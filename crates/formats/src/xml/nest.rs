//! Builds a tree from a machine's groups of cpus: package ⊃ node ⊃ caches ⊃ core ⊃ cpu as far as they nest.
//!
//! Nodes, domains and cores nest by construction. A package or a cache that partially overlaps one of them, as odd
//! firmware and emulators describe, does not fit into hwloc's tree and is kept separately as loose. A domain has its
//! own object only if no cache of the tree implies it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use atoll_topology::{
    Cache, CacheKind, Core, CpuId, CpuSet, Die, Domain, Machine, Node, NodeId, Package,
};

/// The kind of an object of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'a> {
    Machine,
    Package(&'a Package),
    Die(&'a Die),
    /// Around the cpus of a node.
    Group,
    Cache(&'a Cache),
    /// A last-level cache that is only known from its domain.
    DomainCache(&'a Domain),
    /// A domain whose cache hwloc cannot represent.
    Domain(&'a Domain),
    Core(&'a Core),
    Cpu(CpuId),
}

/// An object of the tree.
#[derive(Debug)]
pub(super) struct TreeObject<'a> {
    pub(super) what: What<'a>,
    pub(super) cpus: CpuSet,
    /// Indexes of its children, ordered by smallest cpu.
    pub(super) children: Vec<usize>,
    /// Nodes whose memory is attached here.
    pub(super) nodes: Vec<&'a Node>,
}

/// The tree, and the parts that do not fit into it.
#[derive(Debug)]
pub(super) struct Nest<'a> {
    /// The first is the machine.
    pub(super) pieces: Vec<TreeObject<'a>>,
    pub(super) loose_packages: Vec<&'a Package>,
    pub(super) loose_dies: Vec<&'a Die>,
    pub(super) loose_caches: Vec<&'a Cache>,
}

impl<'a> Nest<'a> {
    /// The tree of a machine.
    pub(super) fn from_machine(machine: &'a Machine) -> Self {
        let mut family = Family::new(machine);
        family.add_nodes_domains_cores();
        let loose_packages = family.add_packages();
        let loose_dies = family.add_dies();
        let loose_caches = family.add_caches();
        family.add_near();
        family.settle_domains();
        let pieces = tree(machine, family.sets);
        Self { pieces, loose_packages, loose_dies, loose_caches }
    }
}

/// A laminar family of cpu sets: any two are disjoint or nested.
struct Family<'a> {
    machine: &'a Machine,
    sets: Vec<(What<'a>, CpuSet)>,
    /// The sets that contain each cpu.
    around: BTreeMap<CpuId, Vec<usize>>,
    /// Caches in the family, by the cpus that read data from them.
    last_level: HashMap<CpuId, &'a Cache>,
    /// Cpus with two caches at the highest level, which are ambiguous for a reader.
    undecided: HashSet<CpuId>,
}

impl<'a> Family<'a> {
    fn new(machine: &'a Machine) -> Self {
        let around = machine.cpus.iter().map(|cpu| (cpu.id, Vec::new())).collect();
        Self {
            machine,
            sets: Vec::new(),
            around,
            last_level: HashMap::new(),
            undecided: HashSet::new(),
        }
    }

    /// Inserts a set unless it partially overlaps an existing one; returns whether it was inserted.
    fn add(&mut self, what: What<'a>, cpus: &CpuSet) -> bool {
        let mut common: HashMap<usize, usize> = HashMap::new();
        for cpu in cpus.iter() {
            let Some(sets) = self.around.get(&cpu) else { return false };
            for &set in sets {
                *common.entry(set).or_default() += 1;
            }
        }
        let cuts = |(&set, &count): (&usize, &usize)| {
            count != cpus.len() && count != self.sets[set].1.len()
        };
        if cpus.is_empty() || common.iter().any(cuts) {
            return false;
        }
        for cpu in cpus.iter() {
            self.around.entry(cpu).or_default().push(self.sets.len());
        }
        self.sets.push((what, cpus.clone()));
        true
    }

    fn add_nodes_domains_cores(&mut self) {
        for node in &self.machine.nodes {
            self.add(What::Group, &node.cpus);
        }
        for domain in &self.machine.domains {
            self.add(What::Domain(domain), &domain.cpus);
        }
        for core in &self.machine.cores {
            self.add(What::Core(core), &core.cpus);
        }
    }

    /// Adds groups for memory-only nodes, which must not partially overlap anything else.
    fn add_near(&mut self) {
        for node in &self.machine.nodes {
            let same = |(what, cpus): &(What<'_>, CpuSet)| {
                matches!(what, What::Group | What::Package(_)) && *cpus == node.near
            };
            if !self.sets.iter().any(same) {
                self.add(What::Group, &node.near);
            }
        }
    }

    fn add_packages(&mut self) -> Vec<&'a Package> {
        let packages = self.machine.packages.iter();
        packages.filter(|package| !self.add(What::Package(package), &package.cpus)).collect()
    }

    /// Adds the dies inside a package of the tree, so that a reader finds the package around them.
    fn add_dies(&mut self) -> Vec<&'a Die> {
        let mut loose = Vec::new();
        for die in &self.machine.dies {
            let is_package =
                |what: &What<'_>| matches!(what, What::Package(p) if p.id == die.package);
            let is_inside =
                self.sets.iter().any(|(what, cpus)| is_package(what) && die.cpus.is_subset(cpus));
            if !is_inside || !self.add(What::Die(die), &die.cpus) {
                loose.push(die);
            }
        }
        loose
    }

    /// Adds the caches; those that share level, kind and smallest cpu with another are loose, to keep their order.
    fn add_caches(&mut self) -> Vec<&'a Cache> {
        let key = |cache: &Cache| (cache.level, cache.kind, cache.cpus.first());
        let mut counts = HashMap::new();
        for cache in &self.machine.caches {
            *counts.entry(key(cache)).or_insert(0) += 1;
        }
        let mut loose = Vec::new();
        for cache in &self.machine.caches {
            if counts[&key(cache)] > 1 || !is_plain(cache) || !self.add_cache(cache) {
                loose.push(cache);
            }
        }
        loose
    }

    fn add_cache(&mut self, cache: &'a Cache) -> bool {
        let added = self.add(What::Cache(cache), &cache.cpus);
        if added && cache.kind != CacheKind::Instruction {
            for cpu in cache.cpus.iter() {
                match self.last_level.get(&cpu).map(|last| cache.level.cmp(&last.level)) {
                    None | Some(Ordering::Greater) => {
                        self.last_level.insert(cpu, cache);
                        self.undecided.remove(&cpu);
                    }
                    Some(Ordering::Equal) => drop(self.undecided.insert(cpu)),
                    Some(Ordering::Less) => {}
                }
            }
        }
        added
    }

    /// Drops the domains that caches imply, and gives the others a cache if hwloc can represent it.
    fn settle_domains(&mut self) {
        let sets = std::mem::take(&mut self.sets);
        let settle = |(what, cpus)| match what {
            What::Domain(domain) if self.is_told(domain) => None,
            What::Domain(domain) if self.may_be_cache(domain) => {
                Some((What::DomainCache(domain), cpus))
            }
            _ => Some((what, cpus)),
        };
        self.sets = sets.into_iter().filter_map(settle).collect();
    }

    fn node_cpus(&self, node: NodeId) -> &'a CpuSet {
        static NONE: std::sync::LazyLock<CpuSet> = std::sync::LazyLock::new(CpuSet::new);
        self.machine.node(node).map_or(&*NONE, |node| &node.cpus)
    }

    /// Whether a reader can derive the domain from the caches of the tree: see `read`.
    fn is_told(&self, domain: &Domain) -> bool {
        let node = self.node_cpus(domain.node);
        let Some(cache) = domain.cpus.first().and_then(|cpu| self.last_level.get(&cpu)) else {
            let alone = node.iter().filter(|cpu| !self.last_level.contains_key(cpu)).count();
            return (domain.cache_level, domain.cache) == (None, None)
                && domain.cpus.iter().all(|cpu| !self.last_level.contains_key(&cpu))
                && alone == domain.cpus.len();
        };
        if domain.cpus.iter().any(|cpu| self.undecided.contains(&cpu)) {
            return false;
        }
        let is_last =
            |cpu| self.last_level.get(&cpu).is_some_and(|last| std::ptr::eq(*last, *cache));
        domain.cache_level == Some(cache.level)
            && domain.cache == cache.size
            && domain.cpus.iter().all(is_last)
            && node.iter().filter(|&cpu| is_last(cpu)).count() == domain.cpus.len()
    }

    /// Whether hwloc can represent a cache for the domain in addition to those of the tree.
    fn may_be_cache(&self, domain: &Domain) -> bool {
        let level = domain.cache_level.unwrap_or_default();
        let same = |cache: &&Cache| cache.level == level && cache.cpus == domain.cpus;
        (1..=5).contains(&level)
            && domain.cache.is_none_or(|size| size.0 > 0)
            && !self.machine.caches.iter().any(|cache| same(&cache))
    }
}

/// Whether hwloc can represent such a cache with the same meaning of every value.
fn is_plain(cache: &Cache) -> bool {
    let levels = if cache.kind == CacheKind::Instruction { 1..=3 } else { 1..=5 };
    levels.contains(&cache.level)
        && cache.size.is_none_or(|size| size.0 > 0)
        && cache.line.is_none_or(|line| line.0 > 0)
        && cache.ways.is_none_or(|ways| ways <= i32::MAX as u32)
}

/// Nests the sets and attaches the nodes to them.
fn tree<'a>(machine: &'a Machine, mut sets: Vec<(What<'a>, CpuSet)>) -> Vec<TreeObject<'a>> {
    let all: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
    let packages: Vec<CpuSet> = sets
        .iter()
        .filter(|(what, _)| matches!(what, What::Package(_)))
        .map(|(_, cpus)| cpus.clone())
        .collect();
    sets.retain(|(what, cpus)| {
        !matches!(what, What::Group) || (*cpus != all && !packages.contains(cpus))
    });
    sets.extend(all.iter().map(|cpu| (What::Cpu(cpu), CpuSet::from_iter([cpu]))));
    sets.sort_by_key(|(what, cpus)| (std::cmp::Reverse(cpus.len()), rank(what), cpus.first()));
    let mut innermost: HashMap<CpuId, usize> = all.iter().map(|cpu| (cpu, 0)).collect();
    let mut pieces = vec![piece(What::Machine, all)];
    for (what, cpus) in sets {
        let index = pieces.len();
        let parent = cpus.first().and_then(|cpu| innermost.get(&cpu)).copied().unwrap_or_default();
        innermost.extend(cpus.iter().map(|cpu| (cpu, index)));
        pieces[parent].children.push(index);
        pieces.push(piece(what, cpus));
    }
    for index in 0..pieces.len() {
        let mut children = std::mem::take(&mut pieces[index].children);
        children.sort_by_key(|&child| pieces[child].cpus.first());
        pieces[index].children = children;
    }
    hang_nodes(machine, &mut pieces);
    pieces
}

fn piece(what: What<'_>, cpus: CpuSet) -> TreeObject<'_> {
    TreeObject { what, cpus, children: Vec::new(), nodes: Vec::new() }
}

/// The object to which a node's memory is attached: the package or group with its cpus or the nearest cpus, or else
/// the machine.
fn hang_nodes<'a>(machine: &'a Machine, pieces: &mut [TreeObject<'a>]) {
    let holders: HashMap<CpuSet, usize> = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| matches!(piece.what, What::Package(_) | What::Group))
        .map(|(index, piece)| (piece.cpus.clone(), index))
        .collect();
    for node in &machine.nodes {
        let cpus = if node.cpus.is_empty() { &node.near } else { &node.cpus };
        let holder = holders.get(cpus).copied().unwrap_or_default();
        pieces[holder].nodes.push(node);
    }
}

/// Orders objects with the same cpus from the outside in.
fn rank(what: &What<'_>) -> u32 {
    let cache = |level: u32, kind| 30 - 2 * level + u32::from(kind == CacheKind::Instruction);
    match what {
        What::Machine => 0,
        What::Group => 1,
        What::Package(_) => 2,
        What::Die(_) => 3,
        What::Domain(_) => 4,
        What::Cache(found) => cache(found.level, found.kind),
        What::DomainCache(domain) => cache(domain.cache_level.unwrap_or(1), CacheKind::Unified),
        What::Core(_) => 40,
        What::Cpu(_) => 41,
    }
}
