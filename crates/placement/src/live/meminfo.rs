//! Free memory of a node and the size of huge pages, from sysfs.

use atoll_sys::{Root, RootError};
use atoll_topology::{Bytes, NodeId};

use crate::KernelError;

const CALL: &str = "reading meminfo";

/// Sum of these fields of a node's `meminfo`. A kernel without NUMA has no such file: its one node
/// is the whole machine's `/proc/meminfo`.
pub(super) fn sum(root: &Root, node: NodeId, fields: &[&str]) -> Result<Bytes, KernelError> {
    let name = format!("/sys/devices/system/node/node{node}/meminfo");
    let text = match root.read_text_if_present(&name) {
        Ok(Some(text)) => text,
        Ok(None) if node == NodeId(0) => root.read_text("/proc/meminfo").map_err(unread)?,
        Ok(None) => return Err(unsupported(format!("{name} does not exist"))),
        Err(error) => return Err(unread(error)),
    };
    let mut sum = 0_u64;
    for field in fields {
        let bytes = field_bytes(&text, field)
            .ok_or_else(|| unsupported(format!("{name} has no field {field} in kB")))?;
        sum = sum.saturating_add(bytes);
    }
    Ok(Bytes(sum))
}

/// `Node 0 MemFree:  123 kB` or `MemFree:  123 kB`.
fn field_bytes(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.split_whitespace().last()? != field {
            return None;
        }
        value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    })
}

/// Size of a transparent huge page. Returns None if they are switched off or absent.
pub(super) fn huge_page_size(root: &Root) -> Option<usize> {
    let setting = |name: &str| {
        let name = format!("/sys/kernel/mm/transparent_hugepage/{name}");
        root.read_text_if_present(&name).ok().flatten()
    };
    let enabled = setting("enabled")?;
    if !enabled.contains("[always]") && !enabled.contains("[madvise]") {
        return None;
    }
    let size = setting("hpage_pmd_size")?.trim().parse::<usize>().ok()?;
    size.is_power_of_two().then_some(size)
}

fn unsupported(reason: String) -> KernelError {
    KernelError::Unsupported { call: CALL, reason }
}

fn unread(error: RootError) -> KernelError {
    let reason = error.to_string();
    match error {
        RootError::Denied { .. } => KernelError::Refused { call: CALL, reason },
        RootError::NotFound { .. } => KernelError::Unsupported { call: CALL, reason },
        _ => KernelError::Failed { call: CALL, reason },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NODE: &str = "Node 3 MemTotal: 9 kB\nNode 3 MemFree:  7 kB\nNode 3 Active(file): 2 kB\n";

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(directory.path());
        (directory, root)
    }

    #[test]
    fn the_fields_of_a_node_are_added_up_in_bytes() {
        let (_directory, root) = tree(&[("sys/devices/system/node/node3/meminfo", NODE)]);
        let sum = |fields: &[&str]| sum(&root, NodeId(3), fields);
        assert_eq!(sum(&["MemFree"]), Ok(Bytes(7 * 1024)));
        assert_eq!(sum(&["MemFree", "Active(file)"]), Ok(Bytes(9 * 1024)));
    }

    #[test]
    fn a_kernel_without_numa_has_one_node_that_is_the_machine() {
        let (_directory, root) = tree(&[("proc/meminfo", "MemFree:      5 kB\n")]);
        assert_eq!(sum(&root, NodeId(0), &["MemFree"]), Ok(Bytes(5 * 1024)));
        let error = sum(&root, NodeId(1), &["MemFree"]).unwrap_err();
        assert!(matches!(error, KernelError::Unsupported { .. }), "{error}");
    }

    #[test]
    fn hostile_meminfo_is_an_error() {
        for text in [
            "",
            "MemFree",
            "MemFree: x kB",
            "MemFree: 99999999999999999999 kB",
            "MemFree: 18446744073709551615 kB",
            "MemFree: 5 MB",
        ] {
            let (_directory, root) = tree(&[("proc/meminfo", text)]);
            assert!(sum(&root, NodeId(0), &["MemFree"]).is_err(), "{text}");
        }
    }

    #[test]
    fn huge_pages_count_only_where_they_are_granted_on_request() {
        for (enabled, size, expected) in [
            ("always [madvise] never", "2097152\n", Some(2 << 20)),
            ("[always] madvise never", "2097152\n", Some(2 << 20)),
            ("always madvise [never]", "2097152\n", None),
            ("[always] madvise never", "12345\n", None),
            ("[always] madvise never", "many", None),
        ] {
            let (_directory, root) = tree(&[
                ("sys/kernel/mm/transparent_hugepage/enabled", enabled),
                ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", size),
            ]);
            assert_eq!(huge_page_size(&root), expected, "{enabled} {size}");
        }
        assert_eq!(huge_page_size(&tree(&[]).1), None);
    }
}
