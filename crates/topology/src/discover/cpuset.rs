//! The cpuset of a process without `/proc/self/status`, as in the trees that
//! `hwloc-gather-topology` copies: `/proc/self/cpuset` names the group, `/proc/mounts` says where its
//! hierarchy is mounted.

use super::files::KernelFiles;
use crate::{CpuSet, NodeSet};

/// Names of a cpuset's files for cpus and nodes: of version 2, of version 1, and of version 1 mounted with `noprefix`
/// or as the older file system `cpuset`.
const FILES: [(&str, &str); 3] = [
    ("cpuset.cpus.effective", "cpuset.mems.effective"),
    ("cpuset.cpus", "cpuset.mems"),
    ("cpus", "mems"),
];

/// The cpus and nodes of the process's cpuset; None if unknown.
pub(super) fn read(files: &KernelFiles<'_>) -> (Option<CpuSet>, Option<NodeSet>) {
    let group = files.visible_text("/proc/self/cpuset").unwrap_or_default();
    let mounts = files.visible_text("/proc/mounts").unwrap_or_default();
    let group = group.trim().trim_end_matches('/');
    if group.split('/').any(|part| part == "..") {
        return (None, None);
    }
    for point in mounts.lines().filter_map(mount_point) {
        for (cpus, nodes) in FILES {
            let text = |file: &str| {
                let name = format!("{point}{group}/{file}");
                files.visible_text(&name).map(|text| (name, text))
            };
            if let Some((cpus_file, cpus)) = text(cpus).filter(|(_, text)| !text.trim().is_empty())
            {
                let nodes = text(nodes).filter(|(_, text)| !text.trim().is_empty());
                let nodes = nodes.and_then(|(name, text)| files.set_in(&name, &text));
                return (files.set_in(&cpus_file, &cpus), nodes);
            }
        }
    }
    (None, None)
}

/// The mount point of a line of `/proc/mounts` (source, point, type, options) if its hierarchy has cpusets.
fn mount_point(line: &str) -> Option<&str> {
    let mut fields = line.split(' ').skip(1);
    let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
    let has_cpusets = match kind {
        "cpuset" | "cgroup2" => true,
        "cgroup" => options.split(',').any(|option| option == "cpuset"),
        _ => false,
    };
    has_cpusets.then_some(point)
}
