//! The resources that flows share (controllers, links, cores), and the demand of each byte.

use atoll_topology::{Knowledge, NodeId};

use super::SimulationError;
use crate::{Assumptions, Costs};

/// Bytes of a cache line.
pub(super) const LINE: f64 = 64.0;

/// Overhead on the links besides data. Bytes are those of one line's messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Sent along with each line of data.
    pub header: f64,
    /// A snoop and its reply: sent by the reader to each other node, and by each of these to the home. Zero if no node
    /// is asked, as with a directory.
    pub snoop: f64,
    /// Share of its bandwidth that a controller or link keeps for each additional node whose data meets there: 1 means
    /// no loss.
    pub meeting: f64,
}

/// Whether lines are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// They come from the home.
    Read,
    /// They go there as full lines, without being read before.
    Write,
}

/// Bytes that a thread reads or writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// Node of the thread.
    pub at: NodeId,
    /// Node of the memory.
    pub home: NodeId,
    /// How many.
    pub bytes: f64,
    /// Its access.
    pub kind: AccessKind,
}

/// The work of a thread in a step: all accesses in parallel, at the same rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Accesses to memory.
    pub accesses: Vec<Access>,
    /// Additional time, ns: computing, and waiting for caches.
    pub own: f64,
}

/// The resources of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Interconnect {
    nodes: Vec<NodeId>,
    /// Capacities: GB/s of each node's controller, then of each direction of each link; then each
    /// node's cores.
    pub(super) capacities: Vec<f64>,
    /// Number of resources where data of several nodes meets: those before the cores.
    pub(super) wires: usize,
    /// Directions on the way, by (from, to).
    routes: Vec<Vec<Vec<usize>>>,
    /// ns, by (node of the cpus, home).
    latencies: Vec<Vec<f64>>,
    in_flight: f64,
    pub(super) protocol: Protocol,
}

/// The demand of a unit of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Usage {
    /// Bytes, or ns of a core, by resource; only what is used.
    pub(super) parts: Vec<(usize, f64)>,
    /// Resources through which its data goes.
    pub(super) data: Vec<usize>,
    /// Node of the thread.
    pub(super) at: usize,
    /// Total bytes, by which flows are compared.
    pub(super) bytes: f64,
    /// Minimum time on idle resources, ns.
    pub(super) least: f64,
}

impl Interconnect {
    /// The machine's controllers and links under a protocol. Bandwidths of links are those of data: a
    /// link carries the headers on top. Missing facts are assumed as in
    /// [`Assumptions::default`].
    pub fn from_knowledge(
        knowledge: &Knowledge,
        protocol: Protocol,
    ) -> Result<Self, SimulationError> {
        let costs = Costs::from_knowledge(knowledge, &Assumptions::default())?;
        let machine = &knowledge.machine;
        let nodes: Vec<NodeId> = machine.nodes.iter().map(|node| node.id).collect();
        let raw = 1.0 + protocol.header / LINE;
        let controllers = costs.nodes.iter().map(|node| node.bandwidth);
        let links = costs.links.iter().flat_map(|link| [link.bandwidth * raw; 2]);
        let cores = |node: &atoll_topology::Node| {
            let cores = machine.cores.iter().filter(|core| core.cpus.is_subset(&node.cpus));
            cores.count() as f64
        };
        let mut capacities: Vec<f64> = controllers.chain(links).collect();
        let wires = capacities.len();
        capacities.extend(machine.nodes.iter().map(cores));
        let route = |from, to| routed(knowledge, nodes.len(), from, to);
        let routes = nodes.iter().map(|from| nodes.iter().map(|to| route(*from, *to)).collect());
        let routes = routes.collect::<Result<Vec<Vec<_>>, _>>()?;
        let latencies = costs.nodes.iter().map(|node| node.memory.clone()).collect();
        let in_flight = costs.in_flight;
        Ok(Self { nodes, capacities, wires, routes, latencies, in_flight, protocol })
    }

    /// The demand of work.
    pub(super) fn usage(&self, work: &Work) -> Result<Usage, SimulationError> {
        let mut used = vec![0.0; self.capacities.len()];
        let (mut data, mut bytes, mut least, mut node) = (Vec::new(), 0.0, work.own, 0);
        for access in &work.accesses {
            let (at, home) = (self.position(access.at)?, self.position(access.home)?);
            if !(access.bytes.is_finite() && access.bytes >= 0.0) {
                return Err(SimulationError::Bytes { bytes: access.bytes });
            }
            let lines = access.bytes / LINE;
            self.add_data(&mut used, (at, home), access, &mut data);
            self.add_coherence(&mut used, (at, home), lines);
            least += lines * self.latencies[at][home] / self.in_flight;
            bytes += access.bytes;
            node = at;
        }
        used[self.wires + node] = least;
        data.sort_unstable();
        data.dedup();
        let parts = used.into_iter().enumerate().filter(|(_, part)| *part > 0.0).collect();
        Ok(Usage { parts, data, at: node, bytes, least })
    }

    fn add_data(
        &self,
        used: &mut [f64],
        (at, home): (usize, usize),
        access: &Access,
        data: &mut Vec<usize>,
    ) {
        used[home] += access.bytes;
        data.push(home);
        let way = match access.kind {
            AccessKind::Read => &self.routes[home][at],
            AccessKind::Write => &self.routes[at][home],
        };
        for direction in way {
            used[*direction] += access.bytes * (1.0 + self.protocol.header / LINE);
            data.push(*direction);
        }
    }

    /// A snoop from the thread's node to each other one, and a reply from each of these to the home.
    fn add_coherence(&self, used: &mut [f64], (at, home): (usize, usize), lines: f64) {
        for other in (0..self.nodes.len()).filter(|other| *other != at) {
            for direction in self.routes[at][other].iter().chain(&self.routes[other][home]) {
                used[*direction] += lines * self.protocol.snoop;
            }
        }
    }

    fn position(&self, node: NodeId) -> Result<usize, SimulationError> {
        let found = self.nodes.iter().position(|id| *id == node);
        found.ok_or(SimulationError::NoSuchNode { node })
    }
}

/// Indexes of the link directions from one node to another.
fn routed(
    knowledge: &Knowledge,
    nodes: usize,
    from: NodeId,
    to: NodeId,
) -> Result<Vec<usize>, SimulationError> {
    let route = knowledge.route(from, to).ok_or(SimulationError::NoRoute { from, to })?;
    let direction = |(link, from): (&atoll_topology::LinkId, &NodeId)| {
        let links = &knowledge.machine.links;
        let at = links.iter().position(|it| it.id == *link).unwrap_or_default();
        nodes + 2 * at + usize::from(links[at].a != *from)
    };
    Ok(route.links.iter().zip(&route.nodes).map(direction).collect())
}
