//! Limits of control groups: `/proc/self/cgroup` names the group, `/proc/self/mountinfo` the mount point of its
//! hierarchy, and each group from there up to the mount may set a limit.
//!
//! Version 2 has `memory.max` and `cpu.max`, version 1 `memory.limit_in_bytes` and
//! `cpu.cfs_quota_us`; a machine may have both. Cpusets are visible in `/proc/self/status` and not read here. In a
//! container the group may have another name than in its mount, the mount may be missing, or files may be unreadable:
//! then the limits at the mount's top apply, and missing limits mean unlimited.

use atoll_sys::{Root, RootError};

use super::files::KernelFiles;
use crate::{Bytes, CpuTimeLimit, Limits, MemoryLimit};

/// Reads the limits; a memory limit of at least `memory` has no effect and is left out.
pub(super) fn read(files: &KernelFiles<'_>, memory: Bytes) -> Limits {
    let groups = files.visible_text("/proc/self/cgroup").unwrap_or_default();
    let mounts = files.visible_text("/proc/self/mountinfo").unwrap_or_default();
    let mut limits = Limits::default();
    for mount in mounts.lines().filter_map(Mount::parse) {
        for directory in mount.directories(&groups) {
            narrow_memory(&mut limits.memory, mount.memory(files, &directory));
            narrow_cpu_time(&mut limits.cpu_time, mount.cpu_time(files, &directory));
        }
    }
    limits.memory = limits.memory.filter(|limit| limit.bytes < memory);
    limits
}

/// Directories of the process's control groups and of those above them, in every hierarchy.
pub fn group_directories(root: &Root) -> Result<Vec<String>, RootError> {
    let groups = visible(root, "/proc/self/cgroup")?.unwrap_or_default();
    let mounts = visible(root, "/proc/self/mountinfo")?.unwrap_or_default();
    let mounts = mounts.lines().filter_map(Mount::parse);
    Ok(mounts.flat_map(|mount| mount.directories(&groups)).collect())
}

/// A file's text. Returns None if it does not exist or the process may not read it.
fn visible(root: &Root, name: &str) -> Result<Option<String>, RootError> {
    match root.read_text_if_present(name) {
        Err(RootError::Denied { .. }) => Ok(None),
        other => other,
    }
}

fn narrow_memory(narrowest: &mut Option<MemoryLimit>, other: Option<MemoryLimit>) {
    if let Some(other) = other
        && narrowest.as_ref().is_none_or(|limit| other.bytes < limit.bytes)
    {
        *narrowest = Some(other);
    }
}

fn narrow_cpu_time(narrowest: &mut Option<CpuTimeLimit>, other: Option<CpuTimeLimit>) {
    if let Some(other) = other
        && narrowest.as_ref().is_none_or(|limit| other.cpus < limit.cpus)
    {
        *narrowest = Some(other);
    }
}

/// A mounted hierarchy of control groups.
struct Mount<'a> {
    version: Version<'a>,
    /// Group that is mounted.
    top: &'a str,
    /// Directory at which it is mounted.
    point: &'a str,
}

enum Version<'a> {
    /// With its controllers, separated by commas.
    One(&'a str),
    Two,
}

impl<'a> Mount<'a> {
    /// Reads a line of mountinfo (proc_pid_mountinfo(5)): fields 4 and 5 are the mount's top and
    /// point; after a lone hyphen come type, source and the options that name v1 controllers.
    fn parse(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (top, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let version = match kind.next()? {
            "cgroup2" => Version::Two,
            "cgroup" => Version::One(kind.nth(1)?),
            _ => return None,
        };
        Some(Self { version, top, point })
    }

    /// Directories of the process's group and of the groups above it, up to the mount.
    fn directories(&self, groups: &str) -> Vec<String> {
        let Some(group) = groups.lines().find_map(|line| self.group_in(line)) else {
            return Vec::new();
        };
        let top = self.top.trim_end_matches('/');
        let below = group.strip_prefix(top).filter(|below| below.starts_with('/'));
        // A group outside the process's cgroup namespace is written with '..'.
        let below = below.filter(|below| !below.split('/').any(|part| part == ".."));
        let mut below = below.unwrap_or_default().trim_end_matches('/');
        let mut directories = vec![format!("{}{below}", self.point)];
        while let Some((above, _)) = below.rsplit_once('/') {
            directories.push(format!("{}{above}", self.point));
            below = above;
        }
        directories
    }

    /// The group that a line of `/proc/self/cgroup` (`4:memory:/group`, `0::/group` for version 2)
    /// names in this hierarchy.
    fn group_in<'g>(&self, line: &'g str) -> Option<&'g str> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let here = match self.version {
            Version::Two => controllers.is_empty(),
            Version::One(options) => {
                controllers.split(',').any(|one| options.split(',').any(|option| option == one))
            }
        };
        here.then_some(group)
    }

    fn memory(&self, files: &KernelFiles<'_>, directory: &str) -> Option<MemoryLimit> {
        let file = match self.version {
            Version::One(_) => format!("{directory}/memory.limit_in_bytes"),
            Version::Two => format!("{directory}/memory.max"),
        };
        let text = files.visible_text(&file)?;
        if text.trim() == "max" {
            return None;
        }
        let bytes = text.trim().parse().ok().map(Bytes);
        if bytes.is_none() {
            files.malformed(&file, "a number of bytes or 'max'", &text);
        }
        Some(MemoryLimit { bytes: bytes?, file })
    }

    fn cpu_time(&self, files: &KernelFiles<'_>, directory: &str) -> Option<CpuTimeLimit> {
        let (file, text) = match self.version {
            Version::One(_) => {
                let file = format!("{directory}/cpu.cfs_quota_us");
                let quota = files.visible_text(&file);
                let period = files.visible_text(&format!("{directory}/cpu.cfs_period_us"));
                (file, quota.zip(period).map(|(quota, period)| format!("{quota} {period}")))
            }
            Version::Two => {
                let file = format!("{directory}/cpu.max");
                let text = files.visible_text(&file);
                (file, text)
            }
        };
        let text = text?;
        let cpus = quota(&text);
        if cpus.is_none() {
            let expected = "microseconds of quota ('max' or -1 for none), period";
            files.malformed(&file, expected, &text);
        }
        Some(CpuTimeLimit { cpus: cpus??, file })
    }
}

/// Cpus' worth of time of a quota and its period; the inner None means unlimited, the outer one an unreadable text.
fn quota(text: &str) -> Option<Option<f64>> {
    let (quota, period) = text.split_once(char::is_whitespace)?;
    if matches!(quota.trim(), "max" | "-1") {
        return Some(None);
    }
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok().filter(|&period| period > 0)?;
    Some(Some(quota as f64 / period as f64))
}
