//! Cpus and nodes that the machine has but the process may not use.

use super::limits::quoted;
use super::{FileReading, Finding, scene::Scene};
use crate::{CpuId, CpuSet, IdSet, NodeId};

const STATUS: &str = "/proc/self/status";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    cpus(scene).into_iter().chain(nodes(scene)).collect()
}

fn cpus(scene: &Scene<'_>) -> Option<Finding> {
    let hidden = &scene.machine().hidden.cpus;
    let isolated = scene.set::<CpuId>(ISOLATED).map_or_else(CpuSet::new, |(set, _)| set);
    if hidden.difference(&isolated).is_empty() {
        return None;
    }
    let usable: CpuSet = scene.machine().cpus.iter().map(|cpu| cpu.id).collect();
    let all = usable.union(hidden);
    let finding = Finding::warning(
        "cpus_hidden",
        match hidden.len() {
            1 => format!("Cpu {hidden} exists and this process may not use it"),
            _ => format!("Cpus {hidden} exist and this process may not use them"),
        },
        "Whatever is started from here runs on the remaining cpus only; a thread for every cpu of \
         the machine would be too many.",
    )
    .from(status(scene, "Cpus_allowed_list:"));
    Some(match cpuset::<CpuId>(scene, "cpus") {
        Some((set, read)) if !hidden.is_subset(&set) => {
            let file = quoted(&read.file.replace(".effective", ""));
            finding.from([read]).command(format!("echo {all} > {file}"))
        }
        _ => finding.command_of_user(format!("taskset -a -p -c {all} $$")),
    })
}

fn nodes(scene: &Scene<'_>) -> Option<Finding> {
    let hidden = &scene.machine().hidden.nodes;
    if hidden.is_empty() {
        return None;
    }
    let usable: IdSet<NodeId> = scene.machine().nodes_with_memory().map(|node| node.id).collect();
    let finding = Finding::warning(
        "nodes_hidden",
        match hidden.len() {
            1 => format!("Node {hidden} has memory and this process may not use it"),
            _ => format!("Nodes {hidden} have memory and this process may not use it"),
        },
        "Everything lands on the remaining nodes: cpus elsewhere reach it remotely, and its \
         bandwidth is that of fewer memory controllers.",
    )
    .from(status(scene, "Mems_allowed_list:"));
    Some(match cpuset::<NodeId>(scene, "mems") {
        Some((_, read)) => {
            let file = quoted(&read.file.replace(".effective", ""));
            finding.from([read]).command(format!("echo {} > {file}", usable.union(hidden)))
        }
        None => finding.advice("Widen the cpuset of the container or the service."),
    })
}

/// The line with this key in the process's status.
fn status(scene: &Scene<'_>, key: &str) -> Option<FileReading> {
    let text = scene.text(STATUS)?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let value = line.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(FileReading { file: STATUS.to_owned(), value })
}

/// The process's cpuset, in version 2 or version 1 of control groups.
fn cpuset<T>(scene: &Scene<'_>, what: &str) -> Option<(IdSet<T>, FileReading)>
where
    T: From<u32> + Into<u32> + Copy,
{
    let groups = scene.text("/proc/self/cgroup")?;
    let files = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let group = group.trim_end_matches('/');
        let inside = !group.split('/').any(|part| part == "..");
        match controllers {
            "" => Some(format!("/sys/fs/cgroup{group}/cpuset.{what}.effective")),
            _ if controllers.split(',').any(|name| name == "cpuset") => {
                Some(format!("/sys/fs/cgroup/cpuset{group}/cpuset.{what}"))
            }
            _ => None,
        }
        .filter(|_| inside)
    });
    files.into_iter().find_map(|file| scene.set::<T>(&file))
}
