//! Latencies and bandwidths in the firmware's table (HMAT), if facts give them for every path.

use atoll_topology::{Knowledge, NodeId, Quantity};

/// QEMU keeps bandwidths as sixteen bits above a common unit; this one leaves room for 4 TB/s.
const BANDWIDTH_STEP: u64 = 64 << 20;
const LATENCY_MAX: f64 = 65_000.0;

/// A path's figures as QEMU takes them: ns, and bytes a second where known.
pub(super) struct HmatEntry {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) latency: u64,
    pub(super) bandwidth: Option<u64>,
}

/// The entries, from every node with cpus to every node with memory; empty if a latency is unknown.
/// Bandwidths are there for all paths or for none.
pub(super) fn entries(known: &Knowledge) -> Vec<HmatEntry> {
    let machine = &known.machine;
    let targets = || machine.nodes_with_memory().map(|node| node.id);
    let paths = machine.nodes_with_cpus().flat_map(|node| targets().map(move |to| (node.id, to)));
    let entries: Option<Vec<HmatEntry>> = paths.map(|(from, to)| entry(known, from, to)).collect();
    let mut entries = entries.unwrap_or_default();
    if entries.iter().any(|entry| entry.bandwidth.is_none()) {
        entries.iter_mut().for_each(|entry| entry.bandwidth = None);
    }
    entries
}

fn entry(known: &Knowledge, from: NodeId, to: NodeId) -> Option<HmatEntry> {
    let latency = known.latency(from, to)?.value.round();
    if !(1.0..=LATENCY_MAX).contains(&latency) {
        return None;
    }
    let bandwidth = known.bandwidth(from, to, Quantity::ReadBandwidth, None);
    let bandwidth = bandwidth.map(|fact| steps(fact.value)).filter(|&bandwidth| bandwidth > 0);
    Some(HmatEntry { from, to, latency: latency as u64, bandwidth })
}

/// GB/s to bytes a second in whole steps.
fn steps(gigabytes: f64) -> u64 {
    let steps = (gigabytes * 1e9 / BANDWIDTH_STEP as f64).round();
    if steps < 65_535.0 { steps as u64 * BANDWIDTH_STEP } else { 0 }
}
