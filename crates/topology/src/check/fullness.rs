//! A node that is nearly full while another has plenty of free memory.

use super::{Finding, scene::Scene};
use crate::{Bytes, Node};

/// Below this share of free memory, a node is nearly full.
const FULL_BELOW: f64 = 0.05;
/// Above this share of free memory, a node has plenty.
const PLENTY_ABOVE: f64 = 0.20;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let nodes = || scene.machine().nodes_with_memory().filter(|node| !node.cpus.is_empty());
    let emptiest = nodes().max_by(|a, b| free(a).total_cmp(&free(b)));
    match emptiest {
        Some(other) if free(other) > PLENTY_ABOVE => nodes()
            .filter(|node| free(node) < FULL_BELOW)
            .map(|node| finding(scene, node, other))
            .collect(),
        _ => Vec::new(),
    }
}

/// Share of a node's memory that is free.
fn free(node: &Node) -> f64 {
    node.memory_free.0 as f64 / node.memory.0 as f64
}

fn finding(scene: &Scene<'_>, node: &Node, other: &Node) -> Finding {
    let file = format!("/sys/devices/system/node/node{}/meminfo", node.id);
    let free_read = scene.kilobytes(&file, "MemFree:").map(|(_, reading)| reading);
    let cache = cache(scene, &file);
    let what = format!(
        "Node {} is nearly full ({} of {} free), node {} has {} free",
        node.id, node.memory_free, node.memory, other.id, other.memory_free
    );
    let why = "What threads of this node allocate lands on other nodes, silently, and is remote from \
               then on; bound to this node, it fails.";
    let finding = Finding::warning("node_full", what, why).from(free_read);
    match cache {
        Some((bytes, reading)) if bytes.0 > node.memory.0 / 10 => finding
            .from([reading])
            .command("sync && echo 1 > /proc/sys/vm/drop_caches")
            .advice(format!("{bytes} of it is file cache, which the command gives back.")),
        _ => finding.advice(
            "Find the process that fills it with 'numastat -v', and start that process with its \
             memory spread or on a node of its own.",
        ),
    }
}

/// Reclaimable file cache: shared memory counts as file pages but is not reclaimable.
fn cache(scene: &Scene<'_>, file: &str) -> Option<(Bytes, super::FileReading)> {
    let (pages, reading) = scene.kilobytes(file, "FilePages:")?;
    let shared = scene.kilobytes(file, "Shmem:").map_or(Bytes(0), |(bytes, _)| bytes);
    Some((Bytes(pages.0.saturating_sub(shared.0)), reading))
}
