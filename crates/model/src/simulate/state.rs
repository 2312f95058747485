//! State that a thread keeps between its steps (a hash table), and the cost of accessing it: nearby in the caches, or
//! over the interconnect when the thread has moved away from it.

use atoll_topology::{CacheKind, Knowledge, NodeId};

use super::interconnect::LINE;
use super::{Access, AccessKind, SimulationError};
use crate::{Assumptions, Costs};

/// State of each of a node's threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadState {
    /// Its size, bytes.
    pub bytes: f64,
    /// Random read-modify-write accesses to it in a step.
    pub accesses: f64,
    /// Threads on a node, whose states share its last-level cache.
    pub threads: f64,
}

/// Sizes and latencies of caches. All nodes are assumed to be like the first with cpus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateCosts {
    /// Second-level cache of a core, bytes.
    l2: f64,
    /// Last-level caches of a node, bytes.
    llc: f64,
    /// Latency of a hit in the last level, ns.
    llc_hit: f64,
    in_flight: f64,
}

impl StateCosts {
    /// The caches of a machine; missing caches have zero bytes.
    pub fn from_knowledge(knowledge: &Knowledge) -> Result<Self, SimulationError> {
        let costs = Costs::from_knowledge(knowledge, &Assumptions::default())?;
        let machine = &knowledge.machine;
        let node = machine.nodes_with_cpus().next();
        let second =
            machine.caches.iter().find(|it| it.level == 2 && it.kind != CacheKind::Instruction);
        let llc = node.map_or(0, |node| {
            machine.domains_of(node.id).filter_map(|it| it.cache).map(|size| size.0).sum::<u64>()
        });
        let l2 = second.and_then(|cache| cache.size).map_or(0, |size| size.0);
        let llc_hit = costs.nodes.first().map_or(0.0, |node| node.llc);
        Ok(Self { l2: l2 as f64, llc: llc as f64, llc_hit, in_flight: costs.in_flight })
    }

    /// Accesses that miss all warm caches: the hit rate is the size of the caches relative to the state and its
    /// neighbours.
    fn missed(&self, state: &ThreadState) -> f64 {
        state.accesses * (1.0 - share(self.llc, state.bytes * state.threads))
    }

    /// ns of the accesses that the last-level cache serves.
    fn waits(&self, state: &ThreadState) -> f64 {
        let from_llc = 1.0 - share(self.l2, state.bytes);
        state.accesses * from_llc * self.llc_hit / self.in_flight
    }

    /// Distinct lines that a step touches, for a state that is not cached at the start.
    fn touched(&self, state: &ThreadState) -> f64 {
        let lines = (state.bytes / LINE).max(1.0);
        lines * (1.0 - (1.0 - 1.0 / lines).powf(state.accesses))
    }

    /// Accesses to memory by a thread that stays with its state, and additional ns.
    pub fn stays(&self, state: &ThreadState, node: NodeId) -> (Vec<Access>, f64) {
        (changed(node, node, self.missed(state)), self.waits(state))
    }

    /// The same for a thread that arrives at a node, whether or not it is the state's home: none of the state is in
    /// that node's caches.
    pub fn moves(&self, state: &ThreadState, at: NodeId, home: NodeId) -> (Vec<Access>, f64) {
        let cold = self.touched(state);
        let again = (state.accesses - cold).max(0.0);
        let missed = self.missed(&ThreadState { accesses: again, ..*state });
        (changed(at, home, cold + missed), self.waits(state))
    }

    /// The same for a thread that first copies its state from the previous node.
    pub fn copies(&self, state: &ThreadState, at: NodeId, before: NodeId) -> (Vec<Access>, f64) {
        let (mut accesses, waits) = self.stays(state, at);
        let copy = |home, kind| Access { at, home, bytes: state.bytes, kind };
        accesses.extend([copy(before, AccessKind::Read), copy(at, AccessKind::Write)]);
        (accesses, waits)
    }
}

/// The cached share of something.
fn share(cache: f64, size: f64) -> f64 {
    if size > cache { cache / size } else { 1.0 }
}

/// Lines that are read and, when they leave the cache, written back.
fn changed(at: NodeId, home: NodeId, lines: f64) -> Vec<Access> {
    let access = |kind| Access { at, home, bytes: lines * LINE, kind };
    if lines > 0.0 { vec![access(AccessKind::Read), access(AccessKind::Write)] } else { Vec::new() }
}
