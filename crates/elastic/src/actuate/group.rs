//! Assigns cores by a control group with the cpuset controller, of version 2 or 1.
//!
//! For a group that the user names, `cpuset.cpus` is written and restored in the end. For processes, a new group is
//! created below their own, so that all its limits still apply: version 1 always allows that; version 2 if the group
//! passes the controller on to its children, which only the root may do while it has processes. `cpuset.mems` is
//! unchanged: version 1 copies the parent's, because an empty one accepts no process.
//!
//! Kernels before 6.2, and version 1, overwrite the affinity of threads that bind themselves when a cpuset changes:
//! their affinities are in the journal and are restored in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use atoll_process::inspect::ProcessId;
use atoll_sys::Root;
use atoll_topology::CpuSet;

use super::{ActuateError, Applied, Journal, Record, ThreadCalls};

/// Prefix of the names of groups created here: no others are ever removed.
pub(super) const PREFIX: &str = "atoll-elastic-";
/// Maximum number of times that processes are moved in one act, to catch those that fork meanwhile.
const PASSES_MAX: usize = 8;
const CPUS: &str = "cpuset.cpus";

/// Version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupVersion {
    /// One hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

/// The group to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// Its version.
    pub version: GroupVersion,
    /// Its directory.
    pub path: String,
    /// The parent of a group to be created; None for an existing group.
    pub home: Option<String>,
    /// Whether `home` must pass the controller on first.
    pub is_controller_missing: bool,
}

/// A mounted cgroup hierarchy.
struct Hierarchy {
    version: GroupVersion,
    mount: String,
    /// The group mounted there.
    top: String,
}

impl GroupPlan {
    /// The group that a user names: a path as in `/proc/PID/cgroup`, or a directory.
    pub fn named(root: &Root, name: &str) -> Result<Self, ActuateError> {
        let relative = name.trim_matches('/');
        for hierarchy in hierarchies(root) {
            let inside = relative.strip_prefix(hierarchy.mount.trim_matches('/'));
            let path = match inside {
                Some(inside) => format!("{}/{}", hierarchy.mount, inside.trim_matches('/')),
                None => format!("{}/{relative}", hierarchy.mount),
            };
            if root.exists(&format!("{path}/{CPUS}")) {
                let version = hierarchy.version;
                return Ok(Self { version, path, home: None, is_controller_missing: false });
            }
        }
        let reason =
            format!("no {CPUS} in group {name}: its parent does not pass the controller on");
        Err(ActuateError::NoGroup { reason })
    }

    /// A group to be created for processes, below their own.
    pub fn below(
        root: &Root,
        processes: &[ProcessId],
        writer: ProcessId,
    ) -> Result<Self, ActuateError> {
        let mut reasons = Vec::new();
        for hierarchy in hierarchies(root) {
            match hierarchy.plan(root, processes, writer) {
                Ok(plan) => return Ok(plan),
                Err(reason) => reasons.push(reason),
            }
        }
        if reasons.is_empty() {
            reasons.push("no hierarchy with the cpuset controller is mounted".to_owned());
        }
        Err(ActuateError::NoGroup { reason: reasons.join("; ") })
    }
}

impl Hierarchy {
    fn plan(
        &self,
        root: &Root,
        processes: &[ProcessId],
        writer: ProcessId,
    ) -> Result<GroupPlan, String> {
        let homes: BTreeSet<String> =
            processes.iter().filter_map(|id| self.directory(root, id.pid)).collect();
        let mut homes = homes.into_iter();
        let (Some(home), None) = (homes.next(), homes.next()) else {
            return Err("the processes are in several control groups, or in none that is visible"
                .to_owned());
        };
        let is_passed_on = |file: &str| {
            let text = root.read_text(&format!("{home}/{file}")).unwrap_or_default();
            text.split_whitespace().any(|controller| controller == "cpuset")
        };
        let is_two = self.version == GroupVersion::Two;
        if is_two && !is_passed_on("cgroup.controllers") {
            return Err(format!("{home} has no cpuset controller"));
        }
        let is_controller_missing = is_two && !is_passed_on("cgroup.subtree_control");
        if is_controller_missing && home != self.mount {
            return Err(format!(
                "{home} has processes and so cannot pass the cpuset controller on; --cgroup or --unit \
                 names a group whose {CPUS} may be written"
            ));
        }
        // Several targets of one run may be in the same group.
        let target = processes.iter().map(|id| id.pid).min().unwrap_or_default();
        let path = format!("{home}/{PREFIX}{}-{}-{target}", writer.pid, writer.start);
        let version = self.version;
        Ok(GroupPlan { version, path, home: Some(home), is_controller_missing })
    }

    /// The directory of a process's group.
    fn directory(&self, root: &Root, pid: u32) -> Option<String> {
        let text = root.read_text(&format!("/proc/{pid}/cgroup")).ok()?;
        let group = text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, group) = rest.split_once(':')?;
            let is_it = match self.version {
                GroupVersion::Two => controllers.is_empty() && line.starts_with("0:"),
                GroupVersion::One => controllers.split(',').any(|it| it == "cpuset"),
            };
            is_it.then_some(group)
        })?;
        // A group outside of the namespace is shown with '..'.
        let inside = group.strip_prefix(self.top.trim_end_matches('/'))?;
        if inside.split('/').any(|part| part == "..") {
            return None;
        }
        Some(format!("{}{}", self.mount, inside.trim_end_matches('/')))
    }
}

/// Hierarchies that may have the cpuset controller, version 2 first.
fn hierarchies(root: &Root) -> Vec<Hierarchy> {
    let text = root.read_text("/proc/self/mountinfo").unwrap_or_default();
    let mut found: Vec<Hierarchy> = text.lines().filter_map(hierarchy).collect();
    found.sort_by_key(|it| it.version == GroupVersion::One);
    found
}

/// `31 24 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw`
fn hierarchy(line: &str) -> Option<Hierarchy> {
    let (before, behind) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (top, mount) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let mut fields = behind.split(' ');
    let version = match (fields.next()?, fields.nth(1)?) {
        ("cgroup2", _) => GroupVersion::Two,
        ("cgroup", options) if options.split(',').any(|it| it == "cpuset") => GroupVersion::One,
        _ => return None,
    };
    Some(Hierarchy { version, mount, top })
}

/// Assigns cores by a group.
#[derive(Debug)]
pub struct GroupActuator {
    root: Root,
    calls: Arc<dyn ThreadCalls>,
    plan: GroupPlan,
    /// The original value of the named group.
    before: Option<String>,
    written: Option<CpuSet>,
    /// All cpus ever given, in list notation.
    given: BTreeSet<String>,
    homes: BTreeMap<u32, String>,
    /// Threads that bind themselves, and their cpus.
    pinned: BTreeMap<u32, CpuSet>,
    met: BTreeSet<ProcessId>,
    is_made: bool,
}

impl GroupActuator {
    /// An actuator for a planned group.
    pub fn new(root: Root, calls: Arc<dyn ThreadCalls>, plan: GroupPlan) -> Self {
        Self {
            root,
            calls,
            plan,
            before: None,
            written: None,
            given: BTreeSet::new(),
            homes: BTreeMap::new(),
            pinned: BTreeMap::new(),
            met: BTreeSet::new(),
            is_made: false,
        }
    }

    /// The group's directory.
    pub fn path(&self) -> &str {
        &self.plan.path
    }

    pub(super) fn apply(
        &mut self,
        journal: &mut Journal,
        processes: &[ProcessId],
        cpus: &CpuSet,
    ) -> Result<Applied, ActuateError> {
        let mut applied = Applied::default();
        self.meet(journal, processes, &mut applied)?;
        self.make(journal)?;
        self.write_cpus(journal, cpus)?;
        if self.plan.home.is_some() {
            self.take_in(journal, processes)?;
        }
        Ok(applied)
    }

    /// Records the cpus of threads that bind themselves.
    fn meet(
        &mut self,
        journal: &mut Journal,
        processes: &[ProcessId],
        applied: &mut Applied,
    ) -> Result<(), ActuateError> {
        let mut records = Vec::new();
        for process in processes.iter().filter(|process| !self.met.contains(process)) {
            let Ok(base) = self.calls.affinity(process.pid) else { continue };
            for tid in self.calls.threads(*process) {
                let (Some(id), Ok(own)) = (self.calls.thread(tid), self.calls.affinity(tid)) else {
                    continue;
                };
                if own != base {
                    let (pid, start, cpus) = (process.pid, id.start, own.to_string());
                    records.push(Record::Thread { pid, tid, start, cpus });
                    self.pinned.insert(tid, own);
                }
            }
        }
        if !records.is_empty() {
            applied.notes.push(format!(
                "{} threads bind themselves: a cpuset changes where they may run while it is there",
                records.len()
            ));
            journal.write(&records)?;
        }
        self.met.extend(processes.iter().copied());
        Ok(())
    }

    fn make(&mut self, journal: &mut Journal) -> Result<(), ActuateError> {
        let Some(home) = self.plan.home.clone().filter(|_| !self.is_made) else { return Ok(()) };
        if self.plan.is_controller_missing {
            journal.write(&[Record::ControllerEnabled { path: home.clone() }])?;
            self.write_file(&format!("{home}/cgroup.subtree_control"), "+cpuset")?;
        }
        let path = self.plan.path.clone();
        journal.write(&[Record::GroupMade { path: path.clone(), home: home.clone() }])?;
        let directory = self.root.path(&path).map_err(io::Error::other);
        directory.and_then(std::fs::create_dir).map_err(|source| self.failed(&path, source))?;
        self.is_made = true;
        if self.plan.version == GroupVersion::One {
            let mems = self.read_file(&format!("{home}/cpuset.mems"))?;
            self.write_file(&format!("{path}/cpuset.mems"), &mems)?;
        }
        Ok(())
    }

    fn write_cpus(&mut self, journal: &mut Journal, cpus: &CpuSet) -> Result<(), ActuateError> {
        let file = format!("{}/{CPUS}", self.plan.path);
        let found = self.read_file(&file)?;
        if let Some(written) = &self.written {
            if CpuSet::parse(&found).ok().as_ref() != Some(written) {
                let written = written.to_string();
                return Err(ActuateError::GroupChanged { path: file, written, found });
            }
            if written == cpus {
                return Ok(());
            }
        } else if self.plan.home.is_none() {
            journal.write(&[Record::FileWritten { path: file.clone(), before: found.clone() }])?;
            self.before = Some(found);
        }
        if self.given.insert(cpus.to_string()) {
            journal.write(&[Record::Given { cpus: cpus.to_string() }])?;
        }
        self.write_file(&file, &cpus.to_string())?;
        self.written = Some(cpus.clone());
        Ok(())
    }

    /// Moves processes into the group, and the processes that they fork meanwhile.
    fn take_in(
        &mut self,
        journal: &mut Journal,
        processes: &[ProcessId],
    ) -> Result<(), ActuateError> {
        let (path, home) = (self.plan.path.clone(), self.plan.home.clone().unwrap_or_default());
        for _ in 0..PASSES_MAX {
            let inside = members(&self.root, &path);
            let outside: Vec<ProcessId> =
                processes.iter().filter(|id| !inside.contains(&id.pid)).copied().collect();
            let new = outside.iter().filter(|id| !self.homes.contains_key(&id.pid));
            let records: Vec<Record> = new
                .map(|id| Record::Moved {
                    pid: id.pid,
                    start: id.start,
                    from: home.clone(),
                    to: path.clone(),
                })
                .collect();
            if !records.is_empty() {
                journal.write(&records)?;
            }
            let mut is_moved = false;
            for id in outside {
                self.homes.insert(id.pid, home.clone());
                is_moved |= self.move_to(id.pid, &path)?;
            }
            if !is_moved {
                break;
            }
        }
        Ok(())
    }

    /// Moves a process; returns whether it existed.
    fn move_to(&self, pid: u32, group: &str) -> Result<bool, ActuateError> {
        let file = format!("{group}/cgroup.procs");
        match write_file(&self.root, &file, &pid.to_string()) {
            Ok(()) => Ok(true),
            Err(error) if is_gone(&error) => Ok(false),
            Err(source) => Err(self.failed(&file, source)),
        }
    }

    pub(super) fn restore(&mut self) -> Vec<String> {
        let mut failed = Vec::new();
        if self.is_made {
            let home = self.plan.home.clone().unwrap_or_default();
            failed.extend(dissolve(&self.root, &self.plan.path, &home, &self.homes));
            if self.plan.is_controller_missing && failed.is_empty() {
                failed.extend(disable(&self.root, &home));
            }
            self.is_made = false;
        } else if let (Some(before), Some(written)) = (self.before.take(), self.written.take()) {
            failed.extend(write_back(
                &self.root,
                &format!("{}/{CPUS}", self.plan.path),
                &before,
                |now| *now == written,
            ));
        }
        for (tid, own) in std::mem::take(&mut self.pinned) {
            failed.extend(super::affinity::restore_thread(&*self.calls, tid, &own, |_| true));
        }
        failed
    }

    fn read_file(&self, path: &str) -> Result<String, ActuateError> {
        let text = self.root.read_text(path).map_err(io::Error::other);
        text.map(|text| text.trim().to_owned()).map_err(|source| self.failed(path, source))
    }

    fn write_file(&self, path: &str, text: &str) -> Result<(), ActuateError> {
        write_file(&self.root, path, text).map_err(|source| self.failed(path, source))
    }

    fn failed(&self, path: &str, source: io::Error) -> ActuateError {
        let advice = match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "run as root or in a delegated group (systemd: Delegate=cpuset), or take --actuator affinity"
            }
            io::ErrorKind::NotFound => "the group was removed; start again",
            io::ErrorKind::ResourceBusy => {
                "the group is busy (an exclusive cpuset, or processes in it); take --actuator affinity"
            }
            _ => "take --actuator affinity",
        };
        ActuateError::Group { path: path.to_owned(), source, advice }
    }
}

/// Numbers of the processes in a group.
pub(super) fn members(root: &Root, group: &str) -> BTreeSet<u32> {
    let text = root.read_text(&format!("{group}/cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Moves the processes of a group created here back, and removes it; returns failures.
pub(super) fn dissolve(
    root: &Root,
    group: &str,
    home: &str,
    homes: &BTreeMap<u32, String>,
) -> Vec<String> {
    let is_ours = group.rsplit('/').next().is_some_and(|name| name.starts_with(PREFIX));
    if !is_ours || !root.exists(group) {
        return Vec::new();
    }
    let mut failed = Vec::new();
    for _ in 0..PASSES_MAX {
        failed.clear();
        let inside = members(root, group);
        for pid in &inside {
            let to = homes.get(pid).map_or(home, String::as_str);
            match write_file(root, &format!("{to}/cgroup.procs"), &pid.to_string()) {
                Err(error) if !is_gone(&error) => {
                    failed.push(format!("process {pid} is still in {group}: {error}"));
                }
                _ => {}
            }
        }
        if inside.is_empty() {
            break;
        }
    }
    let removed = root.path(group).map_err(io::Error::other).and_then(std::fs::remove_dir);
    failed.extend(removed.err().map(|error| format!("{group} is still there: {error}")));
    failed
}

/// Stops a group from passing the controller on; a child group of another program may need it.
pub(super) fn disable(root: &Root, group: &str) -> Option<String> {
    let below = root.list(group).unwrap_or_default();
    let is_used = |name: &String| {
        root.exists(&format!("{group}/{name}/{CPUS}")) && {
            let text = root.read_text(&format!("{group}/{name}/{CPUS}")).unwrap_or_default();
            !text.trim().is_empty()
        }
    };
    if below.iter().any(is_used) {
        return None;
    }
    let file = format!("{group}/cgroup.subtree_control");
    let error = write_file(root, &file, "-cpuset").err()?;
    Some(format!("{file}: the cpuset controller is still passed on: {error}"))
}

/// Restores a file, if it still has the value written here.
pub(super) fn write_back(
    root: &Root,
    file: &str,
    before: &str,
    is_ours: impl Fn(&CpuSet) -> bool,
) -> Option<String> {
    let now = CpuSet::parse(&root.read_text(file).ok()?).ok()?;
    if !is_ours(&now) {
        return Some(format!("{file} holds {now}, which another program wrote: left as it is"));
    }
    // Writing an empty text would do nothing.
    let error = write_file(root, file, &format!("{before}\n")).err()?;
    Some(format!("{file} still holds {now} instead of {before}: {error}"))
}

/// Writes to a kernel file, which must exist.
pub(super) fn write_file(root: &Root, path: &str, text: &str) -> io::Result<()> {
    let path = root.path(path).map_err(io::Error::other)?;
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// `ESRCH`: the process has ended.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error().map(atoll_sys::errno_name) == Some("ESRCH")
}
