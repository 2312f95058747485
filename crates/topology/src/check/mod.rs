//! What is odd about a machine for a database: settings of the kernel, memory out of balance, what
//! firmware, containers and control groups keep back. Each finding says what was read, why it matters
//! and the command that changes it.
//!
//! | File | Finds |
//! |---|---|
//! | `balancing` | automatic NUMA balancing on several nodes |
//! | `distances` | distances that rate nothing, or contradict themselves |
//! | `domains` | domains that measurements show and the kernel does not know |
//! | `firmware` | nodes hidden by firmware, hypervisor or the kernel's command line |
//! | `fullness` | a node without free memory while others have plenty |
//! | `governor` | cpus that do not run at full clock |
//! | `hidden` | cpus and nodes outside the affinity mask or the cpuset |
//! | `huge_pages` | transparent huge pages off or stalling, an uneven pool of explicit ones |
//! | `isolation` | cpus that the scheduler leaves alone |
//! | `limits` | control groups that grant less than the machine has |
//! | `memory` | nodes with cpus and little or no memory |
//! | `overcommit` | strict accounting that leaves memory unusable |
//! | `reclaim` | a node that reclaims before it borrows |
//! | `refused` | calls for placement that the kernel or a container refuses |
//! | `swap` | swap in use, or likely to be |
//! | `threads` | hardware threads switched off, offline cpus |
//!
//! A check reads files under a [`Root`], so it works on a tree copied from another machine; only `refused`
//! asks the kernel, and only of the machine it runs on. A new
//! check is a new file and a line in `CHECKS`.

mod balancing;
mod distances;
mod domains;
mod finding;
mod firmware;
mod fullness;
mod governor;
mod hidden;
mod huge_pages;
mod isolation;
mod limits;
mod memory;
mod overcommit;
mod reclaim;
mod refused;
mod scene;
mod swap;
mod text;
mod threads;

use atoll_sys::Root;

use crate::Knowledge;
use scene::Scene;

pub use finding::{FileReading, Finding, Severity};
pub use text::text;

/// All checks, by topic.
const CHECKS: [fn(&Scene<'_>) -> Vec<Finding>; 16] = [
    firmware::check,
    domains::check,
    distances::check,
    memory::check,
    fullness::check,
    balancing::check,
    reclaim::check,
    huge_pages::check,
    swap::check,
    overcommit::check,
    governor::check,
    threads::check,
    isolation::check,
    hidden::check,
    limits::check,
    refused::check,
];

/// What is odd about the machine that is known and whose sysfs and procfs lie under `root`; warnings
/// before notes, empty where nothing is odd. A file that is there and cannot be read or understood
/// becomes a note, so this never fails.
pub fn check(knowledge: &Knowledge, root: &Root) -> Vec<Finding> {
    let scene = Scene::new(knowledge, root);
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&scene)).collect();
    findings.extend(scene.unreadable());
    findings.sort_by_key(|finding| finding.severity);
    findings
}
