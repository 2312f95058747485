//! `vm.zone_reclaim_mode`: whether a full node reclaims its own pages before it uses another's.

use super::{Finding, scene::Scene};

const FILE: &str = "/proc/sys/vm/zone_reclaim_mode";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    if scene.machine().nodes_with_memory().count() < 2 {
        return Vec::new();
    }
    match scene.number(FILE) {
        Some((mode, reading)) if mode != 0 => vec![
            Finding::warning(
                "zone_reclaim",
                "A full node drops its file cache although other nodes have free memory",
                "Threads stall in reclaim and read the same files from disk again, while memory \
                 one hop away is unused.",
            )
            .from([reading])
            .command("sysctl -w vm.zone_reclaim_mode=0"),
        ],
        _ => Vec::new(),
    }
}
