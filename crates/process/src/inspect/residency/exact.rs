//! Memory counted page by page by the kernel: `numa_maps`, with `maps` for what each mapping is.

use atoll_sys::Root;

use crate::inspect::missing::Missing;
use crate::inspect::process_memory::{Method, ProcessMemory};
use crate::inspect::procfs::maps::{MappingKind, Maps, ProcessMapping};
use crate::inspect::procfs::numa_maps::NumaMaps;
use crate::inspect::procfs::read::{Unread, field, text_if_readable};
use crate::inspect::procfs::status::Status;

/// Reads it. Both files are read in parallel, line by line, so that memory stays bounded however
/// many mappings there are.
pub(in crate::inspect) fn read(
    root: &Root,
    pid: u32,
    page_size: u64,
    status: &Status,
) -> Result<(ProcessMemory, Vec<Missing>), Unread> {
    let mut memory = ProcessMemory::new(Method::Exact, status.swapped);
    let mut pages_of = NumaMaps::open(root, pid)?;
    let mut maps = Maps::open(root, pid)?;
    let mut mapping = maps.next()?;
    while let Some(pages) = pages_of.next()? {
        while mapping.as_ref().is_some_and(|mapping| mapping.end <= pages.start) {
            mapping = maps.next()?;
        }
        // Only the pages of a mapping created between the two readings are known.
        let known: Option<&ProcessMapping> =
            mapping.as_ref().filter(|mapping| mapping.start <= pages.start);
        let kind = match (pages.kind, known) {
            (MappingKind::HugePages, _) | (_, None) => pages.kind,
            (_, Some(mapping)) => mapping.kind,
        };
        let size = pages.page_size.unwrap_or(page_size);
        let segment = known.and_then(|mapping| mapping.segment);
        if let Some(mapping) = known {
            memory.view(kind, mapping, size);
        }
        let mut bytes_of_mapping = 0_u64;
        for (node, count) in pages.by_node {
            let bytes = count.saturating_mul(size);
            bytes_of_mapping = bytes_of_mapping.saturating_add(bytes);
            memory.add(kind, segment, Some(node), bytes);
        }
        memory.add_policy(&pages.policy, bytes_of_mapping);
    }
    if let Some(policies) = &mut memory.policies {
        policies.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.policy.cmp(&b.policy)));
    }
    if let Some(rollup) = text_if_readable(root, &format!("/proc/{pid}/smaps_rollup")) {
        memory.huge_transparent = huge_transparent(&rollup);
        memory.proportional = kilobytes(&rollup, "Pss");
    }
    Ok((memory, Vec::new()))
}

/// Bytes in transparent huge pages.
fn huge_transparent(rollup: &str) -> Option<u64> {
    let anonymous = kilobytes(rollup, "AnonHugePages")?;
    let mapped = ["ShmemPmdMapped", "FilePmdMapped"].map(|key| kilobytes(rollup, key).unwrap_or(0));
    Some(mapped.iter().fold(anonymous, |sum, bytes| sum.saturating_add(*bytes)))
}

fn kilobytes(rollup: &str, key: &str) -> Option<u64> {
    let number = field(rollup, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    number.checked_mul(1024)
}
