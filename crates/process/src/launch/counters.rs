//! Counters of the whole machine: pages migrated and automatic balancing's faults.

use std::collections::BTreeMap;

use atoll_sys::Root;

/// Counters of `/proc/vmstat` about placement.
const NAMES: [&str; 8] = [
    "numa_hit",
    "numa_miss",
    "numa_foreign",
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_success",
];

/// Counters of this kernel, by the kernel's names.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct MachineCounters {
    values: BTreeMap<&'static str, u64>,
}

impl MachineCounters {
    /// Reads `/proc/vmstat`; empty if it cannot be read.
    pub fn read(root: &Root) -> Self {
        let text = root.read_text("/proc/vmstat").unwrap_or_default();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse().ok()
        };
        Self { values: NAMES.iter().filter_map(|name| Some((*name, value(name)?))).collect() }
    }

    /// The increase of each counter since then.
    pub fn since(&self, then: &Self) -> Self {
        let before = |name| then.values.get(name).copied().unwrap_or(0);
        let values =
            self.values.iter().map(|(name, now)| (*name, now.saturating_sub(before(name))));
        Self { values: values.collect() }
    }

    /// A counter by the kernel's name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_whole_name_and_never_run_backwards() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| {
            std::fs::create_dir_all(directory.path().join("proc")).unwrap();
            std::fs::write(directory.path().join("proc/vmstat"), text).unwrap();
            MachineCounters::read(&Root::at(directory.path()))
        };
        let before = write("numa_hint_faults 5\nnuma_hint_faults_local 3\nnuma_hit x\n");
        assert_eq!((before.get("numa_hint_faults"), before.get("numa_hit")), (Some(5), None));
        let after = write("numa_hint_faults 9\nnuma_hint_faults_local 1\n");
        let moved = after.since(&before);
        assert_eq!(moved.get("numa_hint_faults"), Some(4));
        assert_eq!(moved.get("numa_hint_faults_local"), Some(0));
    }
}
