//! The layout of the machine: cores numbered densely, and their domains.

use std::collections::BTreeMap;

use atoll_topology::CoreId;

use crate::Setup;
use crate::llc::Holders;
use crate::ram::NodeIndex;

/// The origin of an access.
#[derive(Clone, Copy)]
pub(crate) struct Requester {
    pub(crate) node: NodeIndex,
    pub(crate) domain: usize,
    /// Among all cores of the machine.
    pub(crate) core: usize,
    /// Index among the threads of its core.
    pub(crate) thread: usize,
    /// Index of the core in its domain.
    pub(crate) me: Holders,
}

/// Cores that share a last-level cache.
pub(crate) struct SimulatedDomain {
    /// Node of its first cpu, from which its lines are sent.
    pub(crate) node: NodeIndex,
    pub(crate) cores: Vec<usize>,
}

impl SimulatedDomain {
    /// Holders except one core; if cores share bits, all of them.
    pub(crate) fn others(&self, holders: Holders, me: Holders) -> Holders {
        if self.cores.len() <= Holders::BITS { holders.without(me) } else { holders }
    }

    /// Cores represented by holders.
    pub(crate) fn holders(&self, holders: Holders) -> impl Iterator<Item = usize> {
        let cores = self.cores.iter().enumerate();
        cores.filter(move |(i, _)| holders.has(*i)).map(|(_, core)| *core)
    }
}

/// Place of every cpu, and the sizes derived from them.
pub(crate) struct CpuLayout {
    pub(crate) cpus: Vec<Requester>,
    pub(crate) domains: Vec<SimulatedDomain>,
    /// Cpus of each core.
    pub(crate) cores: Vec<Vec<usize>>,
}

impl CpuLayout {
    pub(crate) fn new(setup: &Setup) -> Self {
        let domain = || SimulatedDomain { node: NodeIndex(0), cores: vec![] };
        let mut layout = Self {
            cpus: vec![],
            domains: setup.llc.iter().map(|_| domain()).collect(),
            cores: vec![],
        };
        let mut known = BTreeMap::<CoreId, Requester>::new();
        for (cpu, seat) in setup.cpus.iter().enumerate() {
            let first = *known.entry(seat.core).or_insert_with(|| layout.add_core(seat));
            let threads = &mut layout.cores[first.core];
            layout.cpus.push(Requester { thread: threads.len(), ..first });
            threads.push(cpu);
        }
        layout
    }

    fn add_core(&mut self, seat: &crate::CpuSeat) -> Requester {
        let (node, core) = (NodeIndex(seat.node), self.cores.len());
        let domain = &mut self.domains[seat.domain.index()];
        if domain.cores.is_empty() {
            domain.node = node;
        }
        let me = Holders::for_core(domain.cores.len());
        domain.cores.push(core);
        self.cores.push(vec![]);
        Requester { node, domain: seat.domain.index(), core, thread: 0, me }
    }
}
