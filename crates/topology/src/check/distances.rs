//! Distances that are uninformative or contradictory.

use super::{FileReading, Finding, scene::Scene};
use crate::assemble::DISTANCE_LOCAL;
use crate::{Machine, NodeId, Source};

/// The SLIT's value for an unreachable node (ACPI 6.5, section 5.2.17).
const UNREACHABLE: u32 = 255;

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    let machine = scene.machine();
    if machine.nodes.len() < 2 {
        return Vec::new();
    }
    let checks = [assumed, unreachable, as_near_as_home, uneven];
    checks.iter().filter_map(|check| check(machine)).collect()
}

/// Pairs of different nodes with their distance.
fn pairs(machine: &Machine) -> impl Iterator<Item = (NodeId, NodeId, u32)> {
    let nodes = || machine.nodes.iter().map(|node| node.id);
    nodes().zip(&machine.distances).flat_map(move |(from, row)| {
        nodes().zip(row).filter(move |&(to, _)| to != from).map(move |(to, &d)| (from, to, d))
    })
}

fn reading(from: NodeId, to: NodeId, distance: u32) -> FileReading {
    let file = format!("/sys/devices/system/node/node{from}/distance");
    FileReading { file, value: format!("{distance} to node {to}") }
}

fn assumed(machine: &Machine) -> Option<Finding> {
    let unknown = machine.distances_source == Source::Assumed && machine.nodes.len() > 2;
    let what = "The distances between the nodes are unknown";
    let why =
        "Every remote node then counts as equally far, and the nearest one is chosen at random.";
    unknown.then(|| {
        Finding::note("distances_assumed", what, why)
            .command_of_user("atoll topo measure")
            .advice("Measured latencies take the place of distances.")
    })
}

fn unreachable(machine: &Machine) -> Option<Finding> {
    let (from, to, distance) = pairs(machine).find(|&(.., d)| d >= UNREACHABLE)?;
    let what = format!("The firmware reports node {to} as unreachable from node {from}");
    let why = "The kernel does not fall back to such a node when memory runs short, and schedules \
               no thread across.";
    let finding = Finding::warning("node_unreachable", what, why);
    let advice = "Look for newer firmware: nodes of one machine reach each other.";
    Some(finding.from([reading(from, to, distance)]).advice(advice))
}

fn as_near_as_home(machine: &Machine) -> Option<Finding> {
    let (from, to, distance) = pairs(machine).find(|&(.., d)| d <= DISTANCE_LOCAL)?;
    let what = format!("Node {to} counts as near to node {from} as its own memory");
    let why = "The kernel sees no reason to prefer local memory; the firmware's table is wrong, or \
               the nodes are not real.";
    Some(
        Finding::warning("distances_flat", what, why)
            .from([reading(from, to, distance)])
            .command_of_user("atoll topo measure"),
    )
}

fn uneven(machine: &Machine) -> Option<Finding> {
    let (from, to, there) =
        pairs(machine).find(|&(from, to, there)| machine.distance(to, from) != Some(there))?;
    let back = machine.distance(to, from)?;
    let what = format!("Nodes {from} and {to} are {there} apart there and {back} back");
    let why = "Wires are as long in both directions: more likely the firmware's table is wrong than \
               the path uneven.";
    Some(
        Finding::note("distances_uneven", what, why)
            .from([reading(from, to, there), reading(to, from, back)])
            .command_of_user("atoll topo measure"),
    )
}
