//! Estimates time from costs and flows.

use std::fmt;
use std::iter::zip;

use atoll_topology::{LinkId, Nanos, NodeId};
use serde::{Deserialize, Serialize};

use crate::costs::{LinkCosts, NodeCosts};
use crate::{Costs, Figure, Flows, FlowsError, LinkFlow, NodeFlow};

/// The estimated time of a run on the real machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Time of each node's cpus, by node.
    pub nodes: Vec<NodeTime>,
    /// Time of each memory controller, by node.
    pub controllers: Vec<ControllerTime>,
    /// Time of each link and direction, by link, forward first.
    pub links: Vec<LinkTime>,
    /// Accesses in flight for [`independent`](Self::independent).
    pub in_flight: f64,
    /// Bounds for independent accesses.
    pub independent: TimeBounds,
    /// Bounds if each access waits for the one before.
    pub dependent: TimeBounds,
    /// The figures used.
    pub figures: Vec<Figure>,
}

/// Time of a node's cpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeTime {
    /// The node.
    pub node: NodeId,
    /// Cpus that share the work.
    pub busy_cpus: f64,
    /// Compute time of one of them.
    pub compute: Nanos,
    /// Time of one of them to wait for lines one by one.
    pub wait: Nanos,
    /// Waiting time of all of them together by cause, one access at a time.
    pub waits: Waits,
}

/// Waiting time by cause, one access at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Private caches beyond the first level.
    pub private: Nanos,
    /// The domain's last-level cache.
    pub llc: Nanos,
    /// The node's own memory.
    pub memory_local: Nanos,
    /// Other nodes' memory.
    pub memory_remote: Nanos,
    /// Lines in other domains' caches, and invalidating lines there.
    pub caches: Nanos,
    /// Page walks.
    pub walks: Nanos,
}

/// Time of a memory controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerTime {
    /// Its node.
    pub node: NodeId,
    /// Its bytes divided by its bandwidth.
    pub time: Nanos,
}

/// Time of one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkTime {
    /// The link.
    pub link: LinkId,
    /// Where the bytes come from.
    pub from: NodeId,
    /// Where they go.
    pub to: NodeId,
    /// Its bytes divided by its bandwidth.
    pub time: Nanos,
}

/// Bounds of the time of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeBounds {
    /// The slowest node's computing and waiting.
    pub latency: Nanos,
    /// The busiest controller or link.
    pub bandwidth: Nanos,
    /// Lower bound: the larger of the two, if they overlap completely.
    pub lower: Nanos,
    /// Upper bound: both, one after the other.
    pub upper: Nanos,
    /// All cpus' computing and waiting in sequence: the time of a single-threaded program, wherever its thread ran.
    pub serial: Nanos,
    /// The bottleneck; None if nothing was counted.
    pub narrowest: Option<Resource>,
}

/// Bounds of the time of one access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerAccess {
    /// At least.
    pub lower: Nanos,
    /// At most.
    pub upper: Nanos,
}

/// A resource that can be busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// The cpus of a node.
    Cpus(NodeId),
    /// The memory controller of a node.
    Controller(NodeId),
    /// One direction of a link.
    Link {
        /// The link.
        link: LinkId,
        /// Where the bytes come from.
        from: NodeId,
        /// Where they go.
        to: NodeId,
    },
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpus(node) => write!(f, "cpus of node {node}"),
            Self::Controller(node) => write!(f, "memory controller of node {node}"),
            Self::Link { link, from, to } => write!(f, "link {link} from node {from} to {to}"),
        }
    }
}

impl Estimate {
    /// Estimates the time. Returns an error if the flows and the costs are of different machines.
    pub fn from_flows(costs: &Costs, flows: &Flows) -> Result<Self, FlowsError> {
        flows.check(costs)?;
        let node = |(at, (node, flow))| node_time(costs, at, node, flow);
        let nodes: Vec<NodeTime> = zip(&costs.nodes, &flows.nodes).enumerate().map(node).collect();
        let controllers = zip(&costs.nodes, &flows.controllers).map(|(node, flow)| {
            let bytes = flow.read as f64 + flow.written as f64;
            ControllerTime { node: node.id, time: Nanos(bytes / node.bandwidth) }
        });
        let controllers: Vec<ControllerTime> = controllers.collect();
        let links: Vec<LinkTime> = zip(&costs.links, &flows.links)
            .flat_map(|(link, flow)| directions(link, *flow))
            .collect();
        let bounds = |in_flight| bounds(&nodes, &controllers, &links, in_flight);
        Ok(Self {
            independent: bounds(costs.in_flight),
            dependent: bounds(1.0),
            in_flight: costs.in_flight,
            nodes,
            controllers,
            links,
            figures: costs.figures.clone(),
        })
    }
}

impl NodeTime {
    /// Computing and waiting of one of the cpus, with this number of accesses in flight.
    pub fn latency(&self, in_flight: f64) -> Nanos {
        Nanos(self.compute.0 + self.wait.0 / in_flight.max(1.0))
    }
}

impl Waits {
    /// All of them.
    pub fn sum(&self) -> Nanos {
        let memory = self.memory_local.0 + self.memory_remote.0;
        Nanos(self.private.0 + self.llc.0 + memory + self.caches.0 + self.walks.0)
    }
}

impl TimeBounds {
    /// Time of one access of a thread that made this many. Returns None for no accesses.
    pub fn per_access(&self, accesses_of_a_thread: u64) -> Option<PerAccess> {
        let each = |time: Nanos| Nanos(time.0 / accesses_of_a_thread as f64);
        let some = accesses_of_a_thread > 0;
        some.then(|| PerAccess { lower: each(self.lower), upper: each(self.upper) })
    }
}

fn node_time(costs: &Costs, at: usize, node: &NodeCosts, flow: &NodeFlow) -> NodeTime {
    let waits = waits(at, node, flow);
    let busy_cpus = costs.busy_cpus.unwrap_or(flow.busy_cpus);
    let busy_cpus = if busy_cpus.is_finite() { busy_cpus.max(1.0) } else { 1.0 };
    let compute = match costs.compute_per_access {
        Some(each) => flow.accesses as f64 * each,
        None => flow.instructions as f64 * node.instruction,
    };
    NodeTime {
        node: node.id,
        busy_cpus,
        compute: Nanos(compute / busy_cpus),
        wait: Nanos(waits.sum().0 / busy_cpus),
        waits,
    }
}

fn waits(at: usize, node: &NodeCosts, flow: &NodeFlow) -> Waits {
    let times = |count: u64, each: f64| count as f64 * each;
    let sum = |counts: &[u64], each: &[f64]| -> f64 {
        zip(counts, each).map(|(count, each)| times(*count, *each)).sum()
    };
    let local = times(flow.memory[at], node.memory[at]);
    let mut remote = flow.memory.clone();
    remote[at] = 0;
    let lines = sum(&flow.clean, &node.clean) + sum(&flow.dirty, &node.dirty);
    Waits {
        private: Nanos(times(flow.l2_hits, node.l2)),
        llc: Nanos(times(flow.llc_hits, node.llc)),
        memory_local: Nanos(local),
        memory_remote: Nanos(sum(&remote, &node.memory)),
        caches: Nanos(lines + times(flow.upgrades, node.upgrade)),
        walks: Nanos(times(flow.dtlb_misses, node.walk)),
    }
}

fn directions(costs: &LinkCosts, flow: LinkFlow) -> [LinkTime; 2] {
    let link = &costs.link;
    let time = |from, to, bytes: u64| {
        let time = Nanos(bytes as f64 / costs.bandwidth);
        LinkTime { link: link.id, from, to, time }
    };
    [time(link.a, link.b, flow.forward), time(link.b, link.a, flow.backward)]
}

/// The asymptotic bounds with this number of accesses in flight.
fn bounds(
    nodes: &[NodeTime],
    controllers: &[ControllerTime],
    links: &[LinkTime],
    in_flight: f64,
) -> TimeBounds {
    let cpus = nodes.iter().map(|node| (node.latency(in_flight), Resource::Cpus(node.node)));
    let memory = controllers.iter().map(|it| (it.time, Resource::Controller(it.node)));
    let links = links.iter().map(|it| {
        let &LinkTime { link, from, to, time } = it;
        (time, Resource::Link { link, from, to })
    });
    let cpus = longest(cpus);
    let pipes = longest(memory.chain(links));
    let time = |found: &Option<(Nanos, Resource)>| found.map_or(0.0, |(time, _)| time.0);
    let (latency, bandwidth) = (time(&cpus), time(&pipes));
    TimeBounds {
        latency: Nanos(latency),
        bandwidth: Nanos(bandwidth),
        lower: Nanos(latency.max(bandwidth)),
        upper: Nanos(latency + bandwidth),
        serial: Nanos(nodes.iter().map(|it| it.latency(in_flight).0 * it.busy_cpus).sum()),
        narrowest: longest(cpus.into_iter().chain(pipes)).map(|(_, resource)| resource),
    }
}

/// The longest nonzero time, the first of several.
fn longest(times: impl Iterator<Item = (Nanos, Resource)>) -> Option<(Nanos, Resource)> {
    let some = times.filter(|(time, _)| time.0 > 0.0);
    some.reduce(|longest, it| if it.0.0 > longest.0.0 { it } else { longest })
}
