//! Cuts a machine: the cpus and memory kept, and their new numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use atoll_topology::{
    Bytes, Cache, Core, CoreId, Cpu, CpuId, CpuSet, Domain, DomainId, Fact, Hidden, Knowledge,
    Limits, Link, Machine, Node, NodeId, Package, PackageId, Quantity, Source, Subject,
    links_assumed,
};

use super::{DescribeError, GuestShape, MIB};

/// Most cpus of a guest whose size was not requested: two of them share a core of a laptop's eight, and
/// the kernel still boots in seconds on two.
const CPUS_MAX: u32 = 16;
/// Most nodes of QEMU (`MAX_NODES`).
const NODES_MAX: u64 = 128;
/// Memory of all nodes by default: the kernel sets up pages of more in seconds.
const MEMORY: u64 = 4096 * MIB;
const NODE_MEMORY: std::ops::RangeInclusive<u64> = 128 * MIB..=512 * MIB;
/// Nodes begin at multiples of this.
pub(super) const MEMORY_STEP: Bytes = Bytes(32 * MIB);
/// Most nodes between which links are assumed.
const LINKS_ASSUMED_NODES_MAX: usize = 8;
const PAGE: Bytes = Bytes(4096);
const HUGE_PAGE: Bytes = Bytes(2 * MIB);
/// Distances between different nodes: Linux rejects 10 and less, and 255 means unreachable.
const REMOTE_DISTANCE: std::ops::RangeInclusive<u32> = 11..=254;
const LOCAL_DISTANCE: u32 = 10;

/// A cut machine and its notes.
pub(super) struct CutMachine {
    pub(super) knowledge: Knowledge,
    pub(super) notes: Vec<String>,
}

/// Old numbers to new ones.
struct Renumbering {
    nodes: HashMap<NodeId, NodeId>,
    packages: HashMap<PackageId, PackageId>,
    domains: HashMap<DomainId, DomainId>,
    cores: HashMap<CoreId, CoreId>,
    cpus: HashMap<CpuId, CpuId>,
}

pub(super) fn cut(known: &Knowledge, shape: &GuestShape) -> Result<CutMachine, DescribeError> {
    let machine = &known.machine;
    check(machine)?;
    let mut notes = Vec::new();
    let kept = kept_cpus(machine, shape);
    note_cpus(machine, &kept, &mut notes);
    let numbers = Renumbering::from_kept(machine, &kept);
    numbers.note(&mut notes);
    let mut small = numbers.machine(machine, &kept);
    cut_memory(machine, &mut small, &numbers, shape, &mut notes);
    cut_caches(&mut small, shape.cache_divisor.max(1), &mut notes);
    mend_distances(&mut small, &mut notes);
    if small.links.is_empty() && small.nodes.len() <= LINKS_ASSUMED_NODES_MAX {
        small.links = links_assumed(&small);
        small.links_source = Source::Assumed;
        if !small.links.is_empty() {
            notes.push("links are not declared; those that the distances suggest are used".into());
        }
    }
    if machine.page_size != PAGE {
        notes.push(format!("pages of {PAGE} instead of {}", machine.page_size));
    }
    let facts = known.facts.iter().filter_map(|fact| numbers.fact(fact)).collect();
    Ok(CutMachine { knowledge: Knowledge { machine: small, facts }, notes })
}

fn check(machine: &Machine) -> Result<(), DescribeError> {
    let name = machine.name.clone();
    let without = |what| Err(DescribeError::Without { machine: machine.name.clone(), what });
    if machine.cpus.is_empty() {
        return without("cpus");
    }
    if machine.nodes_with_memory().next().is_none() {
        return without("memory");
    }
    let count = machine.nodes.len() as u64;
    if count > NODES_MAX {
        let advice = "describe a machine of fewer";
        let (what, limit) = ("nodes", NODES_MAX);
        return Err(DescribeError::TooMany { machine: name, what, count, limit, advice });
    }
    Ok(())
}

/// The cpus that stay, in the order of their new numbers: by package, node, domain and core. Packages
/// stand in the order of their first nodes.
fn kept_cpus<'a>(machine: &'a Machine, shape: &GuestShape) -> Vec<&'a Cpu> {
    let threads_max = shape.threads_per_core.unwrap_or(u32::MAX).max(1) as usize;
    let quota = shape.cpus_per_node.unwrap_or_else(|| quota(machine, threads_max)).max(1) as usize;
    let mut package_order: BTreeMap<PackageId, NodeId> = BTreeMap::new();
    for cpu in &machine.cpus {
        let first = package_order.entry(cpu.package).or_insert(cpu.node);
        *first = (*first).min(cpu.node);
    }
    let kept: CpuSet =
        machine.nodes.iter().flat_map(|node| of_node(machine, node, quota, threads_max)).collect();
    let mut kept: Vec<&Cpu> = machine.cpus.iter().filter(|cpu| kept.contains(cpu.id)).collect();
    kept.sort_by_key(|cpu| {
        (package_order[&cpu.package], cpu.package, cpu.node, cpu.domain, cpu.core, cpu.id)
    });
    kept
}

/// Cpus of a node by default: as many as leave [`CPUS_MAX`] in all, at least one.
fn quota(machine: &Machine, threads_max: usize) -> u32 {
    let usable = |node: &Node| -> u32 {
        let cores = cores_of(machine, node);
        cores.map(|core| core.cpus.len().min(threads_max) as u32).sum()
    };
    let counts: Vec<u32> = machine.nodes_with_cpus().map(usable).collect();
    let fits = |quota: u32| counts.iter().map(|&count| count.min(quota)).sum::<u32>() <= CPUS_MAX;
    (2..=CPUS_MAX).take_while(|&quota| fits(quota)).last().unwrap_or(1)
}

fn cores_of<'a>(machine: &'a Machine, node: &Node) -> impl Iterator<Item = &'a Core> {
    let id = node.id;
    machine.cores.iter().filter(move |core| machine.domains[core.domain.index()].node == id)
}

/// Whole cores in turn from every domain of the node while the quota lasts; of the first core what
/// fits.
fn of_node(machine: &Machine, node: &Node, quota: usize, threads_max: usize) -> Vec<CpuId> {
    let mut by_domain: BTreeMap<DomainId, Vec<&Core>> = BTreeMap::new();
    for core in cores_of(machine, node) {
        by_domain.entry(core.domain).or_default().push(core);
    }
    let rounds = by_domain.values().map(Vec::len).max().unwrap_or(0);
    let in_turn =
        (0..rounds).flat_map(|round| by_domain.values().filter_map(move |cores| cores.get(round)));
    let mut kept: Vec<CpuId> = Vec::new();
    for core in in_turn {
        let threads: Vec<CpuId> = core.cpus.iter().take(threads_max).collect();
        let room = quota - kept.len();
        match (threads.len() <= room, kept.is_empty()) {
            (true, _) => kept.extend(threads),
            (false, true) => kept.extend(threads.into_iter().take(room)),
            (false, false) => break,
        }
    }
    kept
}

fn note_cpus(machine: &Machine, kept: &[&Cpu], notes: &mut Vec<String>) {
    let of = |node: &Node| kept.iter().filter(|cpu| cpu.node == node.id).count();
    let pairs = machine.nodes_with_cpus().map(|node| (node.id, of(node), node.cpus.len()));
    let cut: Vec<_> = pairs.filter(|(_, kept, all)| kept < all).collect();
    note_by_node(&cut, "cpus", ToString::to_string, notes);
}

/// `2 of 8 cpus a node`, or node by node where they differ.
fn note_by_node<T: PartialEq>(
    cut: &[(NodeId, T, T)],
    what: &str,
    text: impl Fn(&T) -> String,
    notes: &mut Vec<String>,
) {
    let mut groups: Vec<(&T, &T, BTreeSet<NodeId>)> = Vec::new();
    for (node, kept, all) in cut {
        match groups.iter_mut().find(|(k, a, _)| *k == kept && *a == all) {
            Some((.., nodes)) => {
                nodes.insert(*node);
            }
            None => groups.push((kept, all, BTreeSet::from([*node]))),
        }
    }
    let is_one = groups.len() == 1;
    for (kept, all, nodes) in groups {
        let nodes: atoll_topology::NodeSet = nodes.into_iter().collect();
        let noun = if nodes.len() == 1 { "node" } else { "nodes" };
        let place = if is_one { "a node".to_owned() } else { format!("on {noun} {nodes}") };
        notes.push(format!("{} of {} {what} {place}", text(kept), text(all)));
    }
}

/// Numbers handed out in the order of first appearance.
fn dense<T: Copy + Eq + std::hash::Hash + From<u32>>(
    ids: impl Iterator<Item = T>,
) -> HashMap<T, T> {
    let mut numbers = HashMap::new();
    for id in ids {
        let next = numbers.len() as u32;
        numbers.entry(id).or_insert_with(|| T::from(next));
    }
    numbers
}

impl Renumbering {
    fn from_kept(machine: &Machine, kept: &[&Cpu]) -> Self {
        let without_cpus = machine.nodes.iter().filter(|node| node.cpus.is_empty());
        let nodes = kept.iter().map(|cpu| cpu.node).chain(without_cpus.map(|node| node.id));
        Self {
            nodes: dense(nodes),
            packages: dense(kept.iter().map(|cpu| cpu.package)),
            domains: dense(kept.iter().map(|cpu| cpu.domain)),
            cores: dense(kept.iter().map(|cpu| cpu.core)),
            cpus: dense(kept.iter().map(|cpu| cpu.id)),
        }
    }

    fn note(&self, notes: &mut Vec<String>) {
        let mut moved: Vec<_> = self.nodes.iter().filter(|(old, new)| old != new).collect();
        moved.sort();
        let words: Vec<String> = moved.iter().map(|(old, new)| format!("{old} is {new}")).collect();
        if !words.is_empty() {
            notes.push(format!("the kernel renumbers the nodes: {}", words.join(", ")));
        }
    }

    fn cpus(&self, old: &CpuSet) -> CpuSet {
        old.iter().filter_map(|cpu| self.cpus.get(&cpu).copied()).collect()
    }

    /// The machine with the new numbers; sizes are still the declared ones.
    fn machine(&self, machine: &Machine, kept: &[&Cpu]) -> Machine {
        let mut nodes: Vec<Node> = machine.nodes.iter().map(|node| self.node(node)).collect();
        nodes.sort_by_key(|node| node.id);
        Machine {
            packages: self.packages(machine),
            nodes,
            domains: self.domains(machine),
            cores: self.cores(machine),
            cpus: kept.iter().map(|cpu| self.cpu(cpu)).collect(),
            caches: self.caches(machine),
            links: machine.links.iter().filter_map(|link| self.link(link)).collect(),
            distances: self.distances(machine),
            dies: Vec::new(),
            cpu_kinds: Vec::new(),
            limits: Limits::default(),
            hidden: Hidden::default(),
            page_size: PAGE,
            huge_page_size: Some(HUGE_PAGE),
            ..machine.clone()
        }
    }

    fn cpu(&self, cpu: &Cpu) -> Cpu {
        Cpu {
            id: self.cpus[&cpu.id],
            core: self.cores[&cpu.core],
            domain: self.domains[&cpu.domain],
            node: self.nodes[&cpu.node],
            package: self.packages[&cpu.package],
        }
    }

    fn node(&self, node: &Node) -> Node {
        Node {
            id: self.nodes[&node.id],
            package: node.package.and_then(|id| self.packages.get(&id).copied()),
            cpus: self.cpus(&node.cpus),
            near: self.cpus(&node.near),
            huge_pages: Vec::new(),
            ..node.clone()
        }
    }

    fn packages(&self, machine: &Machine) -> Vec<Package> {
        let kept = machine.packages.iter().filter_map(|package| {
            let id = *self.packages.get(&package.id)?;
            Some(Package { id, cpus: self.cpus(&package.cpus), ..package.clone() })
        });
        let mut packages: Vec<Package> = kept.collect();
        packages.sort_by_key(|package| package.id);
        packages
    }

    fn domains(&self, machine: &Machine) -> Vec<Domain> {
        let kept = machine.domains.iter().filter_map(|domain| {
            let id = *self.domains.get(&domain.id)?;
            let (node, cpus) = (self.nodes[&domain.node], self.cpus(&domain.cpus));
            Some(Domain { id, node, cpus, ..domain.clone() })
        });
        let mut domains: Vec<Domain> = kept.collect();
        domains.sort_by_key(|domain| domain.id);
        domains
    }

    fn cores(&self, machine: &Machine) -> Vec<Core> {
        let kept = machine.cores.iter().filter_map(|core| {
            let id = *self.cores.get(&core.id)?;
            Some(Core { id, domain: self.domains[&core.domain], cpus: self.cpus(&core.cpus) })
        });
        let mut cores: Vec<Core> = kept.collect();
        cores.sort_by_key(|core| core.id);
        cores
    }

    fn caches(&self, machine: &Machine) -> Vec<Cache> {
        let kept = machine.caches.iter().filter_map(|cache| {
            let cpus = self.cpus(&cache.cpus);
            (!cpus.is_empty()).then(|| Cache { cpus, ..cache.clone() })
        });
        let mut caches: Vec<Cache> = kept.collect();
        caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        caches
    }

    fn link(&self, link: &Link) -> Option<Link> {
        let (a, b) = (*self.nodes.get(&link.a)?, *self.nodes.get(&link.b)?);
        Some(Link { a: a.min(b), b: a.max(b), ..link.clone() })
    }

    fn distances(&self, machine: &Machine) -> Vec<Vec<u32>> {
        let mut distances = vec![vec![0; machine.nodes.len()]; machine.nodes.len()];
        for (from, row) in machine.nodes.iter().zip(&machine.distances) {
            for (to, &distance) in machine.nodes.iter().zip(row) {
                distances[self.nodes[&from.id].index()][self.nodes[&to.id].index()] = distance;
            }
        }
        distances
    }

    /// The fact under the new numbers; None if it is about what was cut, or about a size.
    fn fact(&self, fact: &Fact) -> Option<Fact> {
        if matches!(fact.quantity, Quantity::Memory | Quantity::MemoryFree | Quantity::Cache) {
            return None;
        }
        let node = |id| self.nodes.get(&id).copied();
        let cpu = |id| self.cpus.get(&id).copied();
        let subject = match fact.subject {
            Subject::Machine | Subject::Link(_) => fact.subject,
            Subject::Package(id) => Subject::Package(*self.packages.get(&id)?),
            Subject::Node(id) => Subject::Node(node(id)?),
            Subject::Domain(id) => Subject::Domain(*self.domains.get(&id)?),
            Subject::Path { from, to } => Subject::Path { from: node(from)?, to: node(to)? },
            Subject::CpuPair { from, to } => Subject::CpuPair { from: cpu(from)?, to: cpu(to)? },
        };
        Some(Fact { subject, ..fact.clone() })
    }
}

/// Sets the memory of the nodes in proportion to the declared sizes.
fn cut_memory(
    machine: &Machine,
    small: &mut Machine,
    numbers: &Renumbering,
    shape: &GuestShape,
    notes: &mut Vec<String>,
) {
    let count = machine.nodes_with_memory().count() as u64;
    let share = (MEMORY / count.max(1)).clamp(*NODE_MEMORY.start(), *NODE_MEMORY.end());
    let largest = shape.memory_per_node.map_or(share, |memory| memory.0.max(MEMORY_STEP.0));
    let declared_max = machine.nodes.iter().map(|node| node.memory.0).max().unwrap_or(1);
    let mut cut = Vec::new();
    for node in machine.nodes_with_memory() {
        let part = node.memory.0 as f64 / declared_max as f64 * largest as f64;
        let part = (part as u64).max(largest.min(*NODE_MEMORY.start()));
        let memory = Bytes(part.div_ceil(MEMORY_STEP.0).saturating_mul(MEMORY_STEP.0));
        let place = &mut small.nodes[numbers.nodes[&node.id].index()];
        (place.memory, place.memory_free) = (memory, memory);
        cut.push((numbers.nodes[&node.id], memory, node.memory));
    }
    cut.retain(|(_, memory, declared)| memory != declared);
    note_by_node(&cut, "memory", ToString::to_string, notes);
}

fn cut_caches(small: &mut Machine, divisor: u32, notes: &mut Vec<String>) {
    if divisor == 1 {
        return;
    }
    let divided = |size: Bytes| Bytes((size.0 / u64::from(divisor)).max(1));
    for cache in &mut small.caches {
        cache.size = cache.size.map(divided);
    }
    for domain in &mut small.domains {
        domain.cache = domain.cache.map(divided);
    }
    notes.push(format!("modelled caches are smaller by {divisor}"));
}

fn mend_distances(small: &mut Machine, notes: &mut Vec<String>) {
    let mut is_mended = false;
    for (from, row) in small.distances.iter_mut().enumerate() {
        for (to, distance) in row.iter_mut().enumerate() {
            let range = if from == to { LOCAL_DISTANCE..=LOCAL_DISTANCE } else { REMOTE_DISTANCE };
            let mended = (*distance).clamp(*range.start(), *range.end());
            is_mended |= mended != *distance;
            *distance = mended;
        }
    }
    if is_mended {
        notes.push("distances are 10 within a node and 11 to 254 between nodes".into());
    }
}
