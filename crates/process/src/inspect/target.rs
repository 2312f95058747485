//! Target processes: by number, by name, by control group.

use std::collections::{BTreeMap, BTreeSet};

use atoll_sys::Root;

use super::procfs::read::{text, text_if_readable};
use super::procfs::stat;
use super::{InspectError, memory};

/// Maximum number of control group directories searched.
const GROUPS_MAX: usize = 1 << 16;
/// Where cgroup v2 and the v1 controllers that hold all processes are mounted.
const MOUNTS: [&str; 5] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/systemd",
    "/sys/fs/cgroup/cpuset",
    "/sys/fs/cgroup/memory",
];

/// A target named by a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A number.
    Pid(u32),
    /// `comm`, or the file name of the program as it was started (the first argument).
    Name(String),
    /// A control group with those below it: its path as in `/proc/PID/cgroup` or its directory.
    Cgroup(String),
}

impl Target {
    /// A number or a name.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Pid)
    }
}

/// A process, identified by its number and its start time, because numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since the machine did.
    pub start: u64,
}

/// The process that has this number now. Returns an error if it has ended, even if its parent has not waited for it.
pub fn identify(root: &Root, pid: u32) -> Result<ProcessId, InspectError> {
    let stat = stat::read(root, &format!("/proc/{pid}/stat"))
        .map_err(|unread| memory::end_or(unread, root, pid))?;
    if stat.has_ended() {
        return Err(InspectError::NoProcess { pid });
    }
    Ok(ProcessId { pid, start: stat.start })
}

/// The target processes, ordered by number. `besides` is left out of searches by name: the process that asks.
pub fn find(
    root: &Root,
    target: &Target,
    besides: Option<u32>,
) -> Result<Vec<ProcessId>, InspectError> {
    match target {
        Target::Pid(pid) => Ok(vec![identify(root, *pid)?]),
        Target::Name(name) => {
            let pids = pids(root)?.into_iter().filter(|pid| Some(*pid) != besides);
            let found = identified(root, pids.filter(|pid| is_named(root, *pid, name)));
            if found.is_empty() {
                return Err(InspectError::NoName { name: name.clone() });
            }
            Ok(found)
        }
        Target::Cgroup(path) => {
            let found = identified(root, members(root, path)?.into_iter());
            if found.is_empty() {
                return Err(InspectError::EmptyGroup { path: path.clone() });
            }
            Ok(found)
        }
    }
}

/// The processes that still exist.
fn identified(root: &Root, pids: impl Iterator<Item = u32>) -> Vec<ProcessId> {
    pids.filter_map(|pid| identify(root, pid).ok()).collect()
}

fn pids(root: &Root) -> Result<Vec<u32>, InspectError> {
    Ok(root.list("/proc")?.iter().filter_map(|name| name.parse().ok()).collect::<BTreeSet<_>>())
        .map(|pids| pids.into_iter().collect())
}

fn is_named(root: &Root, pid: u32, name: &str) -> bool {
    let comm = text_if_readable(root, &format!("/proc/{pid}/comm")).unwrap_or_default();
    let comm = comm.strip_suffix('\n').unwrap_or(&comm);
    if comm == name {
        return true;
    }
    // comm is cut after 15 bytes and may be that of the first thread.
    let arguments = text_if_readable(root, &format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = arguments.split('\0').next().unwrap_or_default();
    program.rsplit('/').next() == Some(name)
}

/// Processes with all their descendants.
pub fn descendants(root: &Root, ancestors: &[ProcessId]) -> Result<Vec<ProcessId>, InspectError> {
    let mut children: BTreeMap<u32, Vec<ProcessId>> = BTreeMap::new();
    for pid in pids(root)? {
        let Ok(stat) = stat::read(root, &format!("/proc/{pid}/stat")) else { continue };
        if !stat.has_ended() {
            children.entry(stat.parent).or_default().push(ProcessId { pid, start: stat.start });
        }
    }
    let mut found: BTreeSet<ProcessId> = ancestors.iter().copied().collect();
    let mut waiting: Vec<ProcessId> = ancestors.to_vec();
    while let Some(process) = waiting.pop() {
        for child in children.get(&process.pid).into_iter().flatten() {
            if found.insert(*child) {
                waiting.push(*child);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Numbers of the processes in a control group and in those below it.
fn members(root: &Root, path: &str) -> Result<BTreeSet<u32>, InspectError> {
    let relative = path.trim_start_matches('/');
    let mut candidates = vec![format!("/{relative}")];
    candidates.extend(MOUNTS.map(|mount| format!("{mount}/{relative}")));
    let has_members = |directory: &&String| root.exists(&format!("{directory}/cgroup.procs"));
    let Some(directory) = candidates.iter().find(has_members) else {
        let (path, looked) = (path.to_owned(), candidates.join(", "));
        return Err(InspectError::NoGroup { path, looked });
    };
    let mut pids = BTreeSet::new();
    let mut waiting = vec![directory.clone()];
    let mut visited = 0;
    while let Some(group) = waiting.pop().filter(|_| visited < GROUPS_MAX) {
        visited += 1;
        let file = format!("{group}/cgroup.procs");
        // EOPNOTSUPP in a threaded group, whose processes are those of its domain.
        let Ok(text) = text(root, &file) else { continue };
        pids.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
        let names = root.list(&group).unwrap_or_default();
        let below = names.into_iter().map(|name| format!("{group}/{name}"));
        waiting.extend(below.filter(|group| root.exists(&format!("{group}/cgroup.procs"))));
    }
    Ok(pids)
}
