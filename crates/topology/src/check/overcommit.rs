//! Strict accounting of memory (`vm.overcommit_memory` 2) with a limit far below the memory.

use super::{Finding, scene::Scene};

const FILE: &str = "/proc/sys/vm/overcommit_memory";
const STRICT: i64 = 2;
const MEMINFO: &str = "/proc/meminfo";
/// A limit below this share of the memory leaves much of it unusable.
const SHARE_MIN: f64 = 0.8;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    finding(scene).into_iter().collect()
}

fn finding(scene: &Scene<'_>) -> Option<Finding> {
    let (_, mode) = scene.number(FILE).filter(|(mode, _)| *mode == STRICT)?;
    let (limit, reading) = scene.kilobytes(MEMINFO, "CommitLimit:")?;
    let (memory, _) = scene.kilobytes(MEMINFO, "MemTotal:")?;
    if limit.0 as f64 >= memory.0 as f64 * SHARE_MIN {
        return None;
    }
    let what = format!("Processes may allocate {limit} in all, of {memory} memory");
    let why = "Under strict accounting an allocation beyond the limit fails although memory is free; \
               a database that reserves its buffers in one piece does not start.";
    let finding = Finding::warning("overcommit", what, why).from([mode, reading]);
    Some(finding.command("sysctl -w vm.overcommit_ratio=95"))
}
