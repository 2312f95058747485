//! `/proc/PID/status`: resident bytes by their kind, and what the process may use.

use atoll_sys::Root;
use atoll_topology::{CpuSet, NodeSet};

use super::read::{self, Unread, field};

/// The fields used. Sizes in bytes; zero for kernel threads and zombies, which have no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::inspect) struct Status {
    pub(in crate::inspect) anonymous: u64,
    pub(in crate::inspect) files: u64,
    pub(in crate::inspect) shared: u64,
    /// Explicit huge pages, which the kernel does not count as resident.
    pub(in crate::inspect) huge: u64,
    pub(in crate::inspect) swapped: u64,
    pub(in crate::inspect) threads: u64,
    pub(in crate::inspect) nodes_allowed: NodeSet,
    pub(in crate::inspect) user: Option<u32>,
}

impl Status {
    pub(in crate::inspect) fn resident(&self) -> u64 {
        [self.anonymous, self.files, self.shared, self.huge]
            .iter()
            .fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// The fields used for a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::inspect) struct ThreadStatus {
    pub(in crate::inspect) cpus_allowed: CpuSet,
    pub(in crate::inspect) switches_voluntary: Option<u64>,
    pub(in crate::inspect) switches_involuntary: Option<u64>,
}

pub(in crate::inspect) fn read(root: &Root, pid: u32) -> Result<Status, Unread> {
    let name = format!("/proc/{pid}/status");
    let text = read::text(root, &name)?;
    if text.is_empty() {
        return Err(Unread::Absent);
    }
    let bytes = |key| kilobytes(root, &name, &text, key);
    let resident = bytes("VmRSS")?;
    let (files, shared) = (bytes("RssFile")?, bytes("RssShmem")?);
    // Kernels before 4.5 report only the sum.
    let anonymous = match field(&text, "RssAnon") {
        Some(_) => bytes("RssAnon")?,
        None => resident.saturating_sub(files.saturating_add(shared)),
    };
    Ok(Status {
        anonymous,
        files,
        shared,
        huge: bytes("HugetlbPages")?,
        swapped: bytes("VmSwap")?,
        threads: field(&text, "Threads").and_then(|text| text.parse().ok()).unwrap_or(0),
        nodes_allowed: set(root, &name, &text, "Mems_allowed_list")?,
        user: field(&text, "Uid").and_then(|ids| ids.split_whitespace().next()?.parse().ok()),
    })
}

pub(in crate::inspect) fn read_thread(root: &Root, name: &str) -> Result<ThreadStatus, Unread> {
    let text = read::text(root, name)?;
    if text.is_empty() {
        return Err(Unread::Absent);
    }
    let number = |key| field(&text, key).and_then(|value| value.parse().ok());
    Ok(ThreadStatus {
        cpus_allowed: set(root, name, &text, "Cpus_allowed_list")?,
        switches_voluntary: number("voluntary_ctxt_switches"),
        switches_involuntary: number("nonvoluntary_ctxt_switches"),
    })
}

/// A size; zero if the line does not exist.
fn kilobytes(root: &Root, name: &str, text: &str, key: &str) -> Result<u64, Unread> {
    let Some(value) = field(text, key) else { return Ok(0) };
    let number = value.strip_suffix("kB").and_then(|number| number.trim().parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(1024)) {
        Some(bytes) => Ok(bytes),
        None => Err(wrong(root, name, text, key, "a size such as 'VmRSS: 1024 kB'")),
    }
}

/// A set; empty if the line does not exist.
fn set<T>(
    root: &Root,
    name: &str,
    text: &str,
    key: &str,
) -> Result<atoll_topology::IdSet<T>, Unread>
where
    T: From<u32> + Into<u32> + Copy,
{
    atoll_topology::IdSet::parse(field(text, key).unwrap_or_default())
        .map_err(|_| wrong(root, name, text, key, "a list such as 'Cpus_allowed_list: 0-3,8'"))
}

fn wrong(root: &Root, name: &str, text: &str, key: &str, expected: &'static str) -> Unread {
    let found = text.lines().enumerate().find(|(_, line)| line.starts_with(key));
    let (line, found) = found.unwrap_or_default();
    match root.path(name) {
        Ok(path) => read::malformed(&path, line as u64 + 1, expected, found).into(),
        Err(error) => error.into(),
    }
}
