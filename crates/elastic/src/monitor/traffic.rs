//! Memory traffic of the machine, from the resctrl counters of the kernel (Intel MBM, AMD QoS): bytes that each
//! last-level cache exchanged with memory, and with its own node's memory. The difference crossed the interconnect: HT
//! and IMC of the paper's section 4.1.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_sys::Root;

use super::MonitorState;

const DATA: &str = "/sys/fs/resctrl/mon_data";
/// Minimum time between two looks: the kernel asks another cpu for each counter.
const EVERY: Duration = Duration::from_millis(100);

/// The source of the load `u`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LoadKind {
    /// Cpu time used, of the time of the target's cpus.
    #[default]
    Cpu,
    /// Memory traffic, of this many bytes a second.
    Memory(f64),
    /// Traffic over the interconnect, of all memory traffic.
    Interconnect,
}

impl LoadKind {
    /// Parses `cpu`, `memory:GIGABYTES` (a second) or `interconnect`.
    pub fn named(text: &str) -> Result<Self, String> {
        let bandwidth = |text: &str| {
            let number = text.parse::<f64>().ok();
            number.filter(|number| number.is_finite() && *number > 0.0).map(|it| it * 1e9)
        };
        let kind = match text.split_once(':') {
            Some(("memory", number)) => bandwidth(number).map(Self::Memory),
            None if text == "cpu" => Some(Self::Cpu),
            None if text == "interconnect" => Some(Self::Interconnect),
            _ => None,
        };
        kind.ok_or_else(|| {
            format!("unknown load '{text}'; expected cpu, interconnect, or memory: and the GB/s of its controllers")
        })
    }

    /// Whether it needs traffic counters.
    pub fn is_traffic(self) -> bool {
        self != Self::Cpu
    }
}

/// Bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// To and from all memory.
    pub total: u64,
    /// To and from the memory of the cache's own node.
    pub local: u64,
}

impl Traffic {
    /// The load in percent over some seconds since `before`; None if a counter went backwards or nothing was read.
    pub fn load(self, before: Self, seconds: f64, kind: LoadKind) -> Option<f64> {
        let total = self.total.checked_sub(before.total)? as f64;
        let local = self.local.checked_sub(before.local)? as f64;
        match kind {
            LoadKind::Cpu => None,
            LoadKind::Memory(bandwidth) => {
                (seconds > 0.0).then(|| total / seconds / bandwidth * 100.0)
            }
            LoadKind::Interconnect => {
                (total > 0.0).then(|| (total - local).max(0.0) / total * 100.0)
            }
        }
    }
}

/// Reads the counters.
#[derive(Debug, Default)]
pub(super) struct TrafficMonitor {
    next: Duration,
    is_there: Option<bool>,
}

impl TrafficMonitor {
    /// Bytes so far; None without counters or before the next look is due.
    pub(super) fn look(&mut self, at: Duration, root: &Root) -> Option<Traffic> {
        if at < self.next || self.is_there == Some(false) {
            return None;
        }
        self.next = at + EVERY;
        let found = read(root);
        self.is_there = Some(found.is_some());
        found
    }

    pub(super) fn state(&self, root: &Root) -> MonitorState {
        const NAME: &str = "memory and interconnect traffic";
        match self.is_there.unwrap_or_else(|| root.exists(DATA)) {
            true => MonitorState::fallback(
                NAME,
                "traffic of the whole machine, by last-level cache (resctrl)",
            ),
            false => MonitorState::absent(
                NAME,
                "no counters in /sys/fs/resctrl: mount -t resctrl resctrl /sys/fs/resctrl, on a processor \
                 that has them",
            ),
        }
    }
}

fn read(root: &Root) -> Option<Traffic> {
    let caches = traffic_by_cache(root);
    let add = |sum: Traffic, it: Traffic| Traffic {
        total: sum.total.saturating_add(it.total),
        local: sum.local.saturating_add(it.local),
    };
    caches.into_values().reduce(add)
}

/// Bytes that each last-level cache has transferred so far, by its number in resctrl; empty without resctrl.
pub fn traffic_by_cache(root: &Root) -> BTreeMap<u32, Traffic> {
    let number = |file: String| root.read_text(&file).ok()?.trim().parse::<u64>().ok();
    let of = |name: &String| {
        let cache = name.strip_prefix("mon_L3_")?.parse().ok()?;
        let total = number(format!("{DATA}/{name}/mbm_total_bytes"))?;
        let local = number(format!("{DATA}/{name}/mbm_local_bytes"))?;
        Some((cache, Traffic { total, local }))
    };
    root.list(DATA).unwrap_or_default().iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use atoll_testkit::tree::Tree;

    use super::*;

    #[test]
    fn traffic_is_a_load_of_controllers_or_of_the_interconnect() {
        let data = "sys/fs/resctrl/mon_data/mon_L3";
        let tree = Tree::empty()
            .with(&format!("{data}_00/mbm_total_bytes"), "3000000000\n")
            .with(&format!("{data}_00/mbm_local_bytes"), "1000000000\n")
            .with(&format!("{data}_01/mbm_total_bytes"), "1000000000\n")
            .with(&format!("{data}_01/mbm_local_bytes"), "1000000000\n");
        let mut monitor = TrafficMonitor::default();
        let found = monitor.look(Duration::ZERO, &tree.root()).unwrap();
        assert_eq!(found, Traffic { total: 4_000_000_000, local: 2_000_000_000 });
        let caches = traffic_by_cache(&tree.root());
        assert_eq!(caches[&1], Traffic { total: 1_000_000_000, local: 1_000_000_000 });
        assert_eq!(monitor.look(Duration::from_millis(50), &tree.root()), None, "too soon");
        let load = |kind| found.load(Traffic::default(), 2.0, kind);
        assert_eq!(load(LoadKind::named("memory:4").unwrap()), Some(50.0));
        assert_eq!(load(LoadKind::Interconnect), Some(50.0));
        assert_eq!(load(LoadKind::Cpu), None);
        assert_eq!(Traffic::default().load(found, 1.0, LoadKind::Interconnect), None);
    }

    #[test]
    fn missing_counters_are_reported() {
        let tree = Tree::empty();
        let mut monitor = TrafficMonitor::default();
        assert_eq!(monitor.look(Duration::ZERO, &tree.root()), None);
        assert!(monitor.state(&tree.root()).says.contains("mount -t resctrl"));
        for wrong in ["memory", "memory:0", "memory:x", "memory:inf", "ratio", ""] {
            assert!(LoadKind::named(wrong).unwrap_err().contains("expected cpu"), "{wrong}");
        }
    }
}
