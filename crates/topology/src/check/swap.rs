//! Swap in use, or likely to be.

use super::{FileReading, Finding, scene::Scene};
use crate::Bytes;

const MEMINFO: &str = "/proc/meminfo";
const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
/// Above this swappiness the kernel swaps out process pages although it could drop file cache.
const SWAPPINESS_MAX: i64 = 10;
/// Above this share of memory, used swap is more than cold pages.
const USED_SHARE: f64 = 0.01;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let Some((total, _)) = scene.kilobytes(MEMINFO, "SwapTotal:").filter(|(b, _)| b.0 > 0) else {
        return Vec::new();
    };
    used(scene, total).into_iter().chain(eager(scene)).collect()
}

fn used(scene: &Scene<'_>, total: Bytes) -> Option<Finding> {
    let (free, reading) = scene.kilobytes(MEMINFO, "SwapFree:")?;
    let used = Bytes(total.0.saturating_sub(free.0));
    let (memory, _) = scene.kilobytes(MEMINFO, "MemTotal:")?;
    if used.0 as f64 <= memory.0 as f64 * USED_SHARE {
        return None;
    }
    let finding = Finding::warning(
        "swap_used",
        format!("{used} are swapped out"),
        "A page of a table or an index that comes back from disk takes a thousand times as long as \
         from the farthest node.",
    )
    .from([reading]);
    Some(way_back(scene, finding, used))
}

/// Adds the command only if memory has room for the swapped pages.
fn way_back(scene: &Scene<'_>, finding: Finding, used: Bytes) -> Finding {
    match scene.kilobytes(MEMINFO, "MemAvailable:") {
        Some((available, reading)) if available > used => {
            finding.from([reading]).command("swapoff -a && swapon -a")
        }
        _ => finding.advice("Give the machine's processes less memory before anything else."),
    }
}

fn eager(scene: &Scene<'_>) -> Option<Finding> {
    let (swappiness, reading): (i64, FileReading) = scene.number(SWAPPINESS)?;
    let finding = Finding::note(
        "swappiness",
        "The kernel may swap out a database's memory to keep file cache",
        "Buffer pools and tables are used in bursts; between them the kernel takes their pages for \
         unused.",
    );
    let eager = swappiness > SWAPPINESS_MAX;
    eager.then(|| finding.from([reading]).command("sysctl -w vm.swappiness=1"))
}
