//! Caches of every level: `/sys/devices/system/cpu/cpu*/cache/index*`.
//!
//! A cpu's last-level cache is its data or unified cache of the highest level. The cpus of one node
//! that share it are a domain; a cache shared by several nodes (sub-NUMA clusters) makes one domain
//! on each. Where a cpu's caches are unknown, the unknown cpus of its node are one domain.
//!
//! Every cpu lists its caches, so a shared one is met once for each cpu that shares it: it is known
//! again by its level, kind and list of cpus, and only the first meeting reads the rest of it.

use std::collections::{HashMap, HashSet};

use atoll_sys::Root;

use super::cpus::{self, Peers};
use super::read;
use crate::assemble::CachePart;
use crate::discover::DiscoverError;
use crate::{Bytes, Cache, CacheKind, CpuId, CpuSet};

/// Caches found so far. Their sets of cpus are as the kernel tells them, usable or not.
#[derive(Debug, Default)]
pub(super) struct CacheList {
    found: Vec<Cache>,
    by_text: HashMap<(u32, CacheKind, String), usize>,
}

/// A cache of a cpu, as far as its directory tells.
struct Index {
    directory: String,
    level: u32,
    kind: CacheKind,
}

impl CacheList {
    /// Reads the cpu's caches; tells its last-level cache and who shares it.
    pub(super) fn read(
        &mut self,
        root: &Root,
        peers: &Peers<'_>,
    ) -> Result<CachePart, DiscoverError> {
        let mut last: Option<(u32, Option<usize>)> = None;
        for index in indexes(root, peers.cpu)? {
            let cache = self.cache(root, &index)?;
            let higher = last.is_none_or(|(level, _)| index.level > level);
            if index.kind != CacheKind::Instruction && higher {
                last = Some((index.level, cache));
            }
        }
        let unknown = CachePart { leader: peers.node_leader(), level: None, size: None };
        let Some((level, Some(cache))) = last else { return Ok(unknown) };
        let Cache { cpus, size, .. } = &self.found[cache];
        Ok(CachePart { leader: peers.leader(cpus), level: Some(level), size: *size })
    }

    /// The place of a cache in those found; none where nothing tells who shares it.
    fn cache(&mut self, root: &Root, index: &Index) -> Result<Option<usize>, DiscoverError> {
        let &Index { ref directory, level, kind } = index;
        let name = format!("{directory}/shared_cpu_list");
        let Some(shared) = root.read_text_if_present(&name)? else { return Ok(None) };
        if let Some(&known) = self.by_text.get(&(level, kind, shared.clone())) {
            return Ok(Some(known));
        }
        let cpus = read::set_in(root, &name, &shared)?;
        let size = size(root, &format!("{directory}/size"))?;
        let line = count(root, &format!("{directory}/coherency_line_size"), "a number of bytes")?;
        let line = line.filter(|&line| line > 0).map(|line| Bytes(line.into()));
        let ways = count(root, &format!("{directory}/ways_of_associativity"), "a number of ways")?;
        self.found.push(Cache { level, kind, cpus, size, line, ways });
        let place = self.found.len() - 1;
        self.by_text.insert((level, kind, shared), place);
        Ok(Some(place))
    }

    /// The caches that usable cpus share, with those cpus; one cache where lists that differ in
    /// other cpus only are the same.
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

/// The cpu's caches whose level the kernel knows.
fn indexes(root: &Root, cpu: CpuId) -> Result<Vec<Index>, DiscoverError> {
    let directory = cpus::file(cpu, "cache");
    if !root.exists(&directory) {
        return Ok(Vec::new());
    }
    let mut indexes = Vec::new();
    for name in root.list(&directory)?.iter().filter(|name| name.starts_with("index")) {
        let directory = format!("{directory}/{name}");
        if let Some(level) = count(root, &format!("{directory}/level"), "a cache level")? {
            let kind = kind(root, &directory)?;
            indexes.push(Index { directory, level, kind });
        }
    }
    Ok(indexes)
}

/// What a cache holds: both where the kernel does not tell, so that it counts as a data cache.
fn kind(root: &Root, directory: &str) -> Result<CacheKind, DiscoverError> {
    let kind = root.read_text_if_present(&format!("{directory}/type"))?;
    Ok(match kind.as_deref().map(str::trim) {
        Some("Instruction") => CacheKind::Instruction,
        Some("Data") => CacheKind::Data,
        _ => CacheKind::Unified,
    })
}

/// A number from 0 on, such as a level; none where the kernel does not tell.
fn count(root: &Root, name: &str, expected: &'static str) -> Result<Option<u32>, DiscoverError> {
    let Some(number) = read::number_if_present(root, name)? else { return Ok(None) };
    u32::try_from(number)
        .map(Some)
        .map_err(|_| read::malformed(root, name, expected, &number.to_string()))
}

/// Size of a cache, which the kernel writes as `32768K`.
fn size(root: &Root, name: &str) -> Result<Option<Bytes>, DiscoverError> {
    let Some(text) = root.read_text_if_present(name)? else { return Ok(None) };
    let number = text.trim().strip_suffix('K').and_then(|number| number.parse::<u64>().ok());
    let bytes = number.and_then(|number| number.checked_mul(1024)).map(Bytes);
    bytes.map(Some).ok_or_else(|| read::malformed(root, name, "a size such as 32768K", &text))
}
