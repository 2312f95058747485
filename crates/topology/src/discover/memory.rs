//! Memory of each node, in all and free: `node*/meminfo` and `/proc/meminfo`.
//!
//! Where only one node has memory, the machine's memory is the node's, and `/proc/meminfo` is asked:
//! some kernels under a hypervisor count memory that a balloon lends to the host and gives back on
//! demand there and not with the node. A kernel without NUMA has nothing else anyway.
//!
//! Free is `MemFree`: page cache counts as used, although the kernel gives it up when asked to.

use atoll_sys::Root;

use super::nodes::{self, Nodes};
use super::read;
use crate::Bytes;
use crate::discover::DiscoverError;

const MACHINE: &str = "/proc/meminfo";

/// Memory of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiscoveredMemory {
    pub(super) total: Bytes,
    pub(super) free: Bytes,
}

impl DiscoveredMemory {
    pub(super) const NONE: Self = Self { total: Bytes(0), free: Bytes(0) };

    fn parse(root: &Root, name: &str, text: &str) -> Result<Self, DiscoverError> {
        let total = read::kilobytes(root, name, text, "MemTotal:")?;
        let free = read::kilobytes(root, name, text, "MemFree:")?;
        Ok(Self { total, free })
    }
}

/// Memory of each node that is online, in their order.
pub(super) fn read(root: &Root, nodes: &Nodes) -> Result<Vec<DiscoveredMemory>, DiscoverError> {
    if !nodes.numa {
        return Ok(vec![DiscoveredMemory::parse(root, MACHINE, &root.read_text(MACHINE)?)?]);
    }
    let mut memories = nodes
        .online
        .iter()
        .map(|node| {
            let name = nodes::file(node.id, "meminfo");
            DiscoveredMemory::parse(root, &name, &root.read_text(&name)?)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut with_memory = memories.iter_mut().filter(|memory| memory.total.0 > 0);
    if let (Some(only), None) = (with_memory.next(), with_memory.next())
        && let Some(text) = root.read_text_if_present(MACHINE)?
    {
        *only = DiscoveredMemory::parse(root, MACHINE, &text)?;
    }
    Ok(memories)
}
