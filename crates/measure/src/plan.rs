//! The order and the estimated time of the measurements.
//!
//! Steps are grouped by the node whose memory they read: it is allocated, verified and linked once, and released
//! before the next node's turn.

use std::time::Duration;

use atoll_topology::{CpuId, Machine, Node, NodeId};

use crate::MeasureError;
use crate::buffers::BufferSizes;
use crate::options::{MeasureOptions, MeasurementKind};
use crate::parts::{bandwidth, core_to_core, loaded};
use crate::step::{MeasureStep, Turn};

/// Time to place and touch memory: 0.3 s a GB, as measured in base pages.
const TOUCH_NS_A_BYTE: f64 = 0.3;
/// Time to link one line into a chain: two misses.
const LINK_NS_A_LINE: f64 = 150.0;

/// The plan.
#[derive(Clone, Debug)]
pub(crate) struct MeasurePlan {
    pub(crate) turns: Vec<Turn>,
    /// Cpus whose pairs all bounce a line.
    pub(crate) pair_cpus: Vec<CpuId>,
    /// What cannot be measured on this machine, or only partially.
    pub(crate) notes: Vec<String>,
}

/// Rejects a buffer that no node could hold; a buffer that a node is too full for becomes a note at that node's turn.
fn check_buffer(machine: &Machine, options: &MeasureOptions) -> Result<(), MeasureError> {
    let largest = machine.nodes.iter().map(|node| node.memory).max().unwrap_or_default();
    match options.buffer.filter(|buffer| *buffer > largest) {
        Some(buffer) => Err(MeasureError::Options {
            what: format!("a buffer of {buffer}; the largest node has {largest}"),
        }),
        None => Ok(()),
    }
}

impl MeasurePlan {
    pub(crate) fn new(machine: &Machine, options: &MeasureOptions) -> Result<Self, MeasureError> {
        options.check()?;
        let name = || machine.name.clone();
        if machine.nodes_with_cpus().next().is_none() {
            return Err(MeasureError::NoCpus { machine: name() });
        }
        let on_memory = options.parts.iter().any(|part| *part != MeasurementKind::CoreToCore);
        if on_memory && machine.nodes_with_memory().next().is_none() {
            return Err(MeasureError::NoMemory { machine: name() });
        }
        if on_memory {
            check_buffer(machine, options)?;
        }
        let mut notes = general_notes(machine, options);
        let (mut turns, mut pair_cpus) = (Vec::new(), Vec::new());
        for node in machine.nodes_with_memory() {
            let steps = steps_to(machine, options, node);
            if !steps.is_empty() {
                turns.push(Turn { node: node.id, steps });
            }
        }
        if options.parts.contains(&MeasurementKind::CoreToCore) {
            pair_cpus = core_to_core::cpus(machine, options, &mut notes);
        }
        Ok(Self { turns, pair_cpus, notes })
    }

    /// Total number of steps.
    pub(crate) fn steps(&self) -> usize {
        let steps: usize = self.turns.iter().map(|turn| turn.steps.len()).sum();
        // Each cpu with all later ones is a step.
        steps + self.pair_cpus.len().saturating_sub(1)
    }

    /// Total time.
    pub(crate) fn time(&self, machine: &Machine, options: &MeasureOptions) -> Duration {
        let turns = self.turns.iter().map(|turn| turn.time(machine, options));
        turns.sum::<Duration>() + core_to_core::time(core_to_core::pairs(self.pair_cpus.len()))
    }
}

impl Turn {
    /// Time for the steps and their memory.
    pub(crate) fn time(&self, machine: &Machine, options: &MeasureOptions) -> Duration {
        let steps = self.steps.iter().map(|step| step.time(machine, options));
        self.prepare_time(machine, options) + steps.sum::<Duration>()
    }

    /// Time to place, touch and link the memory.
    pub(crate) fn prepare_time(&self, machine: &Machine, options: &MeasureOptions) -> Duration {
        let sizes = BufferSizes::wanted(machine, options, &self.steps);
        let touch = sizes.total().0 as f64 * TOUCH_NS_A_BYTE;
        let link = sizes.chain.map_or(0.0, |chain| chain.0 as f64 / 64.0 * LINK_NS_A_LINE);
        Duration::from_nanos((touch + link) as u64)
    }
}

impl MeasureStep {
    /// Time for all its figures.
    pub(crate) fn time(&self, machine: &Machine, options: &MeasureOptions) -> Duration {
        let cpus = machine.node(self.from).map_or(0, |node| node.cpus.len());
        let runs = match self.part {
            MeasurementKind::Bandwidth => bandwidth::runs(cpus, options.thorough),
            MeasurementKind::Loaded => loaded::pauses(options.thorough).len() as u32,
            MeasurementKind::Latency
            | MeasurementKind::CrossTraffic
            | MeasurementKind::CoreToCore => 1,
        };
        options.run_time() * runs
    }
}

/// Steps that read a node's memory, part by part; latency first, while the chain is whole.
fn steps_to(machine: &Machine, options: &MeasureOptions, to: &Node) -> Vec<MeasureStep> {
    let mut steps = Vec::new();
    for part in options.parts.iter().filter(|part| **part != MeasurementKind::CoreToCore) {
        for from in machine.nodes_with_cpus().filter(|from| is_possible(machine, *part, from)) {
            let every = options.thorough
                || matches!(part, MeasurementKind::Latency | MeasurementKind::Bandwidth);
            if every || is_telling(machine, from, to) {
                steps.push(MeasureStep { part: *part, from: from.id, to: to.id });
            }
        }
    }
    steps
}

fn is_possible(machine: &Machine, part: MeasurementKind, from: &Node) -> bool {
    match part {
        MeasurementKind::Loaded => from.cpus.len() > 1,
        MeasurementKind::CrossTraffic => machine.nodes_with_cpus().count() > 1,
        _ => true,
    }
}

/// Whether the path is the shortest or the longest from its node.
fn is_telling(machine: &Machine, from: &Node, to: &Node) -> bool {
    let ordered = machine.nodes_by_distance(from.id);
    let with_memory: Vec<NodeId> =
        ordered.into_iter().filter(|node| node.memory.0 > 0).map(|node| node.id).collect();
    with_memory.first() == Some(&to.id) || with_memory.last() == Some(&to.id)
}

/// Known gaps and limits, before anything is measured.
fn general_notes(machine: &Machine, options: &MeasureOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(limit) = &machine.limits.cpu_time {
        let (cpus, file) = (limit.cpus, &limit.file);
        notes.push(format!(
            "{file} grants {cpus} cpus' worth of time: figures of more threads are the limit's, \
             not the machine's"
        ));
    }
    if cfg!(debug_assertions) {
        notes.push(
            "built without optimisation: bandwidths are the program's, not the machine's".into(),
        );
    }
    for part in [MeasurementKind::Loaded, MeasurementKind::CrossTraffic] {
        let missing: Vec<String> = machine
            .nodes_with_cpus()
            .filter(|from| options.parts.contains(&part) && !is_possible(machine, part, from))
            .map(|from| from.id.to_string())
            .collect();
        if !missing.is_empty() {
            let (nodes, need) = (
                missing.join(","),
                match part {
                    MeasurementKind::Loaded => "a second cpu on the node",
                    _ => "a second node with cpus",
                },
            );
            notes.push(format!("{part} from node {nodes}: needs {need}"));
        }
    }
    notes.extend(
        options
            .parts
            .iter()
            .any(|part| *part != MeasurementKind::CoreToCore)
            .then(|| bare(machine))
            .flatten(),
    );
    notes
}

/// Nodes that lack cpus or memory.
fn bare(machine: &Machine) -> Option<String> {
    let list = |lacks: fn(&Node) -> bool| {
        let nodes: atoll_topology::NodeSet =
            machine.nodes.iter().filter(|node| lacks(node)).map(|node| node.id).collect();
        nodes
    };
    let (no_cpus, no_memory) = (list(|node| node.cpus.is_empty()), list(|node| node.memory.0 == 0));
    let mut parts = Vec::new();
    if !no_cpus.is_empty() {
        parts.push(format!("node {no_cpus} has no cpus: only read from"));
    }
    if !no_memory.is_empty() {
        parts.push(format!("node {no_memory} has no memory: only reads"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use atoll_testkit::machines;

    use super::*;

    fn plan(machine: &Machine, options: &MeasureOptions) -> MeasurePlan {
        MeasurePlan::new(machine, options).unwrap()
    }

    #[test]
    fn every_path_from_cpus_to_memory_is_measured_once() {
        for machine in machines::all() {
            let options = MeasureOptions {
                parts: [MeasurementKind::Latency].into(),
                ..MeasureOptions::quick()
            };
            let plan = plan(&machine, &options);
            let mut paths: Vec<_> = plan
                .turns
                .iter()
                .flat_map(|turn| turn.steps.iter().map(|step| (step.from, step.to)))
                .collect();
            let cpus = machine.nodes_with_cpus().count();
            assert_eq!(paths.len(), cpus * machine.nodes_with_memory().count());
            paths.sort();
            paths.dedup();
            assert_eq!(paths.len(), plan.steps());
        }
    }

    #[test]
    fn loaded_paths_are_the_nearest_and_the_farthest_unless_all_are_wanted() {
        let machine = machines::four_nodes();
        let steps = |options: MeasureOptions| {
            let parts = [MeasurementKind::CrossTraffic].into();
            plan(&machine, &MeasureOptions { parts, ..options }).steps()
        };
        assert_eq!((steps(MeasureOptions::quick()), steps(MeasureOptions::full())), (8, 16));
    }

    #[test]
    fn what_a_machine_cannot_show_is_said() {
        let notes = plan(&machines::one_node(), &MeasureOptions::full()).notes.join("\n");
        assert!(
            notes.contains("cross-traffic from node 0: needs a second node with cpus"),
            "{notes}"
        );
        let notes = plan(&machines::eight_uneven_nodes(), &MeasureOptions::full()).notes.join("\n");
        assert!(notes.contains("loaded from node 4: needs a second cpu"), "{notes}");
        assert!(
            notes.contains("node 5 has no cpus: only read from; node 6 has no memory"),
            "{notes}"
        );
    }

    #[test]
    fn a_brief_measurement_is_estimated_shorter_than_a_full_one() {
        for machine in machines::all() {
            let time = |options: &MeasureOptions| plan(&machine, options).time(&machine, options);
            assert!(time(&MeasureOptions::quick()) < time(&MeasureOptions::full()));
        }
    }
}
