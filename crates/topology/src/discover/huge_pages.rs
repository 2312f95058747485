//! Pools of explicit huge pages: `/sys/devices/system/node/node*/hugepages` and, on kernels without NUMA,
//! `/sys/kernel/mm/hugepages`.
//!
//! There is a pool for each size that the processor supports, usually empty.

use super::files::KernelFiles;
use super::nodes::{self, Nodes};
use crate::{Bytes, HugePages, NodeId};

const MACHINE: &str = "/sys/kernel/mm/hugepages";

/// The node's pools, ordered by the size of their pages.
pub(super) fn read(files: &KernelFiles<'_>, nodes: &Nodes, node: NodeId) -> Vec<HugePages> {
    let directory = if nodes.numa { nodes::file(node, "hugepages") } else { MACHINE.to_owned() };
    let names = files.list(&directory);
    let names = names.iter().filter(|name| name.starts_with("hugepages-"));
    let mut pools: Vec<HugePages> =
        names.filter_map(|name| pool(files, &format!("{directory}/{name}"), name)).collect();
    pools.sort_unstable_by_key(|pool| pool.size);
    pools
}

fn pool(files: &KernelFiles<'_>, directory: &str, name: &str) -> Option<HugePages> {
    let pages = |file| files.count(&format!("{directory}/{file}"), "a number of pages");
    Some(HugePages {
        size: size(files, directory, name)?,
        total: pages("nr_hugepages").unwrap_or(0),
        free: pages("free_hugepages").unwrap_or(0),
    })
}

/// Size of a pool's pages, from its name: `hugepages-2048kB`.
fn size(files: &KernelFiles<'_>, directory: &str, name: &str) -> Option<Bytes> {
    let number = name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB"));
    let bytes = number.and_then(|number| number.parse::<u64>().ok()?.checked_mul(1024));
    let bytes = bytes.filter(|&bytes| bytes > 0).map(Bytes);
    if bytes.is_none() {
        files.malformed(directory, "a name such as hugepages-2048kB", name);
    }
    bytes
}
