//! The cost of each event on a machine.

use atoll_topology::{Knowledge, Link, Nanos, NodeId, Quantity, Subject};

use crate::assumptions::is_usable;
use crate::figures::Ledger;
use crate::{AssumptionError, Assumptions, Figure, bandwidths, latencies};

/// Costs of a machine. Lists are in the order of [`Machine::nodes`](atoll_topology::Machine::nodes) and
/// [`Machine::links`](atoll_topology::Machine::links).
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    pub(crate) nodes: Vec<NodeCosts>,
    pub(crate) links: Vec<LinkCosts>,
    /// Independent accesses in flight.
    pub(crate) in_flight: f64,
    /// Time per access instead of that of the instructions, ns.
    pub(crate) compute_per_access: Option<f64>,
    /// Busy cpus of each node, instead of those of the flows.
    pub(crate) busy_cpus: Option<f64>,
    pub(crate) figures: Vec<Figure>,
}

/// Costs of a node's cpus, ns, and the bandwidth of its memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeCosts {
    pub(crate) id: NodeId,
    /// A line from memory, by home.
    pub(crate) memory: Vec<f64>,
    /// A clean line from a cache, by node of the cache.
    pub(crate) clean: Vec<f64>,
    /// A written line from a cache, by node of the cache.
    pub(crate) dirty: Vec<f64>,
    pub(crate) l2: f64,
    pub(crate) llc: f64,
    pub(crate) walk: f64,
    /// Invalidating a line in all other caches: they are asked in parallel, and the farthest determines the time.
    pub(crate) upgrade: f64,
    /// Of an instruction.
    pub(crate) instruction: f64,
    /// GB/s, which are bytes in a nanosecond.
    pub(crate) bandwidth: f64,
}

/// A link and its bandwidth in each direction, GB/s.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkCosts {
    pub(crate) link: Link,
    pub(crate) bandwidth: f64,
}

impl Costs {
    /// The costs from facts, and from assumptions where facts are missing. Facts that are not positive are ignored.
    pub fn from_knowledge(
        knowledge: &Knowledge,
        assumptions: &Assumptions,
    ) -> Result<Self, AssumptionError> {
        assumptions.check()?;
        let mut ledger = Ledger::default();
        let memory = latencies::latencies(knowledge, assumptions, &mut ledger);
        let clock = clocks(knowledge, assumptions, &mut ledger);
        let cores = Cores::from_assumptions(assumptions, &mut ledger);
        let bandwidth = bandwidths::controllers(knowledge, assumptions, &mut ledger);
        let links = bandwidths::links(knowledge, assumptions, &mut ledger);
        let in_flight =
            ledger.assumed("accesses in flight of a cpu", "at a time", &assumptions.in_flight);
        let busy_cpus = assumptions.busy_cpus.as_ref();
        let busy_cpus = busy_cpus.map(|it| ledger.assumed("busy cpus of a node", "cpus", it));
        let ids = knowledge.machine.nodes.iter().map(|node| node.id);
        let nodes = ids.zip(memory).zip(clock).zip(bandwidth);
        Ok(Self {
            nodes: nodes.map(|(((id, row), ghz), gbs)| cores.node(id, row, ghz, gbs)).collect(),
            links: std::iter::zip(knowledge.machine.links.clone(), links)
                .map(|(link, bandwidth)| LinkCosts { link, bandwidth })
                .collect(),
            in_flight,
            compute_per_access: cores.compute_per_access,
            busy_cpus,
            figures: ledger.into_figures(),
        })
    }

    /// Latency of memory, from cpus of a node to a home. Returns None for unknown nodes.
    pub fn memory(&self, from: NodeId, to: NodeId) -> Option<Nanos> {
        let to = self.position(to)?;
        Some(Nanos(self.nodes[self.position(from)?].memory[to]))
    }

    /// Bandwidth of a node's memory controller, GB/s.
    pub fn bandwidth(&self, node: NodeId) -> Option<f64> {
        Some(self.nodes[self.position(node)?].bandwidth)
    }

    /// The figures used.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    fn position(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }
}

/// GHz of each node's cpus.
fn clocks<'a>(
    knowledge: &'a Knowledge,
    assumptions: &'a Assumptions,
    ledger: &mut Ledger<'a>,
) -> Vec<f64> {
    let clock = |node: &atoll_topology::Node| {
        let subject = Subject::Package(node.package?);
        let facts = knowledge.facts.iter().filter(|fact| fact.subject == subject);
        let clocks = facts.filter(|fact| fact.quantity == Quantity::Frequency);
        clocks.filter(|fact| is_usable(fact.value)).min_by_key(|fact| fact.source)
    };
    let mut unused = Ledger::default();
    let mut ledgered = |node: &atoll_topology::Node| {
        // No thread waits on a node without cpus: its figures have no effect.
        let ledger = if node.cpus.is_empty() { &mut unused } else { &mut *ledger };
        match clock(node) {
            Some(fact) => ledger.fact("clock frequency", "GHz", fact),
            None => ledger.assumed("clock frequency", "GHz", &assumptions.frequency),
        }
    };
    knowledge.machine.nodes.iter().map(&mut ledgered).collect()
}

/// Assumptions about all cores.
struct Cores {
    l2_cycles: f64,
    llc_cycles: f64,
    walk_cycles: f64,
    clean: f64,
    dirty: f64,
    instruction_cycles: f64,
    compute_per_access: Option<f64>,
}

impl Cores {
    fn from_assumptions<'a>(assumptions: &'a Assumptions, ledger: &mut Ledger<'a>) -> Self {
        let mut noted = |name, unit, it| ledger.assumed(name, unit, it);
        let l2_cycles = noted("hit in the second level", "cycles", &assumptions.latency_l2);
        let llc_cycles = noted("hit in the last level", "cycles", &assumptions.latency_llc);
        let clean = noted("clean line of another cache", "× memory", &assumptions.line_clean);
        let dirty = noted("written line of another cache", "× memory", &assumptions.line_dirty);
        let walk_cycles = noted("page walk", "cycles", &assumptions.walk);
        let fixed = assumptions.compute_per_access.as_ref();
        let compute_per_access = fixed.map(|it| noted("computing per access", "ns", it));
        let instruction_cycles = match compute_per_access {
            Some(_) => 0.0,
            None => {
                let rate = &assumptions.instructions_per_cycle;
                1.0 / noted("instructions", "per cycle", rate)
            }
        };
        Self {
            l2_cycles,
            llc_cycles,
            walk_cycles,
            clean,
            dirty,
            instruction_cycles,
            compute_per_access,
        }
    }

    fn node(&self, id: NodeId, memory: Vec<f64>, ghz: f64, bandwidth: f64) -> NodeCosts {
        let scaled = |share: f64| memory.iter().map(|latency| latency * share).collect();
        let clean: Vec<f64> = scaled(self.clean);
        NodeCosts {
            id,
            l2: self.l2_cycles / ghz,
            llc: self.llc_cycles / ghz,
            walk: self.walk_cycles / ghz,
            upgrade: clean.iter().copied().fold(0.0, f64::max),
            instruction: self.instruction_cycles / ghz,
            dirty: scaled(self.dirty),
            clean,
            memory,
            bandwidth,
        }
    }
}
