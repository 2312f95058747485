//! The firmware's HMAT (ACPI 6.5, section 5.2.28) as shown by the kernel:
//! `/sys/devices/system/node/node*/access{0,1}/initiators`.
//!
//! The directory belongs to the memory's node. It links to the initiators with the best access to this memory and has
//! the figures of all of them: `read_latency` in ns, `read_bandwidth` and `write_bandwidth` in MB/s (Linux
//! `Documentation/admin-guide/mm/numaperf.rst`). Class 0 ranks all initiators, class 1 only cpus, so class 1 covers
//! nodes whose best initiator is a device. Paths from other nodes remain unknown, a figure of 0 means that the
//! firmware has none, and the write latency has no quantity.

use std::time::SystemTime;

use super::files::KernelFiles;
use super::nodes;
use crate::{Fact, Machine, NodeId, Quantity, Source, Subject};

/// File, quantity, and the factor from the file's unit to the quantity's.
const FIGURES: [(&str, Quantity, f64); 3] = [
    ("read_latency", Quantity::Latency, 1.0),
    ("read_bandwidth", Quantity::ReadBandwidth, 1e-3),
    ("write_bandwidth", Quantity::WriteBandwidth, 1e-3),
];

/// Facts about the paths from nodes with cpus of the machine to its nodes with memory.
pub(super) fn read(files: &KernelFiles<'_>, machine: &Machine) -> Vec<Fact> {
    let now = SystemTime::now();
    let mut facts = Vec::new();
    for to in machine.nodes_with_memory() {
        let mut told = Vec::new();
        for class in 0..=1 {
            let directory = initiators_of(to.id, class);
            let has_cpus =
                |node: &NodeId| machine.node(*node).is_some_and(|node| !node.cpus.is_empty());
            let mut from: Vec<NodeId> = initiators(files, &directory).filter(has_cpus).collect();
            from.retain(|node| !told.contains(node));
            for (file, quantity, unit) in FIGURES {
                let origin = format!("{directory}/{file}");
                let Some(value) = figure(files, &origin) else { continue };
                facts.extend(from.iter().map(|&from| {
                    let subject = Subject::Path { from, to: to.id };
                    let value = value as f64 * unit;
                    let fact =
                        Fact::new(subject, quantity, value, Source::Discovered, origin.clone());
                    Fact { at: Some(now), ..fact }
                }));
            }
            told.extend(from);
        }
    }
    facts
}

/// Nodes whose cpus have the best access to the node's memory, ordered by number; empty if the firmware does not
/// report them.
pub(super) fn nearest(files: &KernelFiles<'_>, node: NodeId) -> Vec<NodeId> {
    let classes = [1, 0].into_iter();
    let found = classes.map(|class| initiators(files, &initiators_of(node, class)).collect());
    found.into_iter().find(|nodes: &Vec<NodeId>| !nodes.is_empty()).unwrap_or_default()
}

fn initiators_of(node: NodeId, class: u32) -> String {
    nodes::file(node, &format!("access{class}/initiators"))
}

/// Nodes that the directory links to, ordered by number.
fn initiators(files: &KernelFiles<'_>, directory: &str) -> impl Iterator<Item = NodeId> {
    files.numbered(directory, "node").into_iter().map(NodeId)
}

/// A figure. Returns None if the kernel or the firmware does not provide it.
fn figure(files: &KernelFiles<'_>, name: &str) -> Option<u64> {
    files.count(name, "a number from 0 on").filter(|&number| number > 0)
}
