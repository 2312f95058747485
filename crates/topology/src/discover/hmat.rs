//! What the firmware's HMAT (ACPI 6.5, section 5.2.28) says of memory, as the kernel shows it:
//! `/sys/devices/system/node/node*/access{0,1}/initiators`.
//!
//! The directory belongs to the node of the memory. It links to the initiators that reach this
//! memory best and tells what all of them get: `read_latency` in ns, `read_bandwidth` and
//! `write_bandwidth` in MB/s (Linux `Documentation/admin-guide/mm/numaperf.rst`). Class 0 ranks all
//! initiators, class 1 cpus only, so class 1 tells of a node whose best initiator is a device. Paths
//! from other nodes stay unknown, a figure of 0 is one that the firmware does not give, and the
//! write latency has no quantity of its own.

use std::time::SystemTime;

use atoll_sys::Root;

use super::{nodes, read};
use crate::discover::DiscoverError;
use crate::{Fact, Machine, NodeId, Quantity, Source, Subject};

/// File, quantity, and what one unit of the file is in the unit of the quantity.
const FIGURES: [(&str, Quantity, f64); 3] = [
    ("read_latency", Quantity::Latency, 1.0),
    ("read_bandwidth", Quantity::ReadBandwidth, 1e-3),
    ("write_bandwidth", Quantity::WriteBandwidth, 1e-3),
];

/// Facts about the paths from nodes with cpus of the machine to its nodes with memory.
pub(super) fn read(root: &Root, machine: &Machine) -> Result<Vec<Fact>, DiscoverError> {
    let now = SystemTime::now();
    let mut facts = Vec::new();
    for to in machine.nodes_with_memory() {
        let mut told = Vec::new();
        for class in 0..=1 {
            let directory = nodes::file(to.id, &format!("access{class}/initiators"));
            let mut from = initiators(root, &directory, machine)?;
            from.retain(|node| !told.contains(node));
            for (file, quantity, unit) in FIGURES {
                let origin = format!("{directory}/{file}");
                let Some(value) = figure(root, &origin)? else { continue };
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
    Ok(facts)
}

/// Nodes with cpus that the directory links to, in the order of their numbers.
fn initiators(
    root: &Root,
    directory: &str,
    machine: &Machine,
) -> Result<Vec<NodeId>, DiscoverError> {
    if !root.exists(directory) {
        return Ok(Vec::new());
    }
    let names = root.list(directory)?;
    let number = |name: &String| name.strip_prefix("node")?.parse().ok().map(NodeId);
    let has_cpus = |node: &NodeId| machine.node(*node).is_some_and(|node| !node.cpus.is_empty());
    let mut nodes: Vec<NodeId> = names.iter().filter_map(number).filter(has_cpus).collect();
    nodes.sort_unstable();
    Ok(nodes)
}

/// A figure; none where the kernel or the firmware does not give it.
fn figure(root: &Root, name: &str) -> Result<Option<u64>, DiscoverError> {
    let Some(number) = read::number_if_present(root, name)? else { return Ok(None) };
    u64::try_from(number)
        .map(|number| Some(number).filter(|&number| number > 0))
        .map_err(|_| read::malformed(root, name, "a number from 0 on", &number.to_string()))
}
