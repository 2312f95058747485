//! How a process's memory is read: resident bytes by node and by kind of mapping.
//!
//! Small processes are read exactly (`exact`); larger ones are sampled (`sample`), because the kernel
//! walks every page table entry to count them, some 0.3 s for 64 GB.

use std::collections::BTreeMap;

use atoll_sys::Root;

use super::InspectError;
use super::bytes::{NodeBytes, add_all};
use super::missing::Missing;
use super::nodes::NodeMap;
use super::process_memory::{MemoryOptions, Method, ProcessMemory};
use super::procfs::maps::MappingKind;
use super::procfs::read::Unread;
use super::procfs::status;
use super::residency::homes::PageHomes;
use super::residency::{exact, sample};
use super::segment::ObjectKey;

/// The memory of several processes together. Shared objects count once: with the amount in `united`,
/// or without it, for each node, with the largest amount that any process has resident, which is
/// a lower bound.
pub(super) fn together<'a>(
    all: impl IntoIterator<Item = &'a ProcessMemory>,
    united: &BTreeMap<ObjectKey, NodeBytes>,
) -> BTreeMap<MappingKind, NodeBytes> {
    let mut sum: BTreeMap<MappingKind, NodeBytes> = BTreeMap::new();
    let mut segments: BTreeMap<ObjectKey, (usize, NodeBytes)> = BTreeMap::new();
    for memory in all {
        for (kind, bytes) in &memory.by_kind {
            add_all(sum.entry(*kind).or_default(), bytes);
        }
        for (key, segment) in memory.segments() {
            // Its share of the sum is subtracted here, and the shared total is added below.
            let part = sum.entry(key.0).or_default();
            let (processes, largest) = segments.entry(*key).or_default();
            *processes += 1;
            for (node, bytes) in &segment.bytes {
                let part = part.entry(*node).or_insert(0);
                *part = part.saturating_sub(*bytes);
                let most = largest.entry(*node).or_insert(0);
                *most = (*most).max(*bytes);
            }
        }
    }
    for (key, (processes, largest)) in &segments {
        let bytes = united.get(key).filter(|_| *processes > 1).unwrap_or(largest);
        add_all(sum.entry(key.0).or_default(), bytes);
    }
    for bytes in sum.values_mut() {
        bytes.retain(|_, bytes| *bytes > 0);
    }
    sum.retain(|_, bytes| !bytes.is_empty());
    sum
}

/// Reads where the memory of a process is, and adds to `missing` what could not be read and why.
/// [`InspectError::NoProcess`] once it has ended.
pub fn read(
    root: &Root,
    homes: &dyn PageHomes,
    nodes: &NodeMap,
    page_size: u64,
    pid: u32,
    options: &MemoryOptions,
    missing: &mut Vec<Missing>,
) -> Result<ProcessMemory, InspectError> {
    let status = status::read(root, pid).map_err(|unread| end_or(unread, root, pid))?;
    let is_small = options.is_exact || status.resident() <= options.exact_bytes_max;
    let read = match is_small {
        true => exact::read(root, pid, page_size, &status),
        false => sample::read(root, homes, pid, page_size, options, &status),
    };
    let read = match read {
        // It may have ended meanwhile.
        Err(_) if !is_there(root, pid) => return Err(InspectError::NoProcess { pid }),
        read => read,
    };
    match read {
        Ok((memory, notes)) => {
            missing.extend(notes);
            Ok(memory)
        }
        Err(Unread::Failed(error)) => Err(error),
        Err(unread) => Ok(totals(&status, nodes, &unread, missing)),
    }
}

fn is_there(root: &Root, pid: u32) -> bool {
    root.exists(&format!("/proc/{pid}/stat"))
}

pub(super) fn end_or(unread: Unread, root: &Root, pid: u32) -> InspectError {
    match unread {
        Unread::Failed(error) => error,
        Unread::Denied if is_there(root, pid) => {
            InspectError::Unread(atoll_sys::RootError::Denied {
                path: root.path(&format!("/proc/{pid}")).unwrap_or_default(),
            })
        }
        _ => InspectError::NoProcess { pid },
    }
}

/// The sums that every user may read. On a machine with one node they are on that node.
fn totals(
    status: &status::Status,
    nodes: &NodeMap,
    unread: &Unread,
    missing: &mut Vec<Missing>,
) -> ProcessMemory {
    let only = (nodes.with_memory().len() == 1).then(|| nodes.with_memory().first()).flatten();
    match unread {
        Unread::Denied => missing.push(Missing::rights("memory by node, mappings and policies")),
        _ if only.is_none() => missing.push(Missing {
            what: "memory by node".to_owned(),
            need: "a kernel with NUMA (CONFIG_NUMA): this one has no numa_maps".to_owned(),
        }),
        _ => {}
    }
    let mut memory = ProcessMemory::new(Method::Totals, status.swapped);
    for (kind, bytes) in [
        (MappingKind::Anonymous, status.anonymous),
        (MappingKind::File, status.files),
        (MappingKind::Shared, status.shared),
        (MappingKind::HugePages, status.huge),
    ] {
        memory.add(kind, None, only, bytes);
    }
    memory
}
