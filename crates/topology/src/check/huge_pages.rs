//! Transparent huge pages, and the distribution of explicit huge pages over the nodes.

use super::{FileReading, Finding, scene::Scene};
use crate::{HugePages, Node, NodeSet};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    transparent(scene).into_iter().chain(pool(scene)).collect()
}

fn transparent(scene: &Scene<'_>) -> Option<Finding> {
    let (enabled, reading) = scene.chosen(ENABLED)?;
    match enabled.as_str() {
        "never" => Some(off(reading)),
        "always" => match scene.chosen(DEFRAG)? {
            (defrag, how) if defrag == "always" => Some(stalls(reading, how)),
            _ => None,
        },
        _ => None,
    }
}

fn off(reading: FileReading) -> Finding {
    Finding::warning(
        "huge_pages_off",
        "Transparent huge pages are off",
        "With 4 KiB pages every random access to a large table also misses the TLB. A database that \
         asks for huge pages (madvise) does not get them.",
    )
    .from([reading])
    .command(format!("echo madvise > {ENABLED}"))
}

fn stalls(enabled: FileReading, defrag: FileReading) -> Finding {
    Finding::warning(
        "huge_pages_stall",
        "Every page fault may wait until memory is compacted into a huge page",
        "With both settings on 'always' any allocation may stall for milliseconds, which shows as \
         rare slow queries once memory is fragmented.",
    )
    .from([enabled, defrag])
    .command(format!("echo defer+madvise > {DEFRAG}"))
}

/// A pool of explicit huge pages that only some nodes with cpus have.
fn pool(scene: &Scene<'_>) -> Option<Finding> {
    let nodes: Vec<&Node> =
        scene.machine().nodes_with_memory().filter(|node| !node.cpus.is_empty()).collect();
    let (size, most) = nodes
        .iter()
        .flat_map(|node| &node.huge_pages)
        .map(|pool| (pool.size, pool.total))
        .max_by_key(|&(size, total)| (total, size))?;
    let pages = |node: &Node| {
        let of_size = |pool: &&HugePages| pool.size == size;
        node.huge_pages.iter().find(of_size).map_or(0, |pool| pool.total)
    };
    let without: NodeSet =
        nodes.iter().filter(|node| pages(node) == 0 && most > 0).map(|node| node.id).collect();
    let first = without.iter().next()?;
    let file = |node: &dyn std::fmt::Display| {
        let kib = size.0 / 1024;
        format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/nr_hugepages")
    };
    let (those, command) = match without.len() {
        1 => (format!("Node {first} has"), format!("echo {most} > {}", file(&first))),
        _ => {
            let list = without.iter().map(|node| node.to_string()).collect::<Vec<_>>().join(" ");
            let to_each = file(&"$node");
            let command = format!("for node in {list}; do echo {most} > {to_each}; done");
            (format!("Nodes {without} have"), command)
        }
    };
    let finding = Finding::warning(
        "huge_pages_uneven",
        format!("{those} no huge pages of {size}, another node has {most}"),
        "Shared memory in huge pages then lies on the other nodes only, and every access from \
         there is remote.",
    );
    let reading = |node| FileReading { file: file(&node), value: "0".to_owned() };
    Some(finding.from(without.iter().map(reading)).command(command))
}
