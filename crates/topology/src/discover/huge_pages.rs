//! Pools of explicit huge pages: `/sys/devices/system/node/node*/hugepages` and, where the kernel
//! does not know NUMA, `/sys/kernel/mm/hugepages`.
//!
//! There is a pool for each size that the processor offers, mostly an empty one.

use atoll_sys::Root;

use super::nodes::{self, Nodes};
use super::read;
use crate::discover::DiscoverError;
use crate::{Bytes, HugePages, NodeId};

const MACHINE: &str = "/sys/kernel/mm/hugepages";

/// The node's pools, ordered by the size of their pages.
pub(super) fn read(
    root: &Root,
    nodes: &Nodes,
    node: NodeId,
) -> Result<Vec<HugePages>, DiscoverError> {
    let directory = if nodes.numa { nodes::file(node, "hugepages") } else { MACHINE.to_owned() };
    if !root.exists(&directory) {
        return Ok(Vec::new());
    }
    let mut pools = Vec::new();
    for name in root.list(&directory)?.iter().filter(|name| name.starts_with("hugepages-")) {
        let directory = format!("{directory}/{name}");
        let size = size(root, &directory, name)?;
        let total = pages(root, &format!("{directory}/nr_hugepages"))?;
        let free = pages(root, &format!("{directory}/free_hugepages"))?;
        pools.push(HugePages { size, total, free });
    }
    pools.sort_unstable_by_key(|pool| pool.size);
    Ok(pools)
}

/// Size of a pool's pages, from its name: `hugepages-2048kB`.
fn size(root: &Root, directory: &str, name: &str) -> Result<Bytes, DiscoverError> {
    let number = name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB"));
    let bytes = number.and_then(|number| number.parse::<u64>().ok()?.checked_mul(1024));
    bytes
        .filter(|&bytes| bytes > 0)
        .map(Bytes)
        .ok_or_else(|| read::malformed(root, directory, "a name such as hugepages-2048kB", name))
}

fn pages(root: &Root, name: &str) -> Result<u64, DiscoverError> {
    let number = read::number_if_present(root, name)?.unwrap_or(0);
    u64::try_from(number)
        .map_err(|_| read::malformed(root, name, "a number of pages", &number.to_string()))
}
