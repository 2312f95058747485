//! The cost of accessing data from the cpus of a node, by which queries compare nodes.

use std::collections::{BTreeMap, HashMap};

use crate::{Conditions, Fact, Knowledge, NodeId, NodeSet, Quantity, Source, Subject};

/// Sources of latencies, the most trusted first; an assumed latency has no more information than the distances.
const LATENCY_SOURCES: [Source; 5] =
    [Source::Measured, Source::Observed, Source::Discovered, Source::Declared, Source::Synthetic];

/// The unit of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostBasis {
    /// Idle latencies in ns, all from one source that has every path from a node with cpus to one with memory.
    Latency(Source),
    /// SLIT distances, if no source has all latencies.
    Distance(Source),
}

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionError {
    /// Data on a node that is not in the machine.
    #[error(
        "node {node} does not exist or may not be used by this process; expected one of \
             {nodes}"
    )]
    UnknownNode {
        /// The node.
        node: NodeId,
        /// Nodes of the machine.
        nodes: NodeSet,
    },
    /// Not enough cores are free.
    #[error("{asked} cores requested, {free} free; request fewer, or free some")]
    TooFewCores {
        /// Requested cores.
        asked: usize,
        /// Cores with a free cpu: of the machine, or of the node with the most.
        free: usize,
    },
}

/// Costs of the nodes with cpus.
#[derive(Clone, Debug)]
pub(super) struct CpuNodeCosts {
    pub(super) basis: CostBasis,
    /// Σ pages × cost, not divided by the pages: exact as long as the costs are whole numbers, so that equal nodes
    /// compare equal.
    sums: BTreeMap<NodeId, f64>,
    pages: f64,
}

impl CpuNodeCosts {
    /// Costs of accessing these data, given as nodes with weights such as numbers of pages.
    pub(super) fn for_data(
        knowledge: &Knowledge,
        data: &[(NodeId, u64)],
    ) -> Result<Self, QuestionError> {
        let machine = &knowledge.machine;
        if let Some(&(node, _)) = data.iter().find(|(node, _)| machine.node(*node).is_none()) {
            let nodes = machine.nodes.iter().map(|node| node.id).collect();
            return Err(QuestionError::UnknownNode { node, nodes });
        }
        let latencies = complete_latencies(knowledge, data);
        let sum = |from| match &latencies {
            Some((_, known)) => weighted(data, |to| known.get(&(from, to)).copied()),
            None => weighted(data, |to| Some(machine.distance(from, to)?.into())),
        };
        let basis = match &latencies {
            Some((source, _)) => CostBasis::Latency(*source),
            None => CostBasis::Distance(machine.distances_source),
        };
        let sums = machine.nodes_with_cpus().map(|node| (node.id, sum(node.id))).collect();
        let pages = data.iter().map(|&(_, pages)| pages as f64).sum();
        Ok(Self { basis, sums, pages })
    }

    /// Cost of all the data from a node, for comparisons.
    pub(super) fn sum(&self, from: NodeId) -> f64 {
        self.sums.get(&from).copied().unwrap_or(f64::INFINITY)
    }

    /// Converts a sum to the mean cost of one access; 0 without data.
    pub(super) fn mean(&self, sum: f64, places: usize) -> f64 {
        let accesses = self.pages * places as f64;
        if accesses > 0.0 { sum / accesses } else { 0.0 }
    }
}

/// Latencies by path.
type Latencies = HashMap<(NodeId, NodeId), f64>;

fn weighted(data: &[(NodeId, u64)], cost: impl Fn(NodeId) -> Option<f64>) -> f64 {
    data.iter().map(|&(to, pages)| pages as f64 * cost(to).unwrap_or(f64::INFINITY)).sum()
}

/// The latencies of the most trusted source that has all paths from nodes with cpus to nodes with memory, and to the
/// nodes of the data.
fn complete_latencies(
    knowledge: &Knowledge,
    data: &[(NodeId, u64)],
) -> Option<(Source, Latencies)> {
    let machine = &knowledge.machine;
    let memories: NodeSet = machine.nodes_with_memory().map(|node| node.id).collect();
    let targets = memories.union(&data.iter().map(|&(node, _)| node).collect());
    let is_complete = |known: &Latencies| {
        let tells_all = |from| targets.iter().all(|to| known.contains_key(&(from, to)));
        machine.nodes_with_cpus().all(|node| tells_all(node.id))
    };
    LATENCY_SOURCES
        .into_iter()
        .map(|source| (source, latencies(knowledge, source)))
        .find(|(_, known)| is_complete(known))
}

/// The newest idle latency of each path from a source.
fn latencies(knowledge: &Knowledge, source: Source) -> Latencies {
    let idle = |fact: &&Fact| {
        fact.quantity == Quantity::Latency
            && fact.source == source
            && fact.conditions == Conditions::default()
    };
    let mut facts: Vec<&Fact> = knowledge.facts.iter().filter(idle).collect();
    facts.sort_by_key(|fact| fact.at);
    let path = |fact: &Fact| match fact.subject {
        Subject::Path { from, to } => Some(((from, to), fact.value)),
        _ => None,
    };
    facts.into_iter().filter_map(path).collect()
}
