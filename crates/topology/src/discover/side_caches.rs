//! Caches in front of a node's memory, from the firmware's HMAT:
//! `/sys/devices/system/node/node*/memory_side_cache/index*`; index 1 is the nearest to the memory.

use super::files::KernelFiles;
use super::nodes;
use crate::{Bytes, NodeId, SideCache};

/// The node's caches, nearest to the cpus first.
pub(super) fn read(files: &KernelFiles<'_>, node: NodeId) -> Vec<SideCache> {
    let directory = nodes::file(node, "memory_side_cache");
    let levels = files.numbered(&directory, "index");
    let cache = |level: u32| {
        let bytes = |file: &str| {
            let size =
                files.count(&format!("{directory}/index{level}/{file}"), "a number of bytes");
            size.filter(|&size: &u64| size > 0).map(Bytes)
        };
        Some(SideCache { level, size: bytes("size")?, line: bytes("line_size") })
    };
    levels.into_iter().rev().filter_map(cache).collect()
}
