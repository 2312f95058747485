//! Automatic NUMA balancing (`kernel.numa_balancing`: 0 off, 1 on, 2 between memory tiers).

use super::{Finding, scene::Scene};

const FILE: &str = "/proc/sys/kernel/numa_balancing";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    if scene.machine().nodes.len() < 2 {
        return Vec::new();
    }
    match scene.number(FILE) {
        Some((mode, reading)) if mode & 1 != 0 => vec![
            Finding::warning(
                "numa_balancing",
                "Automatic NUMA balancing is on",
                "The kernel unmaps pages to see who touches them and moves them between nodes. A \
                 database whose threads share one buffer pool pays for the faults and the copies, \
                 and its pages leave the nodes where they were put.",
            )
            .from([reading])
            .command("sysctl -w kernel.numa_balancing=0"),
        ],
        _ => Vec::new(),
    }
}
