//! The output of `numactl -H` on a machine, from the files that numactl reads.
//!
//! It differs from the [`Machine`](atoll_topology::Machine) of the same files: numactl shows every node of
//! `/sys/devices/system/node`, also those without cpus and memory and those outside the cpuset, takes
//! sizes from `node*/meminfo` alone, and shows all online cpus whatever the process may use.

use atoll_sys::{CallErrorKind, Root, get_mempolicy};

use super::{DistanceWidth, NodeLines, text};
use atoll_topology::mask;
use atoll_topology::{Bytes, CpuSet, DiscoverError, NodeId, SET_NUMBER_MAX};

const DIRECTORY: &str = "/sys/devices/system/node";

/// Why the output of numactl cannot be produced.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// The kernel has no NUMA support. The message is the line that numactl prints to its output
    /// ([`NO_NUMA`](super::NO_NUMA)) before it exits with code 1.
    #[error("{}", super::NO_NUMA)]
    NoNuma,
    /// A file could not be read or parsed.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
}

/// The output of `numactl -H` on the machine whose sysfs is under `root`.
pub fn hardware(root: &Root, columns: DistanceWidth) -> Result<String, HardwareError> {
    if !is_available(root, columns) {
        return Err(HardwareError::NoNuma);
    }
    let ids = ids(root)?;
    let nodes = ids.iter().map(|&id| node(root, id)).collect::<Result<Vec<_>, _>>()?;
    let distances = ids.iter().map(|&id| distances(root, id, ids.len()));
    Ok(text(&nodes, &distances.collect::<Result<Vec<_>, _>>()?, columns))
}

/// Whether numactl finds NUMA: it asks the kernel for the policy of the thread. On a live kernel that supports the
/// call but hides the directory, numactl prints an empty list, and so does this function; in a copied tree only the
/// directory shows it. Since 2.0.19, a container that forbids the call counts as NUMA.
fn is_available(root: &Root, columns: DistanceWidth) -> bool {
    if !root.is_live() {
        return root.exists(DIRECTORY);
    }
    match get_mempolicy().map_err(|error| error.kind()) {
        Err(CallErrorKind::Unsupported) => false,
        Err(CallErrorKind::Refused) => columns == DistanceWidth::Narrow,
        _ => true,
    }
}

/// Numbers of the directories `node*`, in ascending order.
fn ids(root: &Root) -> Result<Vec<NodeId>, DiscoverError> {
    if !root.exists(DIRECTORY) {
        return Ok(Vec::new());
    }
    let names = root.list(DIRECTORY)?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix("node"));
    let mut ids = numbers
        .filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|number| match number.parse() {
            Ok(id) if id <= SET_NUMBER_MAX => Ok(NodeId(id)),
            _ => Err(malformed(root, DIRECTORY, "node numbers up to 65535", number)),
        })
        .collect::<Result<Vec<_>, _>>()?;
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn node(root: &Root, id: NodeId) -> Result<NodeLines, DiscoverError> {
    let cpus = cpus(root, id)?;
    let (size, free) = match root.read_text_if_present(&file(id, "meminfo"))? {
        Some(text) => (kilobytes(&text, "MemTotal"), kilobytes(&text, "MemFree")),
        None => (None, None),
    };
    // numactl sets free memory to 0 before it reads, and the size to "not available".
    Ok(NodeLines { id, cpus, size, free: free.or(Some(Bytes(0))) })
}

/// Cpus of a node: `cpumap`, which numactl reads, or the equivalent `cpulist`.
fn cpus(root: &Root, id: NodeId) -> Result<CpuSet, DiscoverError> {
    let name = file(id, "cpumap");
    if let Some(text) = root.read_text_if_present(&name)? {
        return mask::parse(&text).ok_or_else(|| malformed(root, &name, mask::EXPECTED, &text));
    }
    let name = file(id, "cpulist");
    let Some(text) = root.read_text_if_present(&name)? else { return Ok(CpuSet::new()) };
    CpuSet::parse(&text).map_err(|_| malformed(root, &name, "a list such as 0-3,8", &text))
}

/// The number before `kB` in the last line that holds the key.
fn kilobytes(text: &str, key: &str) -> Option<Bytes> {
    let line = text.lines().rfind(|line| line.contains(key))?;
    let number = line.trim_end().strip_suffix("kB")?.split_whitespace().next_back()?;
    number.parse::<u64>().ok()?.checked_mul(1024).map(Bytes)
}

/// A node's row: one distance per node; 0 if the kernel reports none.
fn distances(root: &Root, id: NodeId, nodes: usize) -> Result<Vec<u32>, DiscoverError> {
    let text = root.read_text_if_present(&file(id, "distance"))?.unwrap_or_default();
    let mut row: Vec<u32> =
        text.split_whitespace().map_while(|number| number.parse().ok()).take(nodes).collect();
    row.resize(nodes, 0);
    Ok(row)
}

fn file(id: NodeId, name: &str) -> String {
    format!("{DIRECTORY}/node{id}/{name}")
}

fn malformed(root: &Root, name: &str, expected: &'static str, found: &str) -> DiscoverError {
    match root.path(name) {
        Ok(path) => DiscoverError::Malformed {
            path,
            expected,
            found: found.trim().chars().take(40).collect(),
        },
        Err(outside) => outside.into(),
    }
}
