//! Checks a machine for problems for a database: kernel settings, unbalanced memory, and resources withheld by
//! firmware, containers and control groups. Each finding shows what was read, why it matters and the command that
//! changes it.
//!
//! | File | Finds |
//! |---|---|
//! | `balancing` | automatic NUMA balancing on several nodes |
//! | `distances` | distances that are uninformative or contradictory |
//! | `domains` | domains that measurements reveal but the kernel does not report |
//! | `firmware` | nodes hidden by firmware, a hypervisor or the kernel's command line |
//! | `fullness` | a node without free memory while others have plenty |
//! | `governor` | cpus that do not run at full clock |
//! | `hidden` | cpus and nodes outside the affinity mask or the cpuset |
//! | `huge_pages` | transparent huge pages off or stalling, an uneven pool of explicit ones |
//! | `isolation` | cpus isolated from the scheduler |
//! | `limits` | control groups that grant less than the machine has |
//! | `memory` | nodes with cpus and little or no memory |
//! | `overcommit` | strict accounting that leaves memory unusable |
//! | `reclaim` | a node that reclaims before it borrows |
//! | `refused` | placement calls that the kernel or a container refuses |
//! | `swap` | swap in use, or likely to be |
//! | `threads` | hardware threads switched off, offline cpus |
//!
//! A check reads files under a [`Root`], so it works on a tree copied from another machine; only `refused` calls the
//! kernel, and only on the live machine. To add a check, add a file and a line in `CHECKS`.

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

/// Checks a machine whose sysfs and procfs are under `root`. Returns warnings before notes; empty if there is nothing
/// to report. A file that exists but cannot be read or parsed becomes a note, so this never fails.
pub fn check(knowledge: &Knowledge, root: &Root) -> Vec<Finding> {
    let scene = Scene::new(knowledge, root);
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&scene)).collect();
    findings.extend(scene.unreadable());
    findings.sort_by_key(|finding| finding.severity);
    findings
}
