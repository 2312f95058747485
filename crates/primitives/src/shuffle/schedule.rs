//! A shuffle on a machine: who visits whom, when and where.

use std::sync::Arc;

use atoll_runtime::{Runtime, WorkerId};
use atoll_topology::{Machine, NodeId};

use super::order::{self, Turns};
use super::wiring::Wiring;
use super::{Moved, Shuffle, wiring};

/// A turn of a worker: one piece goes to its recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Visit {
    /// The step it belongs to.
    pub step: usize,
    /// The worker whose turn it is, and whose state it updates: the recipient of the piece, or, when pushed, its
    /// holder.
    pub actor: WorkerId,
    /// The recipient of the piece.
    pub worker: WorkerId,
    /// The holder of the piece.
    pub source: WorkerId,
    /// The worker on whose node it runs: the actor, or the source when threads move.
    pub place: WorkerId,
}

/// Route of a piece's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Home of the bytes.
    pub from: NodeId,
    /// Node of the cpus that read them, or, when pushed, of the memory they are written to.
    pub to: NodeId,
}

/// A shuffle on a machine. Clones share it.
#[derive(Clone, Debug)]
pub struct Schedule {
    shuffle: Shuffle,
    /// Node of each worker.
    nodes: Vec<NodeId>,
    /// Home of each worker's data.
    homes: Vec<NodeId>,
    turns: Arc<dyn Turns>,
}

impl Schedule {
    /// The shuffle of a runtime's workers.
    pub fn for_runtime(runtime: &Runtime, shuffle: Shuffle) -> Self {
        let nodes = runtime.workers().iter().map(|worker| worker.node).collect();
        Self::new(runtime.machine(), nodes, shuffle)
    }

    /// The shuffle of workers on these nodes of a machine. A worker's data is on its node, or, if that has no memory,
    /// on the nearest node that has some.
    ///
    /// The ring is the paper's if all nodes have as many workers and a link to every other; on any other machine the
    /// order of nodes on the circle is the one found to load its links least (see [`Wiring`]).
    pub fn new(machine: &Machine, nodes: Vec<NodeId>, shuffle: Shuffle) -> Self {
        let home = |node: &NodeId| machine.nearest_with_memory(*node).map_or(*node, |home| home.id);
        let homes: Vec<NodeId> = nodes.iter().map(home).collect();
        let turns = match order::without_machine(shuffle.order, nodes.len()) {
            Some(turns) => Arc::from(turns),
            None => wiring::ring(machine, &nodes, &homes, shuffle.moved),
        };
        Self { shuffle, nodes, homes, turns }
    }

    /// The shuffle.
    pub fn shuffle(&self) -> Shuffle {
        self.shuffle
    }

    /// Number of workers, of steps, and of each worker's pieces.
    pub fn workers(&self) -> usize {
        self.nodes.len()
    }

    /// Node of a worker.
    pub fn node(&self, worker: WorkerId) -> NodeId {
        self.nodes[worker.index()]
    }

    /// Home of a worker's data.
    pub fn home(&self, worker: WorkerId) -> NodeId {
        self.homes[worker.index()]
    }

    /// The turn of a worker in a step, both less than [`workers`](Self::workers).
    pub fn visit(&self, actor: WorkerId, step: usize) -> Visit {
        let other = WorkerId(self.turns.other(actor.index(), step) as u32);
        let (worker, source, place) = match self.shuffle.moved {
            Moved::Pulled => (actor, other, actor),
            Moved::Pushed => (other, actor, actor),
            Moved::Threads => (actor, other, other),
        };
        Visit { step, actor, worker, source, place }
    }

    /// All visits of a step, by actor.
    pub fn step(&self, step: usize) -> impl ExactSizeIterator<Item = Visit> {
        (0..self.workers() as u32).map(move |actor| self.visit(WorkerId(actor), step))
    }

    /// All visits of a worker, by step.
    pub fn turns(&self, actor: WorkerId) -> impl ExactSizeIterator<Item = Visit> {
        (0..self.workers()).map(move |step| self.visit(actor, step))
    }

    /// The route of the piece's bytes in a visit.
    pub fn transfer(&self, visit: &Visit) -> Transfer {
        let from = self.home(visit.source);
        match self.shuffle.moved {
            Moved::Pulled | Moved::Threads => Transfer { from, to: self.node(visit.place) },
            Moved::Pushed => Transfer { from, to: self.home(visit.worker) },
        }
    }

    /// The load of the visits, counted over the machine's links, or, if they are unknown, over those that its distances
    /// suggest.
    pub fn wiring(&self, machine: &Machine) -> Wiring {
        Wiring::new(machine, self.nodes.iter().chain(&self.homes).copied())
    }
}
