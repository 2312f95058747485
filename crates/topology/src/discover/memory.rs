//! Total and free memory of each node: `node*/meminfo`, or `/proc/meminfo` on a kernel without NUMA.
//!
//! Free memory is `MemFree`: page cache counts as used, although the kernel can reclaim it. If it is missing, all
//! memory counts as free.

use super::files::KernelFiles;
use super::nodes::{self, Nodes, OnlineNode};
use crate::{Bytes, Source};

/// Memory of the machine as a whole.
pub(crate) const MACHINE: &str = "/proc/meminfo";

/// Memory of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiscoveredMemory {
    pub(super) total: Bytes,
    pub(super) free: Bytes,
}

impl DiscoveredMemory {
    pub(super) const NONE: Self = Self { total: Bytes(0), free: Bytes(0) };

    fn read(files: &KernelFiles<'_>, name: &str) -> Option<Self> {
        let text = files.text(name)?;
        let total = files.kilobytes(name, &text, "MemTotal:")?;
        Some(Self { total, free: files.kilobytes(name, &text, "MemFree:").unwrap_or(total) })
    }
}

/// Memory of each online node, in order, and its source. If no node reports its memory, the machine's is divided
/// evenly; if only some do, the others have none.
pub(super) fn read(files: &KernelFiles<'_>, nodes: &Nodes) -> (Vec<DiscoveredMemory>, Source) {
    let of_node = |node: &OnlineNode| of_node(files, nodes::file(node.id, "meminfo"));
    let told: Vec<Option<DiscoveredMemory>> = match nodes.numa {
        true => nodes.online.iter().map(of_node).collect(),
        false => vec![None],
    };
    if told.iter().all(Option::is_none) {
        return dealt(files, nodes);
    }
    let memories = told.into_iter().map(|memory| memory.unwrap_or(DiscoveredMemory::NONE));
    (memories.collect(), Source::Discovered)
}

fn of_node(files: &KernelFiles<'_>, name: String) -> Option<DiscoveredMemory> {
    let memory = DiscoveredMemory::read(files, &name);
    if memory.is_none() {
        files.assume(&name, "the node's memory is missing", "assumed to be 0");
    }
    memory
}

/// The machine's memory in equal parts.
fn dealt(files: &KernelFiles<'_>, nodes: &Nodes) -> (Vec<DiscoveredMemory>, Source) {
    let count = nodes.online.len();
    let Some(memory) = DiscoveredMemory::read(files, MACHINE) else {
        files.assume(MACHINE, "the machine's memory is missing", "assumed to be 0");
        return (vec![DiscoveredMemory::NONE; count], Source::Assumed);
    };
    let part = |bytes: Bytes| Bytes(bytes.0 / count as u64);
    let parts =
        vec![DiscoveredMemory { total: part(memory.total), free: part(memory.free) }; count];
    if !nodes.numa {
        return (parts, Source::Discovered);
    }
    files.assume(MACHINE, "no node reports its memory", "the machine's memory is divided evenly");
    (parts, Source::Assumed)
}
