//! Automatic NUMA balancing: whether it is on, and its counters since the machine started.

use atoll_sys::Root;

use super::read::text_if_readable;

/// Automatic NUMA balancing of the whole machine. Fields are `None` if the kernel does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Balancing {
    /// `/proc/sys/kernel/numa_balancing`: 0 off, 1 on, 2 for memory tiers.
    pub mode: Option<u32>,
    /// Page table entries unmapped to find out who touches the page.
    pub pte_updates: Option<u64>,
    /// Hinting faults.
    pub hint_faults: Option<u64>,
    /// Hinting faults by a cpu of the page's own node.
    pub hint_faults_local: Option<u64>,
    /// Pages moved.
    pub pages_migrated: Option<u64>,
}

impl Balancing {
    /// Reads it.
    pub fn read(root: &Root) -> Self {
        let mode = text_if_readable(root, "/proc/sys/kernel/numa_balancing");
        let counters = text_if_readable(root, "/proc/vmstat").unwrap_or_default();
        let counter = |name: &str| {
            let mut lines = counters.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name).and_then(|(_, value)| value.trim().parse().ok())
        };
        Self {
            mode: mode.and_then(|text| text.trim().parse().ok()),
            pte_updates: counter("numa_pte_updates"),
            hint_faults: counter("numa_hint_faults"),
            hint_faults_local: counter("numa_hint_faults_local"),
            pages_migrated: counter("numa_pages_migrated"),
        }
    }
}
