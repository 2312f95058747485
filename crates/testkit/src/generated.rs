//! Generated machines: uneven, with sparse numbers, memory without cpus and cpus without memory, nodes over several
//! packages, dies, kinds of cpus and memory-side caches. The same seed gives the same machine, and each is the expected
//! result of discovery on its tree ([`write_sysfs`](crate::machines::write_sysfs)).

use std::collections::BTreeMap;

use atoll_sys::SplitMix64;
use atoll_topology::assemble::{self, CachePart, CpuPart, MachineParts, NodePart};
use atoll_topology::{
    Bytes, Cache, CacheKind, CpuId, CpuKind, CpuSet, Die, Hidden, HugePages, Limits, Machine,
    NodeId, PackageId, SideCache, Source,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A core before its cpus are numbered: its node and package, its domain within the machine, its threads.
struct GeneratedCore {
    node: NodeId,
    package: PackageId,
    domain: u32,
    threads: u32,
}

/// The machine of a seed: up to 6 nodes and some 80 cpus.
pub fn machine(seed: u64) -> Machine {
    let mut random = SplitMix64::new(seed);
    let random = &mut random;
    let ids = sparse(random, 1, 6).into_iter().map(NodeId).collect::<Vec<_>>();
    let cores = cores(random, &ids);
    let numbers = numbers(random, &cores);
    let caches_known = chance(random, 80);
    let llc = caches_known.then(|| Bytes((1 + random.below(64)) * 256 * KIB));
    let parts = cpu_parts(&cores, &numbers, llc);
    let caches = if caches_known { caches(random, &parts, llc) } else { Vec::new() };
    let nodes = node_parts(random, &ids, &parts);
    let known = |known: bool| if known { Source::Discovered } else { Source::Assumed };
    let huge_page_size = chance(random, 70).then_some(Bytes(2 * MIB));
    assemble::machine(MachineParts {
        name: format!("seed-{seed}"),
        source: Source::Discovered,
        models: models(random, &parts),
        memory_source: Source::Discovered,
        memory_free_source: Source::Observed,
        dies: dies(random, &parts),
        cpu_kinds: kinds(random, &parts),
        caches_source: known(caches_known),
        caches,
        links: Vec::new(),
        links_source: Source::Assumed,
        distances: distances(random, nodes.len()),
        distances_source: Source::Discovered,
        hidden: Hidden::default(),
        limits: Limits::default(),
        pages_source: Source::Discovered,
        page_size: Bytes(4096 << (4 * random.below(2))),
        huge_page_size,
        assumptions: Vec::new(),
        cpus: parts,
        nodes,
    })
}

/// True in this many of a hundred cases.
pub fn chance(random: &mut SplitMix64, percent: u64) -> bool {
    random.below(100) < percent
}

/// This many ascending numbers, mostly without gaps.
fn sparse(random: &mut SplitMix64, least: u64, most: u64) -> Vec<u32> {
    let count = least + random.below(most - least + 1);
    let mut next = random.below(2) as u32;
    (0..count)
        .map(|_| {
            let number = next;
            next += if chance(random, 80) { 1 } else { 1 + random.below(70) as u32 };
            number
        })
        .collect()
}

/// The cores of all nodes; the first node has some, others may have memory only.
fn cores(random: &mut SplitMix64, ids: &[NodeId]) -> Vec<GeneratedCore> {
    let across = chance(random, 10);
    let mut cores = Vec::new();
    let (mut package, mut domain) = (0, 0);
    for (position, &node) in ids.iter().enumerate() {
        package += if chance(random, 60) { 1 } else { 0 };
        if position > 0 && chance(random, 20) {
            continue;
        }
        for _ in 0..1 + random.below(3) {
            domain += 1;
            for _ in 0..1 + random.below(3) {
                let package = if across { random.below(3) as u32 } else { package };
                let threads = 1 + random.below(3) as u32;
                cores.push(GeneratedCore { node, package: PackageId(package), domain, threads });
            }
        }
    }
    cores
}

/// The cpu numbers of each core: core by core, second threads last, or in random order, with gaps.
fn numbers(random: &mut SplitMix64, cores: &[GeneratedCore]) -> Vec<Vec<CpuId>> {
    let mut places: Vec<(u64, usize)> = Vec::new();
    let order = random.below(3);
    for (core, each) in cores.iter().enumerate() {
        for thread in 0..each.threads {
            let key = match order {
                0 => core as u64,
                1 => u64::from(thread),
                _ => random.next(),
            };
            places.push((key, core));
        }
    }
    places.sort_by_key(|(key, _)| *key);
    let mut numbers = vec![Vec::new(); cores.len()];
    let mut next = 0;
    for (_, core) in places {
        next += if chance(random, 5) { random.below(40) as u32 } else { 0 };
        numbers[core].push(CpuId(next));
        next += 1;
    }
    numbers
}

fn cpu_parts(cores: &[GeneratedCore], numbers: &[Vec<CpuId>], llc: Option<Bytes>) -> Vec<CpuPart> {
    let mut leaders: BTreeMap<u32, CpuId> = BTreeMap::new();
    for (core, cpus) in cores.iter().zip(numbers) {
        let leader = leaders.entry(core.domain).or_insert(cpus[0]);
        *leader = (*leader).min(cpus[0]);
    }
    // Without caches all cpus of a node are one domain.
    let leader = |core: &GeneratedCore| llc.map_or(CpuId(0), |_| leaders[&core.domain]);
    let part = |core: &GeneratedCore, cpus: &[CpuId], id: CpuId| CpuPart {
        id,
        package: core.package,
        node: core.node,
        core: cpus[0],
        cache: CachePart { leader: leader(core), level: llc.map(|_| 3), size: llc },
    };
    let mut parts: Vec<CpuPart> = Vec::new();
    for (core, cpus) in cores.iter().zip(numbers) {
        parts.extend(cpus.iter().map(|&id| part(core, cpus, id)));
    }
    parts.sort_by_key(|part| part.id);
    parts
}

/// Cpus grouped by a common value.
fn grouped<K: Ord>(parts: &[CpuPart], key: impl Fn(&CpuPart) -> K) -> BTreeMap<K, CpuSet> {
    let mut groups: BTreeMap<K, CpuSet> = BTreeMap::new();
    for part in parts {
        groups.entry(key(part)).or_default().insert(part.id);
    }
    groups
}

/// Caches of every core, some of which differ, and those that define the domains.
fn caches(random: &mut SplitMix64, parts: &[CpuPart], llc: Option<Bytes>) -> Vec<Cache> {
    let mut caches = Vec::new();
    let kinds = [(1, CacheKind::Data), (1, CacheKind::Instruction), (2, CacheKind::Unified)];
    for (level, kind) in kinds.into_iter().filter(|_| chance(random, 80)).collect::<Vec<_>>() {
        for cpus in grouped(parts, |part| (part.node, part.core)).into_values() {
            let size = chance(random, 90).then(|| Bytes((1 + random.below(64)) * 16 * KIB));
            let line = chance(random, 80).then_some(Bytes(64));
            let ways = chance(random, 80).then(|| random.below(17) as u32);
            caches.push(Cache { level, kind, cpus, size, line, ways });
        }
    }
    for cpus in grouped(parts, |part| (part.node, part.cache.leader)).into_values() {
        let (kind, size) = (CacheKind::Unified, llc);
        caches.push(Cache { level: 3, kind, cpus, size, line: Some(Bytes(64)), ways: None });
    }
    caches
}

fn node_parts(random: &mut SplitMix64, ids: &[NodeId], parts: &[CpuPart]) -> Vec<NodePart> {
    let cpus = grouped(parts, |part| part.node);
    let part = |&id: &NodeId| {
        let has_cpus = cpus.contains_key(&id);
        let memory = (1 + random.below(1 << 30)) * KIB;
        let memory = if has_cpus && chance(random, 15) { 0 } else { memory };
        let near = match has_cpus || chance(random, 50) {
            true => CpuSet::new(),
            false => cpus.values().filter(|_| chance(random, 50)).flat_map(CpuSet::iter).collect(),
        };
        let pools = if memory == 0 { 0 } else { random.below(3) };
        let pool = |size: u64| HugePages {
            size: Bytes((2 * MIB) << (9 * size)),
            total: 7 * size,
            free: size,
        };
        let levels = if chance(random, 20) { 1 + random.below(2) as u32 } else { 0 };
        let cache = |level| SideCache {
            level,
            size: Bytes(u64::from(level) * MIB),
            line: (level == 1).then_some(Bytes(64)),
        };
        NodePart {
            near,
            memory_free: Bytes(random.below(memory / KIB + 1) * KIB),
            huge_pages: (0..pools).map(pool).collect(),
            side_caches: (1..=levels).rev().map(cache).collect(),
            ..NodePart::new(id, Bytes(memory))
        }
    };
    ids.iter().map(part).collect()
}

fn models(random: &mut SplitMix64, parts: &[CpuPart]) -> BTreeMap<PackageId, String> {
    let packages = grouped(parts, |part| part.package).into_keys();
    let known = packages.filter(|_| chance(random, 70)).collect::<Vec<_>>();
    known.into_iter().map(|id| (id, format!("Model {}", random.below(3)))).collect()
}

fn dies(random: &mut SplitMix64, parts: &[CpuPart]) -> Vec<Die> {
    if !chance(random, 30) {
        return Vec::new();
    }
    let dies = grouped(parts, |part| (part.package, part.core.0 % 3)).into_iter();
    dies.map(|((package, id), cpus)| Die { id, package, cpus }).collect()
}

fn kinds(random: &mut SplitMix64, parts: &[CpuPart]) -> Vec<CpuKind> {
    if !chance(random, 30) {
        return Vec::new();
    }
    let kinds = grouped(parts, |part| part.core.0 % 3 == 0).into_iter();
    let name = |small| if small { "E cores" } else { "P cores" }.to_owned();
    kinds.map(|(small, cpus)| CpuKind { name: name(small), cpus }).collect()
}

fn distances(random: &mut SplitMix64, nodes: usize) -> Vec<Vec<u32>> {
    let mut row = |from| -> Vec<u32> {
        (0..nodes).map(|to| if from == to { 10 } else { 11 + random.below(60) as u32 }).collect()
    };
    (0..nodes).map(&mut row).collect()
}
