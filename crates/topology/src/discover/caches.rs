//! Last-level caches: `/sys/devices/system/cpu/cpu*/cache/index*`.
//!
//! A cpu's last-level cache is its data or unified cache of the highest level. The cpus of one node
//! that share it are a domain; a cache shared by several nodes (sub-NUMA clusters) makes one domain
//! on each. Where a cpu's caches are unknown, the unknown cpus of its node are one domain.

use atoll_sys::Root;

use super::cpus::{self, Peers};
use super::read;
use crate::assemble::CachePart;
use crate::discover::DiscoverError;
use crate::{Bytes, CpuId};

/// The cpu's last-level cache and who shares it.
pub(super) fn last_level(root: &Root, peers: &Peers<'_>) -> Result<CachePart, DiscoverError> {
    let mut highest: Option<(u32, String)> = None;
    for index in indexes(root, peers.cpu)? {
        if let Some(level) = data_level(root, &index)?
            && highest.as_ref().is_none_or(|(found, _)| level > *found)
        {
            highest = Some((level, index));
        }
    }
    let unknown = CachePart { leader: peers.node_leader(), level: None, size: None };
    let Some((level, index)) = highest else { return Ok(unknown) };
    let Some(shared) = read::set_if_present(root, &format!("{index}/shared_cpu_list"))? else {
        return Ok(unknown);
    };
    let size = size(root, &format!("{index}/size"))?;
    Ok(CachePart { leader: peers.leader(&shared), level: Some(level), size })
}

/// Directories of the cpu's caches.
fn indexes(root: &Root, cpu: CpuId) -> Result<Vec<String>, DiscoverError> {
    let directory = cpus::file(cpu, "cache");
    if !root.exists(&directory) {
        return Ok(Vec::new());
    }
    let names = root.list(&directory)?;
    Ok(names
        .iter()
        .filter(|name| name.starts_with("index"))
        .map(|name| format!("{directory}/{name}"))
        .collect())
}

/// Level of a cache; none for an instruction cache or one whose level the kernel does not know.
fn data_level(root: &Root, index: &str) -> Result<Option<u32>, DiscoverError> {
    let kind = root.read_text_if_present(&format!("{index}/type"))?;
    if kind.is_some_and(|kind| kind.trim() == "Instruction") {
        return Ok(None);
    }
    let name = format!("{index}/level");
    let Some(level) = read::number_if_present(root, &name)? else { return Ok(None) };
    u32::try_from(level)
        .map(Some)
        .map_err(|_| read::malformed(root, &name, "a cache level", &level.to_string()))
}

/// Size of a cache, which the kernel writes as `32768K`.
fn size(root: &Root, name: &str) -> Result<Option<Bytes>, DiscoverError> {
    let Some(text) = root.read_text_if_present(name)? else { return Ok(None) };
    let number = text.trim().strip_suffix('K').and_then(|number| number.parse::<u64>().ok());
    let bytes = number.and_then(|number| number.checked_mul(1024)).map(Bytes);
    bytes.map(Some).ok_or_else(|| read::malformed(root, name, "a size such as 32768K", &text))
}
