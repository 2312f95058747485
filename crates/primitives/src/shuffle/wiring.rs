//! The load of a schedule, counted over routes; and the ring that loads a machine's links least.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_topology::{Knowledge, LinkId, Machine, NodeId, links_assumed};

use super::order::{Circle, RingOrder, Turns};
use super::{Moved, Schedule, Transfer};

/// Maximum number of workers for the search: it counts every visit of every candidate.
const WORKERS_SEARCHED_MAX: usize = 256;
/// Maximum number of nodes for the search. Machines with more have no interconnect of single links.
const NODES_SEARCHED_MAX: usize = 16;
/// Rounds of exchanging nodes on the circle. Two or three find the best that exchanges can find.
const ROUNDS_MAX: usize = 8;

/// The routes between a machine's nodes.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// Both directions of each link: the link, its ends, its bandwidth relative to the narrowest.
    directions: Vec<(LinkId, NodeId, NodeId, f64)>,
    /// Directions crossed from one node to another; absent if no route is known.
    routes: BTreeMap<(NodeId, NodeId), Option<Vec<usize>>>,
}

/// The load of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLoad {
    /// Workers at each memory controller: readers, or, when pushed, writers.
    pub controllers: BTreeMap<NodeId, usize>,
    /// Transfers over each direction of each link, including zeros.
    pub links: Vec<LinkLoad>,
    /// Transfers between nodes with no known route between them.
    pub unrouted: usize,
}

/// Transfers over one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLoad {
    /// The link.
    pub link: LinkId,
    /// Source of the transfers.
    pub from: NodeId,
    /// Target of the transfers.
    pub to: NodeId,
    /// How many.
    pub transfers: usize,
}

/// How close a schedule is to the optimum on one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBound {
    /// The link.
    pub link: LinkId,
    /// Source of the transfers.
    pub from: NodeId,
    /// Target of the transfers.
    pub to: NodeId,
    /// Maximum number of transfers in a step.
    pub most: usize,
    /// Lower bound for the busiest step of any schedule: all transfers over it ÷ steps, rounded up.
    pub least: usize,
    /// Pairs of nodes whose route crosses it.
    pub pairs: usize,
}

impl Wiring {
    /// The routes between these nodes, over the machine's links or, if it has none, over those that its distances
    /// suggest.
    pub(super) fn new(machine: &Machine, nodes: impl Iterator<Item = NodeId>) -> Self {
        let mut machine = machine.clone();
        if machine.links.is_empty() {
            machine.links = links_assumed(&machine);
        }
        Self::from_knowledge(&Knowledge::from_machine(machine), nodes)
    }

    /// The routes between these nodes over a machine's known links.
    pub fn from_knowledge(knowledge: &Knowledge, nodes: impl Iterator<Item = NodeId>) -> Self {
        let mut nodes: Vec<NodeId> = nodes.collect();
        nodes.sort();
        nodes.dedup();
        let links = &knowledge.machine.links;
        let narrowest = links.iter().filter_map(|link| knowledge.link_bandwidth(link.id));
        let narrowest = narrowest.fold(f64::INFINITY, f64::min);
        let directions = links.iter().flat_map(|link| {
            let width = knowledge.link_bandwidth(link.id).map_or(1.0, |width| width / narrowest);
            [(link.id, link.a, link.b, width), (link.id, link.b, link.a, width)]
        });
        let mut wiring = Self { directions: directions.collect(), routes: BTreeMap::new() };
        for &from in &nodes {
            for &to in &nodes {
                let crossed = wiring.crossed(knowledge, from, to);
                wiring.routes.insert((from, to), crossed);
            }
        }
        wiring
    }

    fn crossed(&self, knowledge: &Knowledge, from: NodeId, to: NodeId) -> Option<Vec<usize>> {
        let route = knowledge.route(from, to)?;
        let hops = route.links.iter().zip(route.nodes.windows(2));
        let direction = |(link, ends): (&LinkId, &[NodeId])| {
            self.directions.iter().position(|it| (it.0, it.1, it.2) == (*link, ends[0], ends[1]))
        };
        hops.map(direction).collect()
    }

    /// Whether every pair of different nodes has a link of its own.
    pub fn is_fully_connected(&self) -> bool {
        let others = self.routes.iter().filter(|((from, to), _)| from != to);
        others.into_iter().all(|(_, route)| route.as_ref().is_some_and(|route| route.len() == 1))
    }

    /// The load of a step of a schedule.
    pub fn load(&self, schedule: &Schedule, step: usize) -> StepLoad {
        let mut load = StepLoad::default();
        let mut transfers = vec![0; self.directions.len()];
        for visit in schedule.step(step) {
            let way = schedule.transfer(&visit);
            let at = if schedule.shuffle().moved == Moved::Pushed { way.to } else { way.from };
            *load.controllers.entry(at).or_default() += 1;
            match self.routes.get(&(way.from, way.to)) {
                Some(Some(route)) => route.iter().for_each(|at| transfers[*at] += 1),
                _ => load.unrouted += 1,
            }
        }
        let links = self.directions.iter().zip(transfers);
        load.links = links
            .map(|(&(link, from, to, _), transfers)| LinkLoad { link, from, to, transfers })
            .collect();
        load
    }

    /// The busiest step on each direction of each link, and its lower bound.
    pub fn bounds(&self, schedule: &Schedule) -> Vec<LinkBound> {
        let steps = schedule.workers();
        let mut most = vec![0; self.directions.len()];
        let mut all = vec![0; self.directions.len()];
        for step in 0..steps {
            for (at, load) in self.load(schedule, step).links.iter().enumerate() {
                most[at] = load.transfers.max(most[at]);
                all[at] += load.transfers;
            }
        }
        let bound = |(at, &(link, from, to, _)): (usize, &(LinkId, NodeId, NodeId, f64))| {
            let pairs = self.routes.values().flatten().filter(|route| route.contains(&at)).count();
            LinkBound {
                link,
                from,
                to,
                most: most[at],
                least: all[at].div_ceil(steps.max(1)),
                pairs,
            }
        };
        self.directions.iter().enumerate().map(bound).collect()
    }
}

/// The ring over workers on these nodes with these homes.
pub(super) fn ring(
    machine: &Machine,
    workers: &[NodeId],
    homes: &[NodeId],
    moved: Moved,
) -> Arc<dyn Turns> {
    let mut nodes = workers.to_vec();
    nodes.sort();
    nodes.dedup();
    let plain = RingOrder::new(workers, &nodes, Circle::Turning);
    let is_searched = (3..=NODES_SEARCHED_MAX).contains(&nodes.len());
    if !is_searched || workers.len() > WORKERS_SEARCHED_MAX {
        return Arc::new(plain);
    }
    let wiring = Wiring::new(machine, workers.iter().chain(homes).copied());
    let search = Search { wiring: &wiring, workers, homes, moved };
    Arc::new(search.best(plain, nodes))
}

/// Searches for the order of nodes on the circle with the least total time of steps: a step takes as long as its
/// busiest link. The busiest link overall is a lower bound.
struct Search<'a> {
    wiring: &'a Wiring,
    workers: &'a [NodeId],
    homes: &'a [NodeId],
    moved: Moved,
}

impl Search<'_> {
    fn best(&self, plain: RingOrder, nodes: Vec<NodeId>) -> RingOrder {
        let least = self.least();
        let mut best = (self.time(&plain), plain);
        let is_cube = self.workers.len().is_power_of_two();
        let circles = [Circle::Turning, Circle::Crossing];
        for circle in circles.into_iter().filter(|it| is_cube || *it == Circle::Turning) {
            let found = self.climb(nodes.clone(), circle, least);
            if found.0 < best.0 {
                best = found;
            }
        }
        best.1
    }

    /// Exchanges pairs of nodes as long as that helps.
    fn climb(&self, mut nodes: Vec<NodeId>, circle: Circle, least: f64) -> (f64, RingOrder) {
        let made = |nodes: &[NodeId]| {
            let ring = RingOrder::new(self.workers, nodes, circle);
            (self.time(&ring), ring)
        };
        let mut best = made(&nodes);
        for _ in 0..ROUNDS_MAX {
            let before = best.0;
            for (a, b) in (0..nodes.len()).flat_map(|a| (0..a).map(move |b| (b, a))) {
                if best.0 <= least {
                    return best;
                }
                nodes.swap(a, b);
                let found = made(&nodes);
                match found.0 < best.0 {
                    true => best = found,
                    false => nodes.swap(a, b),
                }
            }
            if best.0 >= before {
                break;
            }
        }
        best
    }

    /// Time of all steps, in transfers over the narrowest link.
    fn time(&self, turns: &impl Turns) -> f64 {
        let mut loads = vec![0.0; self.wiring.directions.len()];
        let count = self.workers.len();
        let step = |step| {
            loads.fill(0.0);
            (0..count).for_each(|actor| self.add(&mut loads, actor, turns.other(actor, step)));
            loads.iter().copied().fold(0.0, f64::max)
        };
        (0..count).map(step).sum()
    }

    /// Time of the busiest link over all steps, whatever their order.
    fn least(&self) -> f64 {
        let mut loads = vec![0.0; self.wiring.directions.len()];
        for actor in 0..self.workers.len() {
            (0..self.workers.len()).for_each(|other| self.add(&mut loads, actor, other));
        }
        loads.into_iter().fold(0.0, f64::max)
    }

    fn add(&self, loads: &mut [f64], actor: usize, other: usize) {
        let way = self.way(actor, other);
        let Some(Some(route)) = self.wiring.routes.get(&(way.from, way.to)) else { return };
        for at in route {
            loads[*at] += 1.0 / self.wiring.directions[*at].3;
        }
    }

    /// The route of what moves: the piece, or the state of a thread.
    fn way(&self, actor: usize, other: usize) -> Transfer {
        match self.moved {
            Moved::Pulled => Transfer { from: self.homes[other], to: self.workers[actor] },
            Moved::Pushed => Transfer { from: self.homes[actor], to: self.homes[other] },
            Moved::Threads => Transfer { from: self.homes[actor], to: self.workers[other] },
        }
    }
}
