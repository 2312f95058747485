//! Caches of every level: `/sys/devices/system/cpu/cpu*/cache/index*`.
//!
//! A cpu's last-level cache is its data or unified cache of the highest level. The cpus of one node
//! that share it are a domain; a cache shared by several nodes (sub-NUMA clusters) makes one domain
//! on each. Cpus of a node whose caches are unknown form one domain.
//!
//! Every cpu lists its caches, so a shared cache appears once per cpu: it is recognised by its level, kind and list of
//! cpus, and its other attributes are read only once.

use std::collections::{HashMap, HashSet};

use super::files::{KernelFiles, cpu_file};
use super::peers::Peers;
use crate::assemble::CachePart;
use crate::{Bytes, Cache, CacheKind, CpuId, CpuSet};

/// Caches found so far. Their sets of cpus are those of the kernel, usable or not.
#[derive(Debug, Default)]
pub(super) struct CacheList {
    found: Vec<Cache>,
    known: HashMap<(u32, CacheKind, CpuSet), usize>,
}

/// A cache of a cpu, as described by its directory.
struct Index {
    directory: String,
    level: u32,
    kind: CacheKind,
}

impl CacheList {
    /// Reads the cpu's caches and returns its last-level cache and who shares it. `core` are the threads of the cpu's
    /// core.
    pub(super) fn read(
        &mut self,
        files: &KernelFiles<'_>,
        peers: &Peers<'_>,
        core: &CpuSet,
    ) -> CachePart {
        let mut last: Option<(u32, Option<usize>)> = None;
        for index in indexes(files, peers.cpu) {
            let cache = self.cache(files, &index, core);
            let higher = last.is_none_or(|(level, _)| index.level > level);
            if index.kind != CacheKind::Instruction && higher {
                last = Some((index.level, cache));
            }
        }
        let unknown = CachePart { leader: peers.node_leader(), level: None, size: None };
        let Some((level, Some(cache))) = last else { return unknown };
        let Cache { cpus, size, .. } = &self.found[cache];
        CachePart { leader: peers.leader(cpus), level: Some(level), size: *size }
    }

    /// The index of a cache in those found. Returns None if its sharers are unknown.
    fn cache(&mut self, files: &KernelFiles<'_>, index: &Index, core: &CpuSet) -> Option<usize> {
        let &Index { ref directory, level, kind } = index;
        let cpus = shared(files, directory, core)?;
        if let Some(&known) = self.known.get(&(level, kind, cpus.clone())) {
            return Some(known);
        }
        let size = size(files, &format!("{directory}/size"));
        let line = files.count(&format!("{directory}/coherency_line_size"), "a number of bytes");
        let line = line.filter(|&line: &u32| line > 0).map(|line| Bytes(line.into()));
        let ways = files.count(&format!("{directory}/ways_of_associativity"), "a number of ways");
        let place = self.found.len();
        self.known.insert((level, kind, cpus.clone()), place);
        self.found.push(Cache { level, kind, cpus, size, line, ways });
        Some(place)
    }

    /// The caches that usable cpus share, with those cpus; lists that differ only in other cpus are merged into one
    /// cache.
    pub(super) fn usable(self, usable: &CpuSet) -> Vec<Cache> {
        let mut known = HashSet::new();
        let mut caches = Vec::new();
        for mut cache in self.found {
            cache.cpus = cache.cpus.intersection(usable);
            let key = (cache.level, cache.kind, cache.cpus.clone());
            if !cache.cpus.is_empty() && known.insert(key) {
                caches.push(cache);
            }
        }
        caches
    }
}

/// The cpus that share a cache. Old kernels for IA-64 list none, which means those of the core.
fn shared(files: &KernelFiles<'_>, directory: &str, core: &CpuSet) -> Option<CpuSet> {
    let mask = format!("{directory}/shared_cpu_map");
    let cpus: CpuSet = files.list_or_mask(&format!("{directory}/shared_cpu_list"), &mask)?;
    if cpus.is_empty() {
        files.assume(
            &mask,
            "no cpu shares the cache",
            format_args!("taken as cpus {core}, its core"),
        );
        return Some(core.clone());
    }
    Some(cpus)
}

/// The cpu's caches with a known level.
fn indexes(files: &KernelFiles<'_>, cpu: CpuId) -> Vec<Index> {
    let directory = cpu_file(cpu, "cache");
    let names = files.list(&directory).into_iter().filter(|name| name.starts_with("index"));
    names
        .filter_map(|name| {
            let directory = format!("{directory}/{name}");
            let level = files.count(&format!("{directory}/level"), "a cache level")?;
            Some(Index { kind: kind(files, &directory), directory, level })
        })
        .collect()
}

/// The kind of a cache; unified if the kernel does not report it, so that it counts as a data cache.
fn kind(files: &KernelFiles<'_>, directory: &str) -> CacheKind {
    let kind = files.text(&format!("{directory}/type"));
    match kind.as_deref().map(str::trim) {
        Some("Instruction") => CacheKind::Instruction,
        Some("Data") => CacheKind::Data,
        _ => CacheKind::Unified,
    }
}

/// Size of a cache, which the kernel writes as `32768K`.
fn size(files: &KernelFiles<'_>, name: &str) -> Option<Bytes> {
    let text = files.text(name)?;
    let number = text.trim().strip_suffix('K').and_then(|number| number.parse::<u64>().ok());
    let bytes = number.and_then(|number| number.checked_mul(1024)).map(Bytes);
    if bytes.is_none() {
        files.malformed(name, "a size such as 32768K", &text);
    }
    bytes
}
